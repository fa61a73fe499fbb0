"""What is still to be told, in PostgreSQL: an event per new version while someone listens, and how far each was told.

Events are numbered under the lock of one row, held until the commit: no number appears after a greater one. How many
are kept is bounded, whoever listens or not: the oldest go, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unstale.adapters.postgres_schema import Connection
from unstale.adapters.store_shared import EVENT_BYTES, MOST_EVENT_BYTES, MOST_EVENTS, WEIGHED
from unstale.ports import Entry, Event, Setting

#: at most so many old events are looked at per new one
_LOOKS = 4
_LAST = "coalesce((SELECT value FROM counters WHERE name = 'events' AND shard = 0), 0)"

#: the newest event that has no room, counted from the newest of all
_TOO_MUCH = (
    "SELECT max(number) FROM (SELECT number, sum(length(address) + %s) OVER (ORDER BY number DESC) AS bytes "
    "FROM events) weighed WHERE bytes > %s"
)


def append(db: Connection, new: Sequence[tuple[Entry, int, bytes]], horizon: float) -> None:
    """Events for new versions with their digests, if anyone listens. What passed the horizon goes, and what there is
    too much of."""
    if not new or db.execute("SELECT 1 FROM listeners LIMIT 1").fetchone() is None:
        return
    row = db.execute(
        "INSERT INTO counters VALUES ('events', 0, %s) ON CONFLICT (name, shard) DO UPDATE "
        "SET value = counters.value + excluded.value RETURNING value",
        (len(new),),
    ).fetchone()
    assert row is not None
    first = row[0] - len(new) + 1
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO events(number, source, address, version, at, digest) VALUES (%s, %s, %s, %s, %s, %s)",
            [
                (number, e.claim.source, e.claim.address, version, e.polled_at, digest)
                for number, (e, version, digest) in enumerate(new, first)
            ],
        )
    old = db.execute(
        "SELECT max(number) FROM (SELECT number, at FROM events ORDER BY number LIMIT %s) old WHERE at < %s",
        (_LOOKS * len(new), min(e.polled_at for e, _, _ in new) - horizon),
    ).fetchone()
    upto = max(row[0] - MOST_EVENTS, (old and old[0]) or 0)
    if first // WEIGHED != (row[0] + 1) // WEIGHED:
        much = db.execute(_TOO_MUCH, (EVENT_BYTES, MOST_EVENT_BYTES)).fetchone()
        upto = max(upto, (much and much[0]) or 0)
    gone = db.execute("DELETE FROM events WHERE number <= %s", (upto,)).rowcount
    if gone:
        db.execute(
            "INSERT INTO counters VALUES ('untold', 0, %s) ON CONFLICT (name, shard) DO UPDATE "
            "SET value = counters.value + excluded.value",
            (gone,),
        )


def subscribe(db: Connection, names: Iterable[str], others: bool, setting: Setting | None) -> bool:
    """These listen from now on, and nobody else unless `others` do; who listened before goes on where it was.

    With `setting`, only while it has this value. Inside a transaction.
    """
    # One after the other: who comes later sees what was said before, and what is said now.
    db.execute("LOCK TABLE listeners IN SHARE ROW EXCLUSIVE MODE")
    if setting is not None:
        row: Any = db.execute("SELECT value FROM settings WHERE name = %s", setting[:1]).fetchone()
        if (bytes(row[0]) if row else b"") != setting[1]:
            return False
    wanted = sorted(set(names))
    if not others:
        db.execute("DELETE FROM listeners WHERE name <> ALL(%s)", (wanted,))
    db.execute(
        f"INSERT INTO listeners SELECT name, {_LAST} FROM unnest(%s::text[]) name ON CONFLICT DO NOTHING".encode(),
        (wanted,),
    )
    _drop_told(db)
    return True


def untold(db: Connection, name: str, limit: int) -> list[Event]:
    """The oldest events that `name` has not been told."""
    rows = db.execute(
        "SELECT number, source, address, version, at, digest FROM events "
        "WHERE number > (SELECT told FROM listeners WHERE name = %s) ORDER BY number LIMIT %s",
        (name, limit),
    )
    return [Event(*row) for row in rows]


def told(db: Connection, name: str, number: int) -> None:
    """`name` has been told up to this number, at most what there is: nothing yet to come counts as told."""
    db.execute(
        f"UPDATE listeners SET told = greatest(told, least(%s, {_LAST})) WHERE name = %s".encode(), (number, name)
    )
    _drop_told(db)


def _drop_told(db: Connection) -> None:
    db.execute(f"DELETE FROM events WHERE number <= coalesce((SELECT min(told) FROM listeners), {_LAST})".encode())
