"""How sources stand, in columns: the whole fleet, or some of it, read from SQLite.

Rules of this file:
1. The fleet is read table by table, each in the order in which it lies in the file: looking up a row of one table for
   every row of another takes longer than all the rest.
2. Most sources are listed alike: who is listed as the first one is takes its numbers from it, and only the others' are
   read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np

from unstale.adapters.sqlite_claims import column
from unstale.adapters.sqlite_tables import COST
from unstale.core.checks import Floats
from unstale.keeper.scheduler import Integers
from unstale.ports import FleetColumns, Price, widened

#: rows that are turned into columns at a time: more no longer fit the processor's cache
_CHUNK = 256
#: what is listed of a source in numbers, and of which columns that is made
_LISTED, _MADE_OF = (
    f"paused, weight, {COST}, shortest, longest, cost",
    "paused, weight, cost, learned, shortest, longest",
)
#: what is known of it
_KNOWN = "source, failures, due, last, found, belief"
#: the columns of a price
PRICE = ", ".join(Price.__slots__)


def whole_fleet(db: apsw.Connection, width: int) -> FleetColumns:
    """Everybody, ids rising. Inside a transaction."""
    count: int = db.execute("SELECT count(*) FROM sources").get
    (ids, host), _, _ = _read(db.execute("SELECT id, host FROM sources ORDER BY id"), count, 2, 0)
    usual: Any = db.execute(f"SELECT {_LISTED} FROM sources LIMIT 1").fetchone() or (0,) * 6
    paused, numbers = np.full(count, usual[0]), np.tile(np.array(usual[1:])[:, None], count)
    others = db.execute(
        f"SELECT id, {_LISTED} FROM sources "
        f"WHERE ({_MADE_OF}) IS NOT (SELECT {_MADE_OF} FROM sources LIMIT 1) ORDER BY id"
    )
    (which, resting), otherwise, _ = _read(others, count, 2, 5)
    rows = np.searchsorted(ids, which)
    paused[rows], numbers[:, rows] = resting, otherwise
    count = db.execute("SELECT count(*) FROM beliefs").get
    known = db.execute(f"SELECT {_KNOWN} FROM beliefs ORDER BY source")
    (source, failures), times, beliefs = _read(known, count, 2, 3, width)
    if not np.array_equal(ids, source):
        # Of a damaged store: whoever is in one table alone is nobody.
        here, there = np.isin(ids, source), np.isin(source, ids)
        ids, host, paused, numbers = ids[here], host[here], paused[here], numbers[:, here]
        failures, times, beliefs = failures[there], times[:, there], beliefs[there]
    return _standing(db, np.array([ids, host, paused, failures]), np.concatenate([numbers, times]), beliefs)


def some_sources(db: apsw.Connection, sources: Sequence[int], width: int) -> FleetColumns:
    """Those of these that there are, ids rising. Inside a transaction."""
    rows = db.execute(
        f"SELECT id, host, paused, failures, weight, {COST}, shortest, longest, cost, due, last, found, belief "
        "FROM carray(?) w CROSS JOIN sources s ON s.id = w.value CROSS JOIN beliefs b ON b.source = w.value",
        (column(sorted({int(source) for source in sources})),),
    ).fetchall()
    return _standing(db, *_read(iter(rows), len(rows), 4, 8, width))


def _read(
    rows: Iterator[Any], most: int, counts: int, numbers: int, width: int | None = None
) -> tuple[Integers, Floats, Floats]:
    """At most so many rows in columns: some whole numbers, some others, and with a width a belief behind them."""
    whole, floats = np.zeros((counts, most), dtype=np.int64), np.zeros((numbers, most))
    beliefs, begin = np.zeros((most, width or 0)), 0
    while chunk := list(islice(rows, _CHUNK)):
        columns = list(zip(*chunk, strict=True))
        part = slice(begin, begin + len(chunk))
        for row, told in zip(whole, columns, strict=False):
            row[part] = array("q", told)
        for values, told in zip(floats, columns[counts:], strict=False):
            values[part] = array("d", told)
        if width is not None and any(columns[-1]):
            beliefs[part] = np.frombuffer(_joined(columns[-1], width)).reshape(len(chunk), width)
        begin += len(chunk)
    return whole[:, :begin], floats[:, :begin], beliefs[:begin]


def _joined(blobs: Sequence[bytes | None], width: int) -> bytes:
    """Beliefs one after the other, each as many floats: as nearly all are, or made so."""
    try:
        if set(map(len, blobs)) == {8 * width}:  # type: ignore[arg-type]  # None has no length
            return b"".join(blobs)  # type: ignore[arg-type]
    except TypeError:
        pass
    return b"".join(widened(blob, width) for blob in blobs)


def _standing(db: apsw.Connection, whole: Integers, numbers: Floats, beliefs: Floats) -> FleetColumns:
    """Columns with the names of hosts, and what holds for all."""
    source, host, paused, failures = whole
    weight, cost, shortest, longest, listed, due, last, found = numbers
    hosts, place = np.unique(host, return_inverse=True)
    names: Any = db.execute(
        "SELECT h.name FROM carray(?) w CROSS JOIN hosts h ON h.id = w.value", (column(hosts.tolist()),)
    )
    named: Any = db.execute("SELECT name, value FROM settings").fetchall()
    settings: dict[str, bytes] = dict(named)
    price: Any = db.execute(f"SELECT {PRICE} FROM prices ORDER BY id DESC LIMIT 1").fetchone()
    return FleetColumns(
        source,
        weight,
        cost,
        shortest,
        longest,
        place.astype(np.int64, copy=False),
        tuple(name for (name,) in names),
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
