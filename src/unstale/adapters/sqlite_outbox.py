"""What is still to be told, in SQLite: an event per new version while someone listens, and how far each has been told.

An event holds its address, so that it can be told even if the source is removed meanwhile. How many are kept is
bounded, whoever listens or not: the oldest go, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import apsw

from unstale.adapters.store_shared import EVENT_BYTES, MOST_EVENT_BYTES, MOST_EVENTS, WEIGHED
from unstale.ports import Entry, Event, Setting

#: at most so many old events are looked at per new one
_LOOKS = 4
_LAST = "SELECT coalesce((SELECT value FROM counters WHERE name = 'events'), 0)"

#: the newest event that has no room, counted from the newest of all
_TOO_MUCH = (
    "SELECT max(number) FROM (SELECT number, sum(length(address) + ?) OVER (ORDER BY number DESC) AS bytes "
    "FROM events) WHERE bytes > ?"
)


def append(db: apsw.Connection, new: Sequence[tuple[Entry, int, bytes]], limit: float) -> Mapping[str, int]:
    """Events for new versions with their digests, if anyone listens; what to count. What is dated before the limit
    goes, and what there is too much of."""
    if not new or not db.execute("SELECT EXISTS (SELECT 1 FROM listeners)").get:
        return {}
    first = db.execute(_LAST).get + 1
    db.executemany(
        "INSERT INTO events(number, source, address, version, at, digest) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (number, e.claim.source, e.claim.address, version, e.polled_at, digest)
            for number, (e, version, digest) in enumerate(new, first)
        ),
    )
    last = first + len(new) - 1
    old = db.execute(
        "SELECT max(number) FROM (SELECT number, at FROM events ORDER BY number LIMIT ?) WHERE at < ?",
        (_LOOKS * len(new), limit),
    ).get
    upto = max(last - MOST_EVENTS, old or 0)
    if first // WEIGHED != (last + 1) // WEIGHED:
        upto = max(upto, db.execute(_TOO_MUCH, (EVENT_BYTES, MOST_EVENT_BYTES)).get or 0)
    db.execute("DELETE FROM events WHERE number <= ?", (upto,))
    return {"events": len(new), "untold": db.changes()}


def subscribe(db: apsw.Connection, names: Iterable[str], others: bool, setting: Setting | None) -> bool:
    """These listen from now on, and nobody else unless `others` do; who listened before goes on where it was.

    With `setting`, only while it has this value. Inside a transaction.
    """
    if (
        setting is not None
        and (db.execute("SELECT value FROM settings WHERE name = ?", setting[:1]).get or b"") != (setting[1])
    ):
        return False
    wanted = set(names)
    listening = {name for (name,) in db.execute("SELECT name FROM listeners")}
    if not others:
        db.executemany("DELETE FROM listeners WHERE name = ?", ((name,) for name in listening - wanted))
    db.executemany(
        f"INSERT INTO listeners(name, told) VALUES (?, ({_LAST}))", ((name,) for name in sorted(wanted - listening))
    )
    _drop_told(db)
    return True


def untold(db: apsw.Connection, name: str, limit: int) -> list[Event]:
    """The oldest events that `name` has not been told."""
    rows = db.execute(
        "SELECT number, source, address, version, at, digest FROM events "
        "WHERE number > (SELECT told FROM listeners WHERE name = ?) ORDER BY number LIMIT ?",
        (name, limit),
    )
    return [Event(*row) for row in rows]


def told(db: apsw.Connection, name: str, number: int) -> None:
    """`name` has been told up to this number, at most what there is: nothing yet to come counts as told."""
    db.execute(f"UPDATE listeners SET told = max(told, min(?, ({_LAST}))) WHERE name = ?", (number, name))
    _drop_told(db)


def _drop_told(db: apsw.Connection) -> None:
    db.execute(f"DELETE FROM events WHERE number <= coalesce((SELECT min(told) FROM listeners), ({_LAST}))")
