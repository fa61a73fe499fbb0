"""Sources as they are listed, in SQLite: how new ones are taken up, and known ones take a new listing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw

from unstale.adapters.sqlite_claims import count, end_claims
from unstale.adapters.sqlite_states import StoreConnection, settle
from unstale.adapters.store_checks import refuse_duplicates
from unstale.adapters.store_shared import counts_otherwise
from unstale.ports import Listing


def add(
    db: StoreConnection, listings: Sequence[Listing], options: Sequence[str | None], now: float, *, refuse: bool
) -> list[int]:
    """Add all; their ids. Known addresses are refused, or take the new listing."""
    first = (db.execute("SELECT value FROM counters WHERE name = 'added'").get or 0) + 1
    # An empty store knows none of them.
    each = ((listing.address,) for listing in (listings if first > 1 else ()))
    rows: Any = db.executemany("SELECT address, id, kind, options FROM sources WHERE address = ?", each).fetchall()
    known: dict[str, int] = {address: source for address, source, *_ in rows}
    before: dict[str, tuple[str, str | None]] = {address: tuple(said) for address, _, *said in rows}
    if refuse:
        refuse_duplicates(listings, known.keys())
    hosts = _hosts(db, {listing.host for listing in listings})
    ids: list[int] = []
    replaced: list[tuple[Any, ...]] = []
    anew: list[tuple[int]] = []

    def new() -> Iterator[tuple[Any, ...]]:
        # One by one: the rows of a long list would be more than the list.
        following = first
        for s, text in zip(listings, options, strict=True):
            # Of those that are refused none is there, and none twice.
            source = None if refuse else known.get(s.address)
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
            if source is not None:
                replaced.append((*given, source))
                if s.address in before and counts_otherwise(s, *before[s.address]):
                    anew.append((source,))
                ids.append(source)
                continue
            if not refuse:
                known[s.address] = following
            ids.append(following)
            yield following, s.address, now, *given
            following += 1

    db.executemany(
        "INSERT INTO sources"
        "(id, address, added_at, kind, weight, cost, host, shortest, longest, options, paused) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        new(),
    )
    # Ids of before are smaller.
    added = max(max(ids, default=0) - first + 1, 0)
    count(db, {"added": added, "edited": bool(ids)})
    db.executemany(
        "UPDATE sources SET kind = ?, weight = ?, cost = ?, host = ?, shortest = ?, longest = ?, options = ?, "
        "paused = ? WHERE id = ?",
        replaced,
    )
    if added:
        # Their ids follow each other, after all that were given out before.
        db.execute(
            "INSERT INTO states(source, due, last, found, failures, latest, version, belief) "
            "SELECT id, ?, ?, ?, 0, 0, 0, NULL FROM sources WHERE id >= ? ORDER BY id",
            (now, -math.inf, -math.inf, first),
        )
        settle(db, added)
    _judge_anew(db, anew)
    # Of those that are there twice the last word counts.
    last = dict(zip(ids, listings, strict=True)) if replaced else {}
    end_claims(db, [(source,) for *_, source in replaced if last[source].paused])
    return ids


def _judge_anew(db: apsw.Connection, which: Sequence[tuple[int]]) -> None:
    """Other things count: what the newest copies are is not known by it, and polls under way judge by what did."""
    db.executemany("UPDATE copies SET fingerprint = NULL WHERE source = ?", which)
    end_claims(db, which)


def _hosts(db: apsw.Connection, names: Iterable[str]) -> dict[str, int]:
    each = [(name,) for name in sorted(names)]
    db.executemany("INSERT OR IGNORE INTO hosts(name) VALUES (?)", each)
    return {name: db.execute("SELECT id FROM hosts WHERE name = ?", (name,)).get for (name,) in each}
