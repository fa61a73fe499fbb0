"""How sources stand, in columns: the whole fleet, or some of it, read from SQLite.

Rules of this file:
1. The fleet is read table by table, each in the order in which it lies in the file: looking up a row of one table for
   every row of another takes longer than all the rest. States lie in the order of polls, old ones between the newest.
2. Most sources are listed alike, and do not fail: only of the others is read what is otherwise.
3. Beliefs are joined by SQLite, many at a time: an object of Python for each would take longer than reading them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import apsw
import numpy as np

from unstale.adapters.sqlite_claims import column
from unstale.adapters.sqlite_states import StoreConnection, carray
from unstale.adapters.sqlite_tables import COST
from unstale.core.checks import Floats
from unstale.keeper.scheduler import Bits, Integers, Wholes
from unstale.ports import FleetColumns, Price, widened

#: rows that are turned into columns at a time: more no longer fit the processor's cache
_CHUNK = 256
#: sources that are read at a time: what all statements need of them fits SQLite's cache
_PART = 4096
#: what is listed of a source in numbers, and of which columns that is made
_LISTED, _MADE_OF = (
    f"paused, weight, {COST}, shortest, longest, cost",
    "paused, weight, cost, learned, shortest, longest",
)
#: the columns of a price
PRICE = ", ".join(Price.__slots__)


class _Whole(NamedTuple):
    """What is whole numbers of sources, in columns."""

    source: Integers
    host: Wholes
    paused: Wholes | Bits
    failures: Wholes

    def of(self, rows: slice | Bits) -> _Whole:
        """Of some of them."""
        return _Whole(self.source[rows], self.host[rows], self.paused[rows], self.failures[rows])


def whole_fleet(db: StoreConnection, width: int) -> FleetColumns:
    """Everybody, ids rising. Inside a transaction."""
    count: int = db.execute("SELECT count(*) FROM sources").get
    usual: Any = db.execute(f"SELECT {_LISTED} FROM sources LIMIT 1").fetchone() or (0,) * 6
    # Small numbers in little room: a large fleet is in memory twice while it is taken over.
    host, failures = np.zeros(count, np.int32), np.zeros(count, np.int32)
    whole = _Whole(np.zeros(count, np.int64), host, np.zeros(count, np.bool_), failures)
    # Each by itself: whoever goes on with one of them would hold all.
    numbers = [np.full(count, one, np.float64) for one in (*usual[1:], 0.0, 0.0, 0.0)]
    beliefs = np.zeros((count, width))
    whole.paused[:] = usual[0]
    begin, last = 0, 0
    # What several statements read of a part stays in SQLite's cache between them: of the whole it would not.
    while len(part := _rows(db, "SELECT id, host FROM sources WHERE id > ? ORDER BY id LIMIT ?", (last, _PART), 2)):
        among, rows = (last, int(part[-1, 0])), slice(begin, begin + len(part))
        whole.source[rows], whole.host[rows] = part.T
        _listed_otherwise(db, among, whole.of(rows), [values[rows] for values in numbers[:5]])
        begin, last = rows.stop, among[1]
    known = _known(db, whole, numbers, beliefs)
    if not known.all():
        # Of a damaged store: whoever is in one table alone is nobody.
        whole, numbers, beliefs = whole.of(known), [values[known] for values in numbers], beliefs[known]
    return _standing(db, whole, numbers, beliefs)


def _rows(db: apsw.Connection, asked: str, among: Sequence[Any], columns: int, kind: Any = np.int64) -> Any:
    return np.fromiter(chain.from_iterable(db.execute(asked, among)), kind).reshape(-1, columns)


def _listed_otherwise(db: apsw.Connection, among: tuple[int, int], whole: _Whole, numbers: list[Floats]) -> None:
    """What is listed of those of a part who are listed otherwise than the first source is."""
    found = db.execute(
        f"SELECT id, {_LISTED} FROM sources WHERE id > ? AND id <= ? AND ({_MADE_OF}) IS NOT "
        f"(SELECT {_MADE_OF} FROM sources LIMIT 1) ORDER BY id",
        among,
    )
    (which, paused), listed, _ = _read(found, len(whole.source), 2, 5)
    rows = np.searchsorted(whole.source, which)
    whole.paused[rows] = paused
    for values, new in zip(numbers, listed, strict=True):
        values[rows] = new


def _known(db: StoreConnection, whole: _Whole, numbers: list[Floats], beliefs: Floats) -> Bits:
    """What is known of everybody; of whom anything is."""
    known, width = np.zeros(len(beliefs), np.bool_), beliefs.shape[1]
    places = db.places.each(whole.source)
    order = np.argsort(places, kind="stable")
    order = order[places[order] > 0]
    for begin in range(0, len(order), _PART):
        rows = order[begin : begin + _PART]
        which = places[rows]
        given: Sequence[Any] = (carray(which),)
        among = "carray(?) w CROSS JOIN states ON id = w.value"
        if which[-1] - which[0] == len(rows) - 1:
            # Nobody of these was polled since: a range is read faster than one after the other.
            given, among = (int(which[0]), int(which[-1])), "states WHERE id BETWEEN ? AND ?"
        times = _rows(db, f"SELECT due, last, found FROM {among}", given, 3, np.float64)
        if len(times) < len(rows):
            # Of a damaged store: some are missing.
            rows = rows[np.isin(which, _rows(db, f"SELECT id FROM {among}", given, 1))]
        known[rows] = True
        for values, new in zip(numbers[5:], times.T, strict=True):
            values[rows] = new
        # As text its bytes stay what they are, and texts are what SQLite joins.
        blobs, told, least, most, failing = db.execute(
            "SELECT CAST(group_concat(CAST(belief AS TEXT), '') AS BLOB), count(belief), min(length(belief)), "
            f"max(length(belief)), total(failures != 0) FROM {among}",
            given,
        ).get
        if failing:
            whole.failures[rows] = _rows(db, f"SELECT failures FROM {among}", given, 1)[:, 0]
        if told and not (told == len(rows) and least == most == 8 * width):
            each: Any = db.execute(f"SELECT belief FROM {among}", given).fetchall()
            blobs = _joined([belief for (belief,) in each], width)
        if told:
            beliefs[rows] = np.frombuffer(blobs).reshape(-1, width)
    return known


def some_sources(db: StoreConnection, sources: Sequence[int], width: int) -> FleetColumns:
    """Those of these that there are, ids rising. Inside a transaction."""
    rows = db.execute(
        f"SELECT s.id, host, paused, failures, weight, {COST}, shortest, longest, cost, due, last, found, belief "
        "FROM carray(?) w CROSS JOIN sources s ON s.id = w.value CROSS JOIN states b ON b.id = place(s.id)",
        (column(sorted({int(source) for source in sources})),),
    ).fetchall()
    whole, numbers, beliefs = _read(iter(rows), len(rows), 4, 8, width)
    return _standing(db, _Whole(*whole), numbers, beliefs)


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


def _standing(db: apsw.Connection, whole: _Whole, numbers: Iterable[Floats], beliefs: Floats) -> FleetColumns:
    """Columns with the names of hosts, and what holds for all."""
    source, host, paused, failures = whole
    weight, cost, shortest, longest, listed, due, last, found = numbers
    # Hosts are numbered from 1 on without gaps, nearly: counting them takes a tenth of sorting.
    there = np.bincount(host, minlength=1) > 0
    hosts = np.flatnonzero(there)
    place = (np.cumsum(there) - 1).astype(np.min_scalar_type(-len(hosts)))[host]
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
        place,
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
