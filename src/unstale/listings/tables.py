"""Listings that are tables: CSV and JSON of addresses, answers of APIs, rows of a SQL catalogue."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote

from unstale.errors import InputError, sentence
from unstale.listings.packages import MOST_MARKS
from unstale.listings.packed import unpacked
from unstale.listings.refs import filled_in
from unstale.listings.taking import Taker

_ADDRESSES = ("address", "url", "loc", "link", "name", "path")
_TIMES = ("time", "lastmod", "updated", "updated_at", "modified", "last_modified", "date")
_TAGS = ("tag", "etag", "hash", "digest", "version", "revision", "serial", "counter")


def read_table(data: bytes, to: Taker) -> None:
    """CSV with a header, JSON (a list of objects, or an object that holds one), or JSON lines: address, time or tag.

    Its owner may say its shape: `items` leads to the list (`result.items`), `member` is the address of a member with
    {fields} of its row, `time` and `tag` are fields; `next` leads to the cursor, or the address, of the next page.

    >>> from unstale.listings.readers import read_listing
    >>> answer = b'{"result": {"rows": [{"id": 7, "at": "2024-05-01T12:30:00Z"}]}, "then": "/v1?page=2"}'
    >>> shape = {"items": "result.rows", "member": "/v1/things/{id}", "time": "at", "next": "then"}
    >>> page = read_listing("table", answer, "https://api.example.org/v1", now=2e9, options=shape)
    >>> page.entries[0].address, page.entries[0].time, page.cursor
    ('https://api.example.org/v1/things/7', 1714566600.0, '/v1?page=2')
    """
    text = unpacked(data).decode("utf-8-sig", "replace")
    shape = to.options
    if text.lstrip()[:1] not in ("{", "["):
        found: Iterable[Any] = csv.DictReader(io.StringIO(text))
    else:
        found, to.cursor = _json_rows(text, str(shape.get("items") or ""), str(shape.get("next") or ""))
    times = _named(shape.get("time"), _TIMES)
    tags = _named(shape.get("tag"), _TAGS)
    member = str(shape.get("member") or "")
    try:
        for row in found:
            if not isinstance(row, dict):
                to.refused["no row"] += 1
                continue
            address = filled_in(member, _told(row)) if member else _of(row, _ADDRESSES) or ""
            if not to.take(address, _when(row, times), _of(row, tags)):
                return
    except csv.Error as error:
        raise InputError(sentence("table", "as given", "cannot be read", str(error))) from None


def read_catalogue(data: bytes, to: Taker) -> None:
    """Tables of a database, each with what moves when it changes: lines of JSON, [name, mark]. No time is told.

    What the address names behind # chooses among them, `#public.*` say; otherwise all are members.

    >>> from unstale.listings.readers import read_listing
    >>> rows = b'["public.orders", "7"]\\n["audit.log", "9"]\\n'
    >>> entry, = read_listing("catalogue", rows, "postgresql://db.example.org/shop#public.*", now=2e9).entries
    >>> entry.address, entry.tag
    ('postgresql://db.example.org/shop#public.orders', '7')
    """
    place, _, pattern = to.base.partition("#")
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            name, mark = map(str, json.loads(line))
        except (ValueError, TypeError, RecursionError):
            remedy = "give the address of a database"
            raise InputError(sentence("collection", "as polled", "is no catalogue", remedy)) from None
        if fnmatchcase(name, pattern or "*") and not to.take(f"{place}#{quote(name, safe='.')}", None, mark):
            return


def _json_rows(text: str, items: str, further: str) -> tuple[list[Any], str | None]:
    """The rows, and where to go on."""
    if sum(map(text.count, "{[,")) > MOST_MARKS:
        raise InputError(sentence("table", f"with more than {MOST_MARKS} marks", "is too large", "ask for it in parts"))
    try:
        page = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()], None
        except (ValueError, RecursionError) as error:
            reason = f"its JSON is broken ({error})"
            raise InputError(sentence("table", "as given", "cannot be read", reason)) from None
    except RecursionError:
        raise InputError(sentence("table", "as given", "cannot be read", "its JSON is nested too deep")) from None
    then = _led(page, further) if further else None
    cursor = str(then)[:4096] if isinstance(then, str | int) and not isinstance(then, bool) and then != "" else None
    if items:
        rows = _led(page, items)
        if not isinstance(rows, list):
            raise InputError(sentence("table", "as given", f"has no list at {items!r}", "correct the option items"))
        return rows, cursor
    if isinstance(page, dict):
        lists = [value for value in page.values() if isinstance(value, list)]
        return (lists[0] if lists else [page]), cursor
    return (page if isinstance(page, list) else []), cursor


def _led(answer: Any, way: str) -> Any:
    """What a way of names leads to, `result.items`; None if it leads nowhere."""
    for step in way.split("."):
        answer = answer.get(step) if isinstance(answer, dict) else None
    return answer


def _named(said: object, usual: tuple[str, ...]) -> tuple[str, ...]:
    return (str(said).lower(),) if said else usual


def _told(row: Mapping[str, Any]) -> dict[str, str]:
    """The plain fields of a row, as a part of an address holds them."""
    return {str(k): quote(str(v), safe="") for k, v in row.items() if isinstance(v, str | int | float)}


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


def _when(row: dict[str, Any], names: tuple[str, ...]) -> str | float | None:
    text = _of(row, names)
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
