"""How each source stands, in SQLite: states are appended one after the other, and the newest of a source counts.

Rules of this file:
1. A state is written once, behind all others: what a poll writes does not grow with the fleet, as it would if the rows
   of sources that are polled in any order were changed where they lie.
2. Numbers of states rise and never come back. Rows go from the old end alone, and never the newest of all.
3. What is still the newest of its source when its turn to go comes is written once more behind the others: so there
   are at most `SHARE` times as many states as sources.
4. Where the newest of each lies is known in memory; `places` keeps it in chunks, one after the other every few polls,
   so that who opens a file reads only the last few states to know it. It follows from the states, and is never more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any
from weakref import ref

import apsw
import numpy as np

from unstale.core.rising import rising
from unstale.keeper.scheduler import Integers

#: states that there may be for each source, and besides: more are read for nothing, fewer are written again too often
SHARE, SPARE = 1.8, 1_000
#: sources of a chunk of places, which with them fills a page: files are made so
CHUNK = 500
#: chunks that are written for each state that was appended
RATE = 1 / 96
#: states that are looked at from the old end for each that was appended, while there are too many
LOOKS = 3
#: states that are read and written again at a time
PART = 5_000

_COLUMNS = "source, due, last, found, failures, latest, version, belief"
#: a source that was removed has a last state, of which nothing but this is read
_GONE = -1


class Places:
    """Which state of each source is its newest, as one connection knows it; 0: none."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """What was appended may not be there: all is read anew when it is asked for."""
        self._at, self._upto = np.zeros(0, np.int64), np.zeros(0, np.int64)
        #: the newest state of all, how many sources there are, and up to where chunks were paid for
        self.last = self.sources = self._paid = 0

    def of(self, source: int) -> int:
        """The newest state of a source."""
        return int(self._at.item(source)) if 0 < source < len(self._at) else 0

    def each(self, sources: Integers) -> Integers:
        """The newest state of each of these sources, 0 of who has none."""
        inside = sources < len(self._at)
        found = np.zeros(len(sources), np.int64)
        found[inside] = self._at[sources[inside]]
        return found

    def of_all(self, sources: Sequence[int] | Integers) -> Integers:
        """The newest states of those of these sources that have one."""
        which = np.asarray(sources, dtype=np.int64)
        found = self._at[which[(which > 0) & (which < len(self._at))]]
        some: Integers = found[found > 0]
        return some

    def newest(self, states: Integers, sources: Integers) -> Any:
        """Which of these states, each with its source, are the newest of theirs."""
        return self._at[sources] == states

    def put(self, source: int, state: int) -> None:
        """A source has a new state."""
        self._take(np.array([[state, source]]))
        self.last = max(self.last, state)

    def follow(self, sources: Sequence[int], last: int) -> None:
        """These have new states, one after the other up to the last, if all before them are known."""
        if self.last == last - len(sources) > 0:
            self._take(np.column_stack((np.arange(self.last + 1, last + 1), sources)))
            self.last = last

    def catch_up(self, db: apsw.Connection) -> None:
        """Know what this transaction sees."""
        newest = db.execute("SELECT max(id) FROM states").get or 0
        if newest == self.last:
            return
        if not self.last:
            self._load(db)
        asked = f"SELECT iif(latest = {_GONE}, -id, id), source FROM states WHERE id > ? ORDER BY id"
        rows = np.fromiter(chain.from_iterable(db.execute(asked, (self.last,))), np.int64)
        self._take(rows.reshape(-1, 2))
        self.last = newest

    def keep(self, db: apsw.Connection) -> None:
        """Keep some chunks, those that were kept longest ago; all that there are none of yet."""
        which = np.flatnonzero(self._upto == 0)
        owed = int((self.last - self._paid) * RATE)
        if owed and not len(which):
            which = np.argpartition(self._upto, min(owed, len(self._upto)) - 1)[:owed]
        if not len(which):
            return
        self._paid = self.last
        db.executemany(
            "INSERT INTO places(chunk, upto, states) VALUES (?1, ?2, ?3) "
            "ON CONFLICT DO UPDATE SET upto = excluded.upto, states = excluded.states",
            [(k, self.last, self._at[k * CHUNK : (k + 1) * CHUNK].tobytes()) for k in sorted(which.tolist())],
        )
        self._upto[which] = self.last

    def _load(self, db: apsw.Connection) -> None:
        kept: Any = db.execute("SELECT upto, states FROM places ORDER BY chunk").fetchall()
        self._at = np.frombuffer(b"".join(states for _, states in kept), np.int64).copy()
        self._upto = np.array([upto for upto, _ in kept], np.int64)
        self.last = int(self._upto.min(initial=2**62)) if kept else 0
        # Whoever wrote a chunk last: what came since is owed, by whoever writes next.
        self._paid = int(self._upto.max(initial=0))
        self.sources = int(np.count_nonzero(self._at > 0))

    def _take(self, rows: Integers) -> None:
        if not len(rows):
            return
        states, sources = rows.T
        more = int(sources.max()) // CHUNK + 1 - len(self._upto)
        if more > 0:
            self._at = np.concatenate((self._at, np.zeros(more * CHUNK, np.int64)))
            self._upto = np.concatenate((self._upto, np.zeros(more, np.int64)))
        known = bool((self._at[sources] > 0).all() and (states > 0).all())
        # Of a source that is there twice the last one counts.
        self._at[sources] = states
        if not known:
            self.sources = int(np.count_nonzero(self._at > 0))


class StoreConnection(apsw.Connection):
    """A connection to a store file, which knows where in it sources stand: `place(source)` in SQL."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.places = Places()
        me = ref(self)

        def place(*given: Any) -> int:
            db = me()
            assert db is not None
            if not db.places.last:
                db.places.catch_up(db)
            return db.places.of(*given)

        def placed(*given: Any) -> None:
            db = me()
            assert db is not None
            if db.places.last:
                db.places.put(*given)
            else:
                db.places.catch_up(db)

        self.create_scalar_function("place", place, 1, deterministic=True)
        self.create_scalar_function("placed", placed, 2)


def carray(numbers: Integers) -> Any:
    """Numbers as SQLite reads them from memory, in this order if it is joined from the left; there must be one."""
    return apsw.carray(np.ascontiguousarray(numbers) if len(numbers) else np.zeros(1, np.int64))


def append(db: StoreConnection, states: Sequence[tuple[Any, ...]]) -> None:
    """New states of sources: when they are due, last answered, last found otherwise, failures, the newest observation
    and version, the belief. Inside a transaction."""
    if states:
        db.executemany(f"INSERT INTO states({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", states)
        db.places.follow([state[0] for state in states], db.last_insert_rowid())
        settle(db, len(states))


def move(db: StoreConnection, due: Sequence[tuple[int, float, float | None]]) -> None:
    """Sources are due at these times, where a third value is given only those that were due then. In a transaction."""
    for begin in range(0, len(due), PART):
        part = due[begin : begin + PART]
        found: Any = db.execute(
            f"SELECT {_COLUMNS} FROM carray(?) w CROSS JOIN states ON id = w.value",
            (carray(db.places.of_all(rising([source for source, *_ in part]))),),
        )
        stands = {state[0]: state for state in found}
        moved: dict[int, tuple[Any, ...]] = {}
        for source, time, was in part:
            state = moved.get(source) or stands.get(source)
            if state is not None and time != state[1] and was in (None, state[1]):
                moved[source] = (source, time, *state[2:])
        append(db, list(moved.values()))


def end(db: StoreConnection, sources: Sequence[int]) -> None:
    """These sources are removed."""
    db.executemany(
        f"INSERT INTO states({_COLUMNS}) VALUES (?, 0.0, 0.0, 0.0, 0, {_GONE}, 0, NULL)",
        [(source,) for source in sources],
    )
    settle(db, len(sources))


def settle(db: StoreConnection, appended: int) -> None:
    """After so many states were appended: let old ones go, and keep some places. Inside a transaction."""
    db.places.catch_up(db)
    _sweep(db, db.places, LOOKS * appended)
    db.places.keep(db)


def _sweep(db: StoreConnection, places: Places, looks: int) -> None:
    first = db.execute("SELECT min(id) FROM states").get or 0
    if places.last - first < SHARE * places.sources + SPARE:
        return
    upto = min(first + looks, places.last)
    found: Any = db.execute("SELECT id, source FROM states WHERE id < ? ORDER BY id", (upto,))
    states, sources = np.fromiter(chain.from_iterable(found), np.int64).reshape(-1, 2).T
    still = states[places.newest(states, sources)]
    if len(still):
        db.execute(
            f"INSERT INTO states({_COLUMNS}) SELECT {_COLUMNS} FROM carray(?) w CROSS JOIN states ON id = w.value",
            (carray(still),),
        )
    db.execute("DELETE FROM states WHERE id < ?", (upto,))
    places.catch_up(db)
