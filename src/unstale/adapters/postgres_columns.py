"""Sources in columns, read from PostgreSQL as binary rows of equal length: nothing is parsed row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from psycopg import sql

from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.postgres_tables import COST, OF_SOURCE
from unstale.ports import FleetColumns, Price

#: bytes before the first row of a binary COPY, and after the last
_HEAD, _TAIL = 19, 2
#: bytes that are gathered before rows are taken from them
_PIECE = 4 * 2**20
#: the columns of a price
PRICE = ", ".join(Price.__slots__)
_WHOLES = ("id", "host", "paused", "failures")
_FLOATS = ("weight", "cost", "shortest", "longest", "due", "last", "found", "listed")
_QUERY = (
    "COPY (SELECT s.id, s.host::bigint, s.paused::int::bigint, b.failures::bigint, s.weight, "
    f"{COST}, s.shortest, s.longest, w.due, b.last, b.found, s.cost, "
    "CASE WHEN octet_length(b.belief) <= {size} "
    "THEN b.belief || substring({blank} FROM octet_length(b.belief) + 1) ELSE {blank} END "
    "FROM sources s JOIN beliefs b ON b.source = s.id "
    "JOIN schedule w ON w.source = s.id {where} ORDER BY s.id {limit}) TO STDOUT (FORMAT binary)"
)


def columns_of(
    db: Connection,
    width: int,
    sources: Sequence[int] | None = None,
    within: tuple[int, int, int] | None = None,
    held_by: str | None = None,
) -> FleetColumns:
    """All sources, or these, as they stand; inside a transaction that sees one instant.

    Or those `within` an id, which is left out, and another, at most so many; or of the shards that are `held_by` one.
    """
    where, limit = sql.Composed([]), sql.Composed([])
    if within is not None:
        where = sql.SQL("WHERE s.id > {} AND s.id <= {}").format(*within[:2])
        limit = sql.SQL("LIMIT {}").format(within[2])
    if sources is not None:
        where = sql.SQL("WHERE s.id = ANY({}::bigint[])").format(sorted({int(source) for source in sources}))
    if held_by is not None:
        through_all(db)
        where = sql.SQL(
            f"JOIN hosts h ON h.id = w.site WHERE {OF_SOURCE} IN (SELECT shard FROM shards WHERE owner = {{}})"
        ).format(held_by)
    query = sql.SQL(_QUERY).format(size=8 * width, blank=bytes(8 * width), where=where, limit=limit)
    columns = _streamed(db, query, _row(width))
    source, host, paused, failures, weight, cost, shortest, longest, due, last, found, listed = (
        columns.pop(name) for name in (*_WHOLES, *_FLOATS)
    )
    # What a learner keeps is in the machine's own order, as its bytes came.
    beliefs = np.frombuffer(columns.pop("belief")).reshape(len(source), width)
    ids, place = np.unique(host, return_inverse=True)
    names = dict(db.execute("SELECT id, name FROM hosts WHERE id = ANY(%s)", (ids.tolist(),)).fetchall())
    settings = dict(db.execute("SELECT name, value FROM settings").fetchall())
    price = db.execute(f"SELECT {PRICE} FROM prices ORDER BY id DESC LIMIT 1".encode()).fetchone()
    return FleetColumns(
        source,
        weight,
        cost,
        shortest,
        longest,
        place.astype(np.int64, copy=False),
        tuple(names[int(one)] for one in ids),
        paused != 0,
        due,
        last,
        found,
        failures,
        beliefs,
        settings,
        Price(*price) if price else None,
        listed,
    )


def _streamed(db: Connection, query: sql.Composed, row: np.dtype[np.void]) -> dict[str, Any]:
    """The columns of a binary COPY, and the beliefs as bytes: what came is let go of some thousand rows at a time."""
    pieces: dict[str, list[Any]] = {name: [] for name in (*_WHOLES, *_FLOATS)}
    beliefs = bytearray()
    with db.cursor() as cursor, cursor.copy(query) as copy:
        waiting, size, begin = list[bytes | memoryview](), 0, _HEAD
        for chunk in copy:
            waiting.append(bytes(chunk))
            size += len(chunk)
            if size < _PIECE:
                continue
            raw, begin = _taken(b"".join(waiting), begin, row, pieces, beliefs)
            waiting, size = [raw], len(raw)
        _taken(b"".join(waiting)[:-_TAIL], begin, row, pieces, beliefs)
    whole: dict[str, Any] = {"belief": beliefs}
    for name in (*_WHOLES, *_FLOATS):
        whole[name] = np.concatenate(pieces.pop(name))
    return whole


def _taken(
    raw: bytes, begin: int, row: np.dtype[np.void], pieces: dict[str, list[Any]], beliefs: bytearray
) -> tuple[bytes, int]:
    """Take the rows that are whole into the pieces; what is left of the bytes, and where the next row begins there."""
    count = max(len(raw) - begin, 0) // row.itemsize
    rows = np.frombuffer(raw, row, offset=begin, count=count) if count else np.empty(0, row)
    for name, kept in pieces.items():
        kept.append(rows[name].astype(np.int64 if name in _WHOLES else np.float64))
    beliefs += rows["belief"].tobytes()
    return raw[begin + count * row.itemsize :] if count else raw, 0 if count else begin


def _row(width: int) -> np.dtype[np.void]:
    """A row of a binary COPY: the number of fields, then each with its length before it, all in network order."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in _WHOLES:
        fields += [(f"{name}_size", ">i4"), (name, ">i8")]
    for name in _FLOATS:
        fields += [(f"{name}_size", ">i4"), (name, ">f8")]
    return np.dtype([*fields, ("belief_size", ">i4"), ("belief", f"V{8 * width}")])
