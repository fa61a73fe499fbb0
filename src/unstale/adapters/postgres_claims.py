"""Claims in PostgreSQL: who waits is in one narrow table, who is being polled in another, which is small.

Rules of this file:
1. A claim is a row of its own, one for each source at most: inserting it claims, deleting it ends the claim. The
   source's time stays where it is until an outcome moves it.
2. Who claims a source holds its row in the schedule until that is committed; rows that others hold are passed over.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from unstale.adapters.postgres_hosts import Grants, sort_out
from unstale.adapters.postgres_schema import Connection
from unstale.ports import Claim, Entry

#: seconds by which the clocks of workers may differ
SKEW = 60.0
#: how often a claim looks for more after having sent some away from hosts that are not free
_ROUNDS = 5
#: of those who are due the longest, so many are looked at to find who is latest in its own interval
_HEAD = 20_000
_UNCLAIMED = "NOT EXISTS (SELECT 1 FROM claims c WHERE c.source = s.source)"


def claim(
    db: Connection,
    now: float,
    limit: int,
    lease: float,
    owner: str,
    grants: Grants | None,
    among: Sequence[int] | None,
) -> list[Claim]:
    """Up to `limit` claims on what is due, longest overdue first."""
    claims: list[Claim] = []
    only = None if among is None else [int(source) for source in among]
    for _ in range(_ROUNDS):
        more, moved = _some(db, now, limit - len(claims), lease, owner, grants, only)
        claims += more
        if not moved or len(claims) == limit:
            break
    return claims


def expire(db: Connection, now: float) -> int:
    """End the claims whose time is over, and those made under a clock that was far ahead; how many."""
    return db.execute(
        "DELETE FROM claims WHERE source IN (SELECT source FROM claims WHERE claimed_until <= %s OR claimed_at > %s "
        "FOR UPDATE SKIP LOCKED)",
        (now, now + SKEW),
    ).rowcount


def end(db: Connection, owner: str, claims: Sequence[Claim] | None = None, claimed_at: float | None = None) -> int:
    """End these claims of an owner, or all, or those of one moment; how many."""
    if claims is None:
        return db.execute(
            "DELETE FROM claims WHERE owner = %s AND claimed_at = coalesce(%s::float8, claimed_at)", (owner, claimed_at)
        ).rowcount
    return len(_spent(db, [(claim.source, claim.token) for claim in claims], owner))


def spend(db: Connection, entries: Sequence[Entry]) -> set[int]:
    """End the claims of these entries that are held; their tokens."""
    return _spent(db, [(e.claim.source, e.claim.token) for e in entries], None)


def waiting(db: Connection, until: float) -> list[tuple[int, float]]:
    """Who waits and is due by then, longest overdue first."""
    rows: Any = db.execute(
        f"SELECT source, due FROM schedule s WHERE awake AND due <= %s AND {_UNCLAIMED} ORDER BY due, source".encode(),
        (until,),
    ).fetchall()
    return [(source, due) for source, due in rows]


def latest(db: Connection, now: float, usual: float, most: int) -> list[tuple[int, bool]]:
    """Who is due, at most so many, and whether it was sent away from a busy host: these first, then the latest."""
    rows: Any = db.execute(
        "SELECT source, sent FROM (SELECT source, sent, due, span FROM schedule s WHERE awake AND due <= %(now)s "
        f"AND {_UNCLAIMED} ORDER BY due, source LIMIT {_HEAD}) s ORDER BY sent DESC, CASE WHEN sent THEN due END, "
        "(%(now)s - due) / CASE WHEN span > 0 THEN span ELSE %(usual)s END DESC, due, source LIMIT %(most)s".encode(),
        {"now": now, "usual": usual, "most": most},
    ).fetchall()
    return [(source, sent) for source, sent in rows]


def _spent(db: Connection, held: list[tuple[int, int]], owner: str | None) -> set[int]:
    if not held:
        return set()
    # In the order of sources, so that nobody waits for one who waits for him.
    sources, tokens = zip(*sorted(held), strict=True)
    rows: Any = db.execute(
        "DELETE FROM claims c USING unnest(%s::bigint[], %s::bigint[]) n(source, token) "
        "WHERE c.source = n.source AND c.token = n.token AND c.owner = coalesce(%s, c.owner) RETURNING c.token",
        (list(sources), list(tokens), owner),
    ).fetchall()
    return {token for (token,) in rows}


def _some(
    db: Connection,
    now: float,
    limit: int,
    lease: float,
    owner: str,
    grants: Grants | None,
    only: list[int] | None,
) -> tuple[list[Claim], bool]:
    """Claim what may be claimed of the head of those who wait; whether more are worth a look."""
    chosen_only = "" if only is None else "AND source = ANY(%s::bigint[]) "
    head: Any = db.execute(
        f"SELECT source, site, sent, due FROM schedule s WHERE awake AND due <= %s {chosen_only}AND {_UNCLAIMED} "
        "ORDER BY due, source LIMIT %s FOR UPDATE OF s SKIP LOCKED".encode(),
        (now, *([] if only is None else [only]), limit),
    ).fetchall()
    chosen, latest, moved = head, {}, False
    if grants is not None and head:
        found = sort_out(db, [row[:3] for row in head], now, grants)
        latest, moved = found.free, bool(found.later)
        chosen = [row for row in head if row[0] in latest]
        if moved:
            db.execute(
                "UPDATE schedule s SET due = n.due, sent = true FROM unnest(%s::bigint[], %s::float8[]) n(source, due) "
                "WHERE s.source = n.source",
                (list(found.later), list(found.later.values())),
            )
    if not chosen:
        return [], moved
    sources, sites, _, dues = zip(*chosen, strict=True)
    rows: Any = db.execute(
        "WITH n AS (INSERT INTO claims SELECT source, nextval('tokens'), site, %s, %s, %s "
        # Others may have claimed one after we saw it and before we held it: that is seen now.
        f" FROM unnest(%s::bigint[], %s::int[]) s(source, site) WHERE {_UNCLAIMED} RETURNING source, token) "
        "SELECT n.source, n.token, s.address, s.kind, s.options, b.last, b.failures, b.latest, b.version, "
        "c.etag, c.last_modified, c.fingerprint FROM n JOIN sources s ON s.id = n.source "
        "JOIN beliefs b ON b.source = n.source "
        "LEFT JOIN copies c ON c.source = b.source AND c.version = b.version ORDER BY n.token".encode(),
        (now, now + lease, owner, list(sources), list(sites)),
    ).fetchall()
    due = dict(zip(sources, dues, strict=True))
    return [_claim(row, due[row[0]], latest.get(row[0], math.inf)) for row in rows], moved


def _claim(row: Sequence[Any], due: float, begin_by: float) -> Claim:
    source, token, address, kind, options, last, failures, latest, version, etag, modified, counted = row
    about = json.loads(options) if options else {}
    return Claim(
        source, token, address, kind, due, about, last, failures, latest, version, etag, modified, counted, begin_by
    )
