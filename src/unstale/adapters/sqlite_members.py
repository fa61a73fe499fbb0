"""Members of collections in SQLite: who tells of whom, and what was said last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from unstale.listings.records import CollectionMember

_COLUMNS = "collection, source, address, time, tag, told"


def members(db: apsw.Connection, collection: int | None, source: int | None = None) -> list[CollectionMember]:
    """Those of one collection, or all; of one source, by the index of sources, what tells of it."""
    asked = [(name, value) for name, value in (("collection", collection), ("source", source)) if value is not None]
    which = "".join(f" AND {name} = ?" for name, _ in asked)
    query = f"SELECT {_COLUMNS} FROM members WHERE collection != source{which} ORDER BY collection, source"
    rows: Any = db.execute(query, tuple(value for _, value in asked))
    return [CollectionMember(*row) for row in rows]


def pushes(db: apsw.Connection, sources: Sequence[int] | None) -> list[CollectionMember]:
    """What was pushed of these sources, or of all."""
    if sources is None:
        rows: Any = db.execute(f"SELECT {_COLUMNS} FROM members WHERE collection = source ORDER BY source")
        return [CollectionMember(*row) for row in rows]
    query = f"SELECT {_COLUMNS} FROM members WHERE collection = ?1 AND source = ?1"
    return [CollectionMember(*row) for source in sorted(set(sources)) for row in db.execute(query, (source,))]


def enlist(db: apsw.Connection, new: Sequence[CollectionMember]) -> None:
    """Take up members, or what is said of them now; those whose source or collection is gone are left out."""
    db.executemany(
        f"INSERT INTO members({_COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS "
        "(SELECT 1 FROM sources WHERE id = ?1) AND EXISTS (SELECT 1 FROM sources WHERE id = ?2) "
        "ON CONFLICT DO UPDATE SET address = excluded.address, time = excluded.time, tag = excluded.tag, "
        "told = excluded.told",
        ((m.collection, m.source, m.address, m.time, m.tag, m.told) for m in new),
    )
