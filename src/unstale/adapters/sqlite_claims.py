"""Claims in SQLite: who is held in `leases`, who waits because nobody holds it, and what a claim is spent for."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import apsw

from unstale.adapters.sqlite_states import StoreConnection, carray
from unstale.core.rising import rising
from unstale.ports import Claim, Entry

#: what a claim tells of its source, in the order of its fields but for the token
_DETAILS = (
    "SELECT s.id, s.address, s.kind, b.due, s.options, b.last, b.failures, b.latest, b.version, "
    "c.etag, c.last_modified, c.fingerprint FROM carray(?) w CROSS JOIN states b ON b.id = w.value "
    "CROSS JOIN sources s ON s.id = b.source LEFT JOIN copies c ON c.source = b.source AND c.version = b.version "
    "WHERE b.due <= ? AND NOT s.paused AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.source = b.source)"
)
_FOREMOST = " ORDER BY b.due, b.source LIMIT ?"


def claim(
    db: StoreConnection, now: float, limit: int, lease: float, owner: str, among: Sequence[int] | None
) -> list[Claim]:
    """Up to so many sources that are due, longest overdue first; claims whose time is over have ended before."""
    expired = db.execute(
        "DELETE FROM leases WHERE claimed_until <= ? OR claimed_until > ? RETURNING source", (now, now + lease)
    ).fetchall()
    some = [source for source, _ in _head(db, now, limit)] if among is None else among
    # In the order of sources, which lie in it.
    asked = db.places.of_all(rising(some))
    # One statement for all: starting one per source costs ten times what it reads.
    rows: list[Any] = []
    if len(asked) > limit:
        rows = db.execute(_DETAILS + _FOREMOST, (carray(asked), now, limit)).fetchall()
    elif len(asked):
        # All of them: sorting wide rows costs SQLite a quarter of reading them.
        rows = db.execute(_DETAILS, (carray(asked), now)).fetchall()
        rows.sort(key=itemgetter(3, 0))
    first = db.execute("SELECT value FROM counters WHERE name = 'claimed'").get or 0
    count(db, {"expired": len(expired), "claimed": len(rows)})
    if rows:
        db.execute(
            "INSERT INTO leases(source, token, claimed_until, owner) SELECT value, ? + rowid, ?, ? FROM carray(?)",
            (first, now + lease, owner, column([row[0] for row in rows])),
        )
    return [
        Claim(source, token, address, kind, due, json.loads(options) if options else {}, *rest)
        for token, (source, address, kind, due, options, *rest) in enumerate(rows, first + 1)
    ]


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
        (column([e.claim.source for e in entries]), column([e.claim.token for e in entries])),
    )
    return {token for (token,) in spent}


def _head(db: apsw.Connection, now: float, limit: int) -> list[Any]:
    # Who is due is looked for first: of all others nothing else need be known.
    return db.execute(
        "SELECT b.source, b.due FROM states b CROSS JOIN sources s ON s.id = b.source WHERE b.due <= ? "
        "AND b.id = place(b.source) AND NOT s.paused "
        "AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.source = b.source) ORDER BY b.due, b.source LIMIT ?",
        (now, limit),
    ).fetchall()


def column(numbers: Iterable[int]) -> Any:
    """Ids as SQLite reads them from memory, in one statement, and in this order if it is joined from the left."""
    # There must be one: nobody has this id.
    return apsw.carray(array("q", numbers) or array("q", [-1]))


def end_claims(db: apsw.Connection, sources: Iterable[tuple[int]]) -> None:
    """Claims on these sources are void."""
    ended = db.executemany("DELETE FROM leases WHERE source = ? RETURNING source", sources).fetchall()
    count(db, {"ended": len(ended)})


def count(db: apsw.Connection, more: Mapping[str, int]) -> None:
    """Add to counters."""
    db.executemany(
        "INSERT INTO counters(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
        ((name, value) for name, value in more.items() if value),
    )
