"""Claims in SQLite: who waits in `sched`, who is held in `leases`, and what a claim is spent for."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from unstale.ports import Claim, Entry

PUT_BACK = "INSERT INTO sched(due, source) SELECT due, source FROM beliefs WHERE source = ?"


def claim(
    db: apsw.Connection, now: float, limit: int, lease: float, owner: str, among: Sequence[int] | None
) -> list[Claim]:
    """Up to so many sources that are due, longest overdue first; claims whose time is over are put back first."""
    expired = db.execute(
        "DELETE FROM leases WHERE claimed_until <= ? OR claimed_until > ? RETURNING source", (now, now + lease)
    ).fetchall()
    db.executemany(PUT_BACK, expired)
    due = _head(db, now, limit) if among is None else _of(db, now, limit, among)
    first = db.execute("SELECT value FROM counters WHERE name = 'claimed'").get or 0
    count(db, {"expired": len(expired), "claimed": len(due)})
    if not due:
        return []
    if among is None:
        # What was read is the head of the table: all up to the last one.
        db.execute("DELETE FROM sched WHERE (due, source) <= (?, ?)", (due[-1][1], due[-1][0]))
    else:
        db.executemany("DELETE FROM sched WHERE source = ? AND due = ?", due)
    which = column(source for source, _ in due)
    db.execute(
        "INSERT INTO leases(source, token, claimed_until, owner) SELECT value, ? + rowid, ?, ? FROM carray(?)",
        (first, now + lease, owner, which),
    )
    # One statement for all: starting one per source costs ten times what it reads.
    details: Any = db.execute(
        "SELECT s.id, s.address, s.kind, b.due, s.options, b.last, b.failures, b.latest, b.version, "
        "c.etag, c.last_modified, c.fingerprint FROM carray(?) w CROSS JOIN sources s ON s.id = w.value "
        "JOIN beliefs b ON b.source = s.id LEFT JOIN copies c ON c.source = s.id AND c.version = b.version",
        (which,),
    )
    token = {source: first + 1 + i for i, (source, _) in enumerate(due)}
    claims = [
        Claim(source, token[source], address, kind, time, json.loads(options) if options else {}, *rest)
        for source, address, kind, time, options, *rest in details
    ]
    claims.sort(key=lambda claim: claim.token)
    return claims


def waiting(db: apsw.Connection, until: float) -> list[tuple[int, float]]:
    """Who waits and is due by then, longest overdue first."""
    return _head(db, until, -1)


def spend(db: apsw.Connection, entries: Sequence[Entry]) -> set[int]:
    """The tokens of those entries whose leases were held, which they are no longer."""
    if not entries:
        return set()
    # A token is given out once, so that it stands for its source; the source is what leases are found by.
    spent: Any = db.execute(
        "DELETE FROM leases WHERE source IN carray(?) AND token IN carray(?) RETURNING token",
        (column(e.claim.source for e in entries), column(e.claim.token for e in entries)),
    )
    return {token for (token,) in spent}


def _head(db: apsw.Connection, now: float, limit: int) -> list[Any]:
    return db.execute(
        "SELECT source, due FROM sched WHERE due <= ? ORDER BY due, source LIMIT ?", (now, limit)
    ).fetchall()


def _of(db: apsw.Connection, now: float, limit: int, sources: Iterable[int]) -> list[Any]:
    if not (which := sorted({int(source) for source in sources})):
        return []
    # Who waits stands in `sched` at the time that its belief says.
    return db.execute(
        "SELECT b.source, b.due FROM carray(?) w CROSS JOIN beliefs b ON b.source = w.value "
        "CROSS JOIN sched s ON s.due = b.due AND s.source = b.source WHERE b.due <= ? ORDER BY b.due, b.source LIMIT ?",
        (column(which), now, limit),
    ).fetchall()


def column(numbers: Iterable[int]) -> Any:
    """Ids as SQLite reads them from memory, in one statement, and in this order if it is joined from the left."""
    # There must be one: nobody has this id.
    return apsw.carray(array("q", numbers) or array("q", [-1]))


def take_out(db: apsw.Connection, sources: Iterable[tuple[int]]) -> None:
    """Out of `sched` and `leases`: a claim on it is void."""
    which = list(sources)
    db.executemany("DELETE FROM sched WHERE source = ?1 AND due = (SELECT due FROM beliefs WHERE source = ?1)", which)
    ended = db.executemany("DELETE FROM leases WHERE source = ? RETURNING source", which).fetchall()
    count(db, {"ended": len(ended)})


def count(db: apsw.Connection, more: Mapping[str, int]) -> None:
    """Add to counters."""
    db.executemany(
        "INSERT INTO counters(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
        ((name, value) for name, value in more.items() if value),
    )
