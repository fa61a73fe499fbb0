"""Members of collections in PostgreSQL: who tells of whom, and what was said last."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_schema import Connection
from unstale.adapters.postgres_tables import OF_SOURCE
from unstale.listings.records import CollectionMember
from unstale.ports import Trust

_COLUMNS = "collection, source, address, time, tag, told"


def members(db: Connection, collection: int | None, source: int | None = None) -> list[CollectionMember]:
    """Those of one collection, or all; of one source, by the index of sources, what tells of it."""
    asked = [(name, value) for name, value in (("collection", collection), ("source", source)) if value is not None]
    which = "".join(f" AND {name} = %s" for name, _ in asked)
    given = tuple(value for _, value in asked)
    query = f"SELECT {_COLUMNS} FROM members WHERE collection <> source{which} ORDER BY collection, source"
    return [CollectionMember(*row) for row in db.execute(query.encode(), given)]


def pushes(db: Connection, sources: Sequence[int] | None) -> list[CollectionMember]:
    """What was pushed of these sources, or of all."""
    which = "" if sources is None else " AND source = ANY(%s)"
    query = f"SELECT {_COLUMNS} FROM members WHERE collection = source{which} ORDER BY source"
    given = () if sources is None else (list(sources),)
    return [CollectionMember(*row) for row in db.execute(query.encode(), given)]


def in_own_shard(db: Connection, owner: str | None) -> list[CollectionMember]:
    """Members that are in the shard of their collection; of all collections, or of those in shards that one holds."""
    columns = ", ".join(f"m.{name}" for name in _COLUMNS.split(", "))
    held = "" if owner is None else " AND c.shard IN (SELECT shard FROM shards WHERE owner = %s)"
    query = (
        f"WITH place AS NOT MATERIALIZED (SELECT w.source, {OF_SOURCE} AS shard FROM schedule w "
        f"JOIN hosts h ON h.id = w.site) SELECT {columns} FROM members m JOIN place s ON s.source = m.source "
        "JOIN place c ON c.source = m.collection WHERE m.collection <> m.source AND s.shard = c.shard"
        f"{held} ORDER BY m.collection, m.source"
    )
    return [CollectionMember(*row) for row in db.execute(query.encode(), () if owner is None else (owner,))]


def trust(db: Connection, collections: Sequence[int] | None) -> list[Trust]:
    """What was kept last of these collections, or of all."""
    which = "" if collections is None else " WHERE collection = ANY(%s)"
    given = () if collections is None else (list(collections),)
    rows = db.execute(f"SELECT collection, state, counts FROM trust{which} ORDER BY collection".encode(), given)
    return [Trust(collection, state, bytes(counts)) for collection, state, counts in rows]


def keep_trust(
    db: Connection, owner: str, learned: Sequence[Trust], before: Sequence[float], now: Sequence[float]
) -> list[float]:
    """Keep what was learned of collections that one holds, and add what was of all together; inside a transaction."""
    from unstale.keeper.followed import added  # who only reads needs nothing of signals

    query = (
        "INSERT INTO trust SELECT %s::bigint, %s, %s::bytea "
        "WHERE %s <= 0 OR EXISTS (SELECT 1 FROM schedule w JOIN hosts h ON h.id = w.site JOIN shards d "
        f"ON d.shard = {OF_SOURCE} WHERE w.source = %s AND d.owner = %s) ON CONFLICT (collection) DO UPDATE SET "
        "state = excluded.state, counts = CASE WHEN excluded.counts = '' THEN trust.counts ELSE excluded.counts END"
    )
    db.execute("INSERT INTO trust VALUES (0, %s) ON CONFLICT DO NOTHING", (json.dumps(list(before)),))
    row: Any = db.execute("SELECT state FROM trust WHERE collection = 0 FOR UPDATE").fetchone()
    whole = added(json.loads(row[0]), before, now)
    db.execute("UPDATE trust SET state = %s WHERE collection = 0", (json.dumps(whole),))
    # In the order of their numbers: nobody waits for one who waits for him.
    with db.cursor() as cursor:
        cursor.executemany(query.encode(), [(*row, row.collection, row.collection, owner) for row in sorted(learned)])
    return whole


def enlist(db: Connection, new: Sequence[CollectionMember]) -> None:
    """Take up members, or what is said of them now; those whose source or collection is gone are left out."""
    query = (
        f"INSERT INTO members({_COLUMNS}) SELECT %s::bigint, %s::bigint, %s, %s::float8, %s, %s::float8 "
        "WHERE EXISTS (SELECT 1 FROM sources WHERE id = %s) AND EXISTS (SELECT 1 FROM sources WHERE id = %s) "
        "ON CONFLICT (collection, source) DO UPDATE SET address = excluded.address, time = excluded.time, "
        "tag = excluded.tag, told = excluded.told"
    )
    with db.cursor() as cursor:
        cursor.executemany(
            query.encode(),
            [
                (
                    m.collection,
                    m.source,
                    clean(m.address),
                    m.time,
                    m.tag and clean(m.tag),
                    m.told,
                    m.collection,
                    m.source,
                )
                for m in new
            ],
        )
