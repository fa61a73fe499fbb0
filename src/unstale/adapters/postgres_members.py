"""Members of collections in PostgreSQL: who tells of whom, and what was said last."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_schema import Connection
from unstale.listings.records import CollectionMember

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
