"""JSON and tables as lines by which two versions can be compared: a value at its place, a row by its columns.

Rules of this file:
1. A member of a list is named by what names it, an id if all have one, and by its place otherwise; plain values in a
   list have no name: one that is added at the head moves no other.
2. What strangers nested deeply or made long is cut, and never walked by recursion.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

#: members of a record that may name it, the best first
_IDS = ("id", "key", "guid", "uuid", "slug", "sku", "code", "name", "url", "address")
#: lines that are made of a document, and rows of a table
MOST = 20_000


def json_lines(value: Any) -> list[str]:
    """Every plain value of a document with its place before it.

    >>> json_lines({"at": 3, "items": [{"id": "x", "price": 9}, {"id": "y", "price": 7}], "none": {}})
    ['at: 3', 'items[id=x].price: 9', 'items[id=y].price: 7', 'none: {}']
    """
    lines: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting and len(lines) < MOST:
        place, one = waiting.pop()
        if isinstance(one, dict) and one:
            # The id is said in the place already.
            named = [
                (key, inner) for key, inner in sorted(one.items()) if not place.endswith(f"[{key}={_plain(inner)}]")
            ]
            waiting += [(f"{place}.{key}" if place else str(key), inner) for key, inner in named][::-1]
            if not named:
                lines.append(f"{place}: {{}}")
        elif isinstance(one, list) and one:
            waiting += [(f"{place}[{name}]", inner) for name, inner in zip(_names(one), one, strict=True)][::-1]
        else:
            lines.append(f"{place or 'value'}: {json.dumps(one, ensure_ascii=False)}")
    return lines


def _names(members: list[Any]) -> list[str]:
    """What members of a list are called: by an id that each has and none shares, or by place; plain ones: nothing."""
    if not any(isinstance(one, dict | list) for one in members):
        return [""] * len(members)
    if all(isinstance(one, dict) for one in members):
        for key in _IDS:
            found = [_plain(one.get(key)) for one in members]
            if None not in found and len(set(found)) == len(found):
                return [f"{key}={name}" for name in found]
    return [str(place) for place in range(len(members))]


def _plain(value: Any) -> str | None:
    plain = isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 200
    return str(value) if plain else None


def table_lines(text: str) -> list[str]:
    """A table's rows, each cell with its column's name; ValueError if it is none.

    >>> table_lines("station,trains\\nBern,9\\nBasel,7\\n")
    ['station: Bern · trains: 9', 'station: Basel · trains: 7']
    """
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        head = next(rows)
        found = [row for _, row in zip(range(MOST), rows, strict=False) if row]
    except (StopIteration, csv.Error):
        raise ValueError from None
    if len(head) < 2 or any(len(row) != len(head) for row in found):
        raise ValueError
    return [" · ".join(f"{name}: {cell}" for name, cell in zip(head, row, strict=True)) for row in found]
