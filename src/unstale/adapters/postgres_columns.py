"""Sources in columns, read from PostgreSQL as binary rows of equal length: nothing is parsed row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from psycopg import sql

from unstale.adapters.postgres_schema import Connection
from unstale.ports import FleetColumns, Price

#: bytes before the first row of a binary COPY, and after the last
_HEAD, _TAIL = 19, 2
#: the columns of a price
PRICE = ", ".join(Price.__slots__)
_FLOATS = ("weight", "cost", "shortest", "longest", "due", "last", "found")
_QUERY = (
    "COPY (SELECT s.id, s.host::bigint, s.paused::int::bigint, b.failures::bigint, s.weight, s.cost, s.shortest, "
    "s.longest, b.due, b.last, b.found, CASE WHEN octet_length(b.belief) <= {size} "
    "THEN b.belief || substring({blank} FROM octet_length(b.belief) + 1) ELSE {blank} END "
    "FROM sources s JOIN beliefs b ON b.source = s.id {where} ORDER BY s.id) TO STDOUT (FORMAT binary)"
)


def columns_of(db: Connection, width: int, sources: Sequence[int] | None = None) -> FleetColumns:
    """All sources, or these, as they stand; inside a transaction that sees one instant."""
    where: sql.Composable = sql.SQL("")
    if sources is not None:
        where = sql.SQL("WHERE s.id = ANY({}::bigint[])").format(sorted({int(source) for source in sources}))
    query = sql.SQL(_QUERY).format(size=8 * width, blank=bytes(8 * width), where=where)
    with db.cursor() as cursor, cursor.copy(query) as copy:
        raw = b"".join(copy)
    rows = np.frombuffer(raw, _row(width), offset=_HEAD, count=(len(raw) - _HEAD - _TAIL) // _row(width).itemsize)
    source, host, paused, failures = (rows[name].astype(np.int64) for name in ("id", "host", "paused", "failures"))
    weight, cost, shortest, longest, due, last, found = (rows[name].astype(np.float64) for name in _FLOATS)
    # What a learner keeps is in the machine's own order, as its bytes came.
    beliefs = np.frombuffer(rows["belief"].tobytes()).reshape(len(rows), width).copy()
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
    )


def _row(width: int) -> np.dtype[np.void]:
    """A row of a binary COPY: the number of fields, then each with its length before it, all in network order."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in ("id", "host", "paused", "failures"):
        fields += [(f"{name}_size", ">i4"), (name, ">i8")]
    for name in _FLOATS:
        fields += [(f"{name}_size", ">i4"), (name, ">f8")]
    return np.dtype([*fields, ("belief_size", ">i4"), ("belief", f"V{8 * width}")])
