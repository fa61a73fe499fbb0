"""From JSON to rows of a typed table: where records are in a body, which columns they have, of which types.

    true, false               boolean
    whole numbers             bigint; decimal(38,0) where they need it
    other numbers             decimal, every digit kept
    text                      text
    objects, arrays           json
    several of these          json; numbers of both kinds decimal

The option `types` chooses others: timestamptz, date or uuid for texts, double for numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from unstale.adapters.api_terms import steps
from unstale.adapters.sql_targets import Row
from unstale.adapters.sql_text import chunks
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import plain, row_hash
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass

Record = Mapping[str, Any]


def read_json(body: bytes) -> Any:
    """A body as JSON, numbers exact; InputError if it is none."""
    try:
        return json.loads(body, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise InputError("its answer is no JSON: check the address") from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def values_in(body: bytes) -> int:
    """At most so many values are in a JSON text: found without making them, which takes thirty times its bytes.

    >>> values_in(b'{"a": [1, 2], "b": {}}')
    6
    """
    return 1 + body.count(b",") + body.count(b"[") + body.count(b"{")


def at(body: Any, path: str) -> Any:
    """What is at a path, None if nothing is.

    >>> at({"data": [{"id": 1}]}, "$.data[0].id"), at({"data": None}, "data.items")
    (1, None)
    """
    found = body
    for step in steps(path):
        if step == "*":
            continue
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return found


def records_in(body: Any, path: str) -> list[Record]:
    """The records of a body: at a path, or where there is but one list; InputError if there are none."""
    found = at(body, path) if path else body
    if not path and isinstance(body, dict):
        lists = [value for value in body.values() if isinstance(value, list)]
        found = lists[0] if len(lists) == 1 else [body]
    if isinstance(found, dict):
        found = [found]
    if isinstance(found, list) and all(isinstance(one, dict) for one in found):
        return found
    place = repr(path) if path else "of its answer"
    raise InputError(sentence("records", place, "are no list of objects", "name the path to them, like $.data.items"))


def columns_of(records: Sequence[Record], types: Mapping[str, str], known: Sequence[str] = ()) -> tuple[Column, ...]:
    """The columns of records, in the order in which they appear, with the types that hold all values."""
    seen: dict[str, set[str]] = {name: set() for name in known}
    for one in records:
        for name, value in one.items():
            seen.setdefault(name, set()).add(_type(value))
    missing = [name for name in types if name not in seen]
    if missing and records:
        raise InputError(sentence("types", repr(missing[0]), "names no field", f"choose from {', '.join(seen)[:200]}"))
    return tuple(Column(name, types.get(name) or _common(kinds - {""}), False) for name, kinds in seen.items())


def _type(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if -(2**63) <= value < 2**63 else "decimal(38,0)"
    return "decimal" if isinstance(value, Decimal) else "text" if isinstance(value, str) else "json"


def _common(kinds: set[str]) -> str:
    if len(kinds) < 2:
        return next(iter(kinds), "text")
    if kinds <= {"bigint", "decimal(38,0)"}:
        return "decimal(38,0)"
    return "decimal" if kinds <= {"bigint", "decimal(38,0)", "decimal"} else "json"


@dataclass(frozen=True, slots=True)
class RecordReading:
    """Records on their way into a target; keeps `TableReading`."""

    columns: Sequence[Column]
    key: Sequence[str]
    records: Sequence[Record]
    #: an API may well send a record twice, on two pages: the later one counts
    unique: bool = False

    def rows(self) -> Iterator[Row]:
        """Every row, hashed."""
        places = [[column.name for column in self.columns].index(name) for name in self.key]
        for values in self._values():
            held = [plain(value) for value in values]
            yield row_hash([held[i] for i in places]) if places else b"", row_hash(held), held

    def text(self, native: bool = False) -> Iterator[bytes]:
        """Every row in CSV."""
        return chunks(self._values(), self.columns, native)

    def files(self) -> Sequence[Path]:
        """None: records are few, and asked for again."""
        return ()

    def _values(self) -> Iterator[list[Any]]:
        return ([_value(one.get(column.name), column.type) for column in self.columns] for one in self.records)


def _value(value: Any, type_: str) -> Any:
    if type_ == "json" and value is not None:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return float(value) if type_ in ("real", "double") and isinstance(value, Decimal) else value


def last_of_each(records: Sequence[Record], key: Sequence[str]) -> list[Record]:
    """Records without those that come again later under the same key; InputError if one has no key."""
    if not key:
        return list(records)
    found: dict[tuple[str, ...], Record] = {}
    for one in records:
        if any(one.get(name) is None for name in key):
            raise InputError(
                sentence("key", repr(", ".join(key)), "is missing in a record", "name fields that all have")
            )
        found[tuple(json.dumps(one[name], sort_keys=True, default=str) for name in key)] = one
    return list(found.values())
