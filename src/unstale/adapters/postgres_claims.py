"""Claims in PostgreSQL: who waits, who is claimed and until when, all in the row of the source's belief."""

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
#: what ends a claim
FREE = "token = NULL, claimed_at = NULL, claimed_until = NULL, owner = NULL"
#: the owner of a source that waits and was sent away from a busy host, to come back when it is due
SENT = ""
#: how often a claim looks for more after having sent some away from hosts that are not free
_ROUNDS = 5


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
        f"UPDATE beliefs SET {FREE} WHERE source IN (SELECT source FROM beliefs WHERE token IS NOT NULL "
        "AND (claimed_until <= %s OR claimed_at > %s) FOR UPDATE SKIP LOCKED)".encode(),
        (now, now + SKEW),
    ).rowcount


def end(db: Connection, owner: str, claims: Sequence[Claim] | None = None, claimed_at: float | None = None) -> int:
    """End these claims of an owner, or all, or those of one moment; how many."""
    if claims is None:
        return db.execute(
            f"UPDATE beliefs SET {FREE} WHERE token IS NOT NULL AND owner = %s "
            "AND claimed_at = coalesce(%s::float8, claimed_at)".encode(),
            (owner, claimed_at),
        ).rowcount
    return db.execute(
        f"UPDATE beliefs b SET {FREE} FROM unnest(%s::bigint[], %s::bigint[]) n(source, token) "
        "WHERE b.source = n.source AND b.token = n.token AND b.owner = %s".encode(),
        ([claim.source for claim in claims], [claim.token for claim in claims], owner),
    ).rowcount


def held(db: Connection, entries: Sequence[Entry]) -> set[int]:
    """The tokens of those entries whose claims are held; their rows are ours until the transaction ends."""
    if not entries:
        return set()
    rows: Any = db.execute(
        "SELECT b.token FROM beliefs b JOIN unnest(%s::bigint[], %s::bigint[]) n(source, token) "
        "ON b.source = n.source AND b.token = n.token ORDER BY b.source FOR UPDATE OF b",
        ([e.claim.source for e in entries], [e.claim.token for e in entries]),
    ).fetchall()
    return {token for (token,) in rows}


def waiting(db: Connection, until: float) -> list[tuple[int, float]]:
    """Who waits and is due by then, longest overdue first."""
    rows: Any = db.execute(
        "SELECT source, due FROM beliefs WHERE awake AND token IS NULL AND due <= %s ORDER BY due, source", (until,)
    ).fetchall()
    return [(source, due) for source, due in rows]


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
        f"SELECT source, site, owner IS NOT NULL FROM beliefs WHERE awake AND token IS NULL AND due <= %s {chosen_only}"
        "ORDER BY due, source LIMIT %s FOR UPDATE SKIP LOCKED".encode(),
        (now, *([] if only is None else [only]), limit),
    ).fetchall()
    chosen, latest, moved = [source for source, *_ in head], {}, False
    if grants is not None and head:
        found = sort_out(db, head, now, grants)
        latest, moved = found.free, bool(found.later)
        chosen = [source for source in chosen if source in latest]
        if moved:
            db.execute(
                "UPDATE beliefs b SET due = n.due, owner = %s FROM unnest(%s::bigint[], %s::float8[]) n(source, due) "
                "WHERE b.source = n.source",
                (SENT, list(found.later), list(found.later.values())),
            )
    if not chosen:
        return [], moved
    rows: Any = db.execute(
        "WITH n AS MATERIALIZED (SELECT source, nextval('tokens') AS token FROM unnest(%s::bigint[]) source), "
        "b AS (UPDATE beliefs b SET token = n.token, claimed_at = %s, claimed_until = %s, owner = %s FROM n "
        " WHERE b.source = n.source RETURNING b.*) "
        "SELECT b.source, b.token, s.address, s.kind, b.due, s.options, b.last, b.failures, b.latest, b.version, "
        "c.etag, c.last_modified, c.fingerprint FROM b JOIN sources s ON s.id = b.source "
        "LEFT JOIN copies c ON c.source = b.source AND c.version = b.version ORDER BY b.token",
        (chosen, now, now + lease, owner),
    ).fetchall()
    return [_claim(row, latest.get(row[0], math.inf)) for row in rows], moved


def _claim(row: Sequence[Any], begin_by: float) -> Claim:
    source, token, address, kind, due, options, last, failures, latest, version, etag, modified, counted = row
    about = json.loads(options) if options else {}
    return Claim(
        source, token, address, kind, due, about, last, failures, latest, version, etag, modified, counted, begin_by
    )
