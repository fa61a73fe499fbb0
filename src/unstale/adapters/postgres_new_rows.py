"""New sources as rows of a binary COPY, packed many at a time: a list of millions is added at the server's pace.

Rules of this file:
1. A source is a row of `sources`, one of `beliefs` and one of `schedule`; all are due when they are added.
2. Rows go out by some thousand, so that a list takes no more memory than it has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct
from typing import NamedTuple

import numpy as np

from unstale.adapters.postgres_schema import Connection
from unstale.ports import Listing

#: rows that are packed at a time
_PIECE = 8192
#: before the first row, and after the last
_HEAD, _TAIL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
#: a row of `sources`: id, place and the length of its address; what comes before its kind; what comes before options
_NAMED, _ADDED = Struct("!hiqi16si"), Struct("!idi")
_TERMS, _SIZE, _PAUSED = Struct("!ididiiidid"), Struct("!i"), Struct("!i?")
_NULL = _SIZE.pack(-1)
_SOURCES = "id, place, address, added_at, kind, weight, cost, host, shortest, longest, options, paused"
_BELIEFS = {"source": ">i8", "last": ">f8", "found": ">f8", "failures": ">i4", "latest": ">i8", "version": ">i4"}
_SCHEDULE = {"source": ">i8", "site": ">i4", "awake": "?", "due": ">f8"}


class NewSource(NamedTuple):
    """A listing, its options as text, what it is found by, the host that shares its cap, and that we owe manners."""

    source: int
    place: bytes
    listing: Listing
    options: str | None
    host: int
    site: int


def insert(db: Connection, new: Sequence[NewSource], now: float) -> None:
    """Add sources that are not there."""
    if not new:
        return
    _copy(db, f"sources({_SOURCES})", _sources(new, now))
    ids = np.array([one.source for one in new])
    # Nobody has answered, and no change was found.
    never = {"last": -math.inf, "found": -math.inf, "failures": 0, "latest": 0, "version": 0}
    _copy(db, f"beliefs({', '.join(_BELIEFS)})", _numbers(_BELIEFS, {"source": ids, **never}))
    awake = np.array([not one.listing.paused for one in new])
    told = {"source": ids, "site": np.array([one.site for one in new]), "awake": awake, "due": now}
    _copy(db, f"schedule({', '.join(_SCHEDULE)})", _numbers(_SCHEDULE, told))


def _copy(db: Connection, into: str, rows: Iterator[bytes]) -> None:
    with db.cursor() as cursor, cursor.copy(f"COPY {into} FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(_HEAD)
        while piece := b"".join(islice(rows, _PIECE)):
            copy.write(piece)
        copy.write(_TAIL)


def _sources(new: Sequence[NewSource], now: float) -> Iterator[bytes]:
    kinds = {kind: kind.encode() for kind in {one.listing.kind for one in new}}
    before = {kind: _ADDED.pack(8, now, len(name)) + name for kind, name in kinds.items()}
    for source, place, s, options, host, _ in new:
        address = s.address.encode()
        terms = _TERMS.pack(8, s.weight, 8, s.cost, 4, host, 8, s.shortest, 8, s.longest)
        text = _NULL if options is None else _SIZE.pack(len(data := options.encode())) + data
        yield b"".join(
            (
                _NAMED.pack(12, 8, source, 16, place, len(address)),
                address,
                before[s.kind],
                terms,
                text,
                _PAUSED.pack(1, s.paused),
            )
        )


def _numbers(kinds: dict[str, str], values: dict[str, object]) -> Iterator[bytes]:
    """Rows of numbers alone, each with its length before it."""
    fields = [
        ("fields", ">i2"),
        *((f"{name} size", ">i4") if size else (name, kind) for name, kind in kinds.items() for size in (True, False)),
    ]
    rows = np.empty(len(np.asarray(values["source"])), np.dtype(fields))
    rows["fields"] = len(kinds)
    for name, kind in kinds.items():
        rows[f"{name} size"], rows[name] = np.dtype(kind).itemsize, values[name]
    yield rows.tobytes()
