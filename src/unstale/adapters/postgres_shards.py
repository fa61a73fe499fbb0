"""Shards in PostgreSQL: sources belong to them by host, and each is held by one worker at most, who polls its sources.

Rules of this file:
1. Who should hold a shard is not negotiated: of the workers that are alive, the one whose name and the shard's number
   have the highest hash (rendezvous hashing). One that comes or goes moves its own part of them and nothing else.
2. A shard is taken only from nobody, or from who has no row among the workers. Who takes it ends the claims that are
   left there: what comes of them is dropped, and their sources are left alone until they would have ended.
3. Claims begin by holding the worker's row: whoever declares it gone waits for them, and they are made no more then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from unstale.adapters import postgres_claims
from unstale.adapters.postgres_arrays import float8s, int8s
from unstale.adapters.postgres_schema import CLAIMING, Connection, locking, through_all
from unstale.adapters.postgres_shelf import GONE, NOW
from unstale.adapters.postgres_tables import OF_SOURCE, SHARDS
from unstale.ports import HeldShards

_MAY_CLAIM = (
    f"SELECT {NOW}, set_config('synchronous_commit', 'off', true), {locking(CLAIMING, shared=True)} "
    "FROM workers WHERE owner = %s FOR KEY SHARE"
).encode()


def hold(db: Connection, owner: str, let_go: Sequence[int]) -> tuple[HeldShards, int]:
    """Let go of shards and take those that this worker should hold and nobody does; how many claims that has ended."""
    if let_go:
        db.execute("UPDATE shards SET owner = NULL WHERE owner = %s AND shard = ANY(%s)", (owner, list(let_go)))
    # In the order of names: nobody waits for one who waits for him.
    db.execute(
        f"DELETE FROM workers WHERE owner IN (SELECT owner FROM workers WHERE at < {NOW} - %s ORDER BY owner "
        "FOR UPDATE)".encode(),
        (GONE,),
    )
    alive = tuple(row[0] for row in db.execute("SELECT owner FROM workers ORDER BY owner").fetchall())
    rows: Any = db.execute("SELECT shard, owner, epoch FROM shards").fetchall()
    wanted = set(_wanted(alive).get(owner, ()))
    free = sorted(shard for shard, by, _ in rows if shard in wanted and by != owner and by not in alive)
    held = {shard: epoch for shard, by, epoch in rows if by == owner}
    taken: dict[int, int] = {}
    if free:
        taken = dict(
            db.execute(
                "UPDATE shards s SET owner = %s, epoch = epoch + 1 WHERE shard IN (SELECT shard FROM shards "
                " WHERE shard = ANY(%s) ORDER BY shard FOR UPDATE) "
                "AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.owner = s.owner) RETURNING shard, epoch",
                (owner, free),
            ).fetchall()
        )
    ended = _left_behind(db, sorted(taken), owner) if taken else 0
    held |= taken
    return HeldShards(held, GONE, tuple(sorted(held.keys() - wanted))), ended


def may_claim(db: Connection, owner: str) -> float | None:
    """The time, if a worker is one still; until the transaction ends nobody can say otherwise.

    What is claimed then is made durable with what is recorded next: a claim that a crash takes back was none. And it
    holds off those who claim whatever is due, with all others who have shards.
    """
    row: Any = db.execute(_MAY_CLAIM, (owner,)).fetchone()
    return None if row is None else float(row[0])


def sources_of(db: Connection, shards: Sequence[int]) -> list[int]:
    """The sources that belong to these shards."""
    through_all(db)
    rows: Any = db.execute(
        f"SELECT w.source FROM schedule w JOIN hosts h ON h.id = w.site WHERE {OF_SOURCE} = ANY(%s)".encode(),
        (list(shards),),
    ).fetchall()
    return [source for (source,) in rows]


def _left_behind(db: Connection, shards: Sequence[int], owner: str) -> int:
    """End the claims that others have left in shards that were taken from them; how many."""
    gone = postgres_claims.ended(
        db,
        "owner <> %s AND EXISTS (SELECT 1 FROM schedule w JOIN hosts h ON h.id = w.site "
        f"WHERE w.source = c.source AND {OF_SOURCE} = ANY(%s))",
        (owner, list(shards)),
    )
    if gone:
        db.execute(
            "UPDATE schedule s SET due = greatest(s.due, n.until) "
            "FROM unnest(%s::bigint[], %s::float8[]) n(source, until) WHERE s.source = n.source",
            (int8s([source for source, _ in gone]), float8s([until for _, until in gone])),
        )
    return len(gone)


@lru_cache(maxsize=16)
def _wanted(alive: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The shards that each worker should hold.

    >>> two, three = _wanted(("a", "b")), _wanted(("a", "b", "c"))
    >>> sum(map(len, three.values())), set(three["a"]) <= set(two["a"]), set(three["b"]) <= set(two["b"])
    (1024, True, True)
    >>> [len(shards) for shards in three.values()]
    [346, 353, 325]
    """
    found: dict[str, list[int]] = {owner: [] for owner in alive}
    seeds = {owner: hashlib.sha256(owner.encode()) for owner in alive}
    for shard in range(SHARDS if alive else 0):
        best, most = alive[0], b""
        for owner, seed in seeds.items():
            one = seed.copy()
            one.update(b"%d" % shard)
            if (mark := one.digest()) > most:
                best, most = owner, mark
        found[best].append(shard)
    return {owner: tuple(shards) for owner, shards in found.items()}
