"""Claims in PostgreSQL: who waits is in one narrow table, who is being polled in another, which is small.

Rules of this file:
1. A claim is a row of its own, one for each source at most: inserting it claims, deleting it ends the claim. The
   source's time stays where it is until an outcome moves it.
2. Who claims what is due, whoever's it is, holds its rows in the schedule until that is committed; rows that others
   hold are passed over. Who holds the shards of sources says which of them it claims, and waits for nobody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from unstale.adapters.postgres_arrays import float8s, int8s
from unstale.adapters.postgres_schema import Connection, through_all
from unstale.ports import Claim, Entry

#: seconds by which the clocks of workers may differ
SKEW = 60.0
_UNCLAIMED = "NOT EXISTS (SELECT 1 FROM claims c WHERE c.source = s.source)"


def claim(db: Connection, now: float, limit: int, lease: float, owner: str, among: Sequence[int] | None) -> list[Claim]:
    """Up to `limit` claims on what is due, longest overdue first."""
    chosen_only = "" if among is None else "AND source = ANY(%s::bigint[]) "
    head: Any = db.execute(
        f"SELECT source FROM schedule s WHERE awake AND due <= %s {chosen_only}AND {_UNCLAIMED} "
        "ORDER BY due, source LIMIT %s FOR UPDATE OF s SKIP LOCKED".encode(),
        (now, *([] if among is None else [[int(source) for source in among]]), limit),
    ).fetchall()
    claims = take(db, now, lease, owner, [source for (source,) in head])
    return [replace(claim, begin_by=math.inf) for claim in claims]


def take(
    db: Connection, now: float, lease: float, owner: str, sources: Sequence[int], until: float | None = None
) -> list[Claim]:
    """Claims on those of these sources that are due, now or until then, and that nobody has claimed.

    Their polls have to begin in the first half of the lease, so that they end before it.
    """
    if not sources:
        return []
    rows: Any = db.execute(
        "WITH n AS (INSERT INTO claims SELECT source, nextval('tokens'), site, %s, %s, %s FROM schedule s "
        f" WHERE source = ANY(%s::bigint[]) AND awake AND due <= %s AND {_UNCLAIMED} ORDER BY due, source "
        " ON CONFLICT (source) DO NOTHING RETURNING source, token) "
        "SELECT n.source, n.token, s.address, s.kind, w.due, s.options, b.last, b.failures, b.latest, b.version, "
        "c.etag, c.last_modified, c.fingerprint FROM n JOIN sources s ON s.id = n.source "
        "JOIN beliefs b ON b.source = n.source JOIN schedule w ON w.source = n.source "
        "LEFT JOIN copies c ON c.source = b.source AND c.version = b.version ORDER BY n.token".encode(),
        (now, now + lease, owner, int8s(sources), now if until is None else until),
        binary=True,
    ).fetchall()
    by = now + 0.5 * lease
    return [Claim(*(*row[:5], json.loads(row[5]) if row[5] else {}, *row[6:], by)) for row in rows]


def set_due(db: Connection, moves: Mapping[int, tuple[float, float | None]]) -> None:
    """Move the due times of sources, where the second number is given only if they still are that."""
    db.execute(
        "UPDATE schedule s SET due = n.due FROM (SELECT s.source, m.due, m.was FROM schedule s JOIN "
        " unnest(%s::bigint[], %s::float8[], %s::float8[]) m(source, due, was) USING (source) "
        " ORDER BY s.source FOR UPDATE OF s) n WHERE s.source = n.source AND n.was IN (s.due, 'NaN')",
        (
            int8s(list(moves)),
            float8s([time for time, _ in moves.values()]),
            float8s([old for _, old in moves.values()]),
        ),
    )


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
    """Who waits and is due by then, longest overdue first. Inside a transaction."""
    through_all(db)
    rows: Any = db.execute(
        f"SELECT source, due FROM schedule s WHERE awake AND due <= %s AND {_UNCLAIMED} ORDER BY due, source".encode(),
        (until,),
    ).fetchall()
    return [(source, due) for source, due in rows]


def _spent(db: Connection, held: list[tuple[int, int]], owner: str | None) -> set[int]:
    if not held:
        return set()
    # In the order of sources, so that nobody waits for one who waits for him.
    sources, tokens = zip(*sorted(held), strict=True)
    rows: Any = db.execute(
        "DELETE FROM claims c USING unnest(%s::bigint[], %s::bigint[]) n(source, token) "
        "WHERE c.source = n.source AND c.token = n.token AND c.owner = coalesce(%s, c.owner) RETURNING c.token",
        (int8s(sources), int8s(tokens), owner),
    ).fetchall()
    return {token for (token,) in rows}
