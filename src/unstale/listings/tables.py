"""Listings that are tables: references of a git repository, CSV and JSON of addresses, rows of a SQL catalogue."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

from unstale.errors import InputError, sentence
from unstale.listings.packages import MOST_MARKS
from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker

_REF = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\t(\S{1,1024})\Z")
_ADDRESSES = ("address", "url", "loc", "link", "name", "path")
_TIMES = ("time", "lastmod", "updated", "updated_at", "modified", "last_modified", "date")
_TAGS = ("tag", "etag", "hash", "digest", "version", "revision", "serial", "counter")


def read_refs(data: bytes, to: Taker) -> None:
    """What `git ls-remote` prints: one look for all references. Peeled tags are passed over.

    >>> from unstale.listings.readers import read_listing
    >>> line = b"1b3a5c7d9e0f1a2b3c4d5e6f708192a3b4c5d6e7\\trefs/heads/main\\n"
    >>> entry, = read_listing("refs", line, "https://example.org/a.git", now=2e9).entries
    >>> entry.address, entry.tag[:7]
    ('https://example.org/a.git?ref=refs/heads/main', '1b3a5c7')
    """
    for line in unpacked(data).decode("utf-8", "replace").splitlines():
        found = _REF.match(line.strip())
        if found is None:
            to.refused["no reference"] += bool(line.strip())
        elif not found[2].endswith("^{}") and not to.take(f"{to.base}?ref={found[2]}", None, found[1]):
            return


def read_table(data: bytes, to: Taker) -> None:
    """CSV with a header, JSON (a list of objects, or an object that holds one), or JSON lines: address, time or tag."""
    text = unpacked(data).decode("utf-8-sig", "replace")
    if text.lstrip()[:1] not in ("{", "["):
        rows: Iterable[Any] = csv.DictReader(io.StringIO(text))
    else:
        rows = _json_rows(text)
    try:
        for row in rows:
            if not isinstance(row, dict):
                to.refused["no row"] += 1
            elif not to.take(_of(row, _ADDRESSES) or "", _when(row), _of(row, _TAGS)):
                return
    except csv.Error as error:
        raise InputError(sentence("table", "as given", "cannot be read", str(error))) from None


def take_catalogue(rows: Iterable[tuple[str, float | str | None]], to: Taker) -> None:
    """Rows of a SQL catalogue: the name of a table, and a counter or a time that moves when it changes.

    Numbers are counters, not times: rows written since the statistics began, say, or pages of the table.
    """
    for name, mark in rows:
        address = f"{to.base.rstrip('/')}/{name}"
        if not to.take(address, mark if isinstance(mark, str) else None, None if mark is None else str(mark)):
            return


def _json_rows(text: str) -> list[Any]:
    if sum(map(text.count, "{[,")) > MOST_MARKS:
        raise InputError(sentence("table", f"with more than {MOST_MARKS} marks", "is too large", "ask for it in parts"))
    try:
        page = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError) as error:
            reason = f"its JSON is broken ({error})"
            raise InputError(sentence("table", "as given", "cannot be read", reason)) from None
    except RecursionError:
        raise InputError(sentence("table", "as given", "cannot be read", "its JSON is nested too deep")) from None
    if isinstance(page, dict):
        lists = [value for value in page.values() if isinstance(value, list)]
        return lists[0] if lists else [page]
    return page if isinstance(page, list) else []


def _of(row: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for key, value in row.items():
        if (
            isinstance(key, str)
            and key.lower() in names
            and value not in (None, "")
            and isinstance(value, str | int | float)
        ):
            return str(value)
    return None


def _when(row: dict[str, Any]) -> str | float | None:
    text = _of(row, _TIMES)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
