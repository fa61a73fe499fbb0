"""Sources as they are listed, in SQLite: how new ones are taken up, and known ones take a new listing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from unstale.adapters.sqlite_claims import PUT_BACK, count, take_out
from unstale.adapters.store_checks import refuse_duplicates
from unstale.adapters.store_shared import counts_otherwise
from unstale.ports import Listing


def add(
    db: apsw.Connection, listings: Sequence[Listing], options: Sequence[str | None], now: float, *, refuse: bool
) -> list[int]:
    """Add all; their ids. Known addresses are refused, or take the new listing."""
    following = (db.execute("SELECT value FROM counters WHERE name = 'added'").get or 0) + 1
    # An empty store knows none of them.
    each = ((listing.address,) for listing in (listings if following > 1 else ()))
    rows: Any = db.executemany("SELECT address, id, kind, options FROM sources WHERE address = ?", each).fetchall()
    known: dict[str, int] = {address: source for address, source, *_ in rows}
    before: dict[str, tuple[str, str | None]] = {address: tuple(said) for address, _, *said in rows}
    if refuse:
        refuse_duplicates(listings, known.keys())
    hosts = _hosts(db, {listing.host for listing in listings})
    ids, new, replaced, anew = [], [], [], []
    for s, text in zip(listings, options, strict=True):
        source = known.get(s.address)
        given = (
            s.kind,
            float(s.weight),
            float(s.cost),
            hosts[s.host],
            float(s.shortest),
            float(s.longest),
            text,
            int(s.paused),
        )
        if source is None:
            source = known[s.address] = following
            following += 1
            new.append((source, s.address, now, *given))
        else:
            replaced.append((*given, source))
            if s.address in before and counts_otherwise(s, *before[s.address]):
                anew.append((source,))
        ids.append(source)
    count(db, {"added": len(new), "edited": bool(new or replaced)})
    db.executemany(
        "INSERT INTO sources"
        "(id, address, added_at, kind, weight, cost, host, shortest, longest, options, paused) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        new,
    )
    db.executemany(
        "UPDATE sources SET kind = ?, weight = ?, cost = ?, host = ?, shortest = ?, longest = ?, options = ?, "
        "paused = ? WHERE id = ?",
        replaced,
    )
    db.executemany(
        "INSERT INTO beliefs(source, due, last, found, failures, latest, version, belief) "
        "VALUES (?, ?, ?, ?, 0, 0, 0, NULL)",
        ((source, now, -math.inf, -math.inf) for source, *_ in new),
    )
    _judge_anew(db, anew)
    last = dict(zip(ids, listings, strict=True))
    # Who is new stands nowhere yet.
    begun = {source for source, *_ in new}
    db.executemany(
        "INSERT INTO sched(due, source) VALUES (?, ?)", ((now, source) for source, *_ in new if not last[source].paused)
    )
    paused = [(source,) for source, listing in last.items() if listing.paused and source not in begun]
    awake = [(source,) for source, listing in last.items() if not listing.paused and source not in begun]
    take_out(db, paused)
    db.executemany(
        "INSERT OR IGNORE INTO sched(due, source) SELECT due, source FROM beliefs WHERE source = ?1 "
        "AND NOT EXISTS (SELECT 1 FROM leases WHERE source = ?1)",
        awake,
    )
    return ids


def _judge_anew(db: apsw.Connection, which: Sequence[tuple[int]]) -> None:
    """Other things count: what the newest copies are is not known by it, and polls under way judge by what did."""
    db.executemany("UPDATE copies SET fingerprint = NULL WHERE source = ?", which)
    ended = db.executemany("DELETE FROM leases WHERE source = ? RETURNING source", which).fetchall()
    db.executemany(PUT_BACK, ended)
    count(db, {"ended": len(ended)})


def _hosts(db: apsw.Connection, names: Iterable[str]) -> dict[str, int]:
    each = [(name,) for name in sorted(names)]
    db.executemany("INSERT OR IGNORE INTO hosts(name) VALUES (?)", each)
    return {name: db.execute("SELECT id FROM hosts WHERE name = ?", (name,)).get for (name,) in each}
