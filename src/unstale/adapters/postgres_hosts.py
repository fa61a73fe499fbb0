"""What hosts have asked for, in PostgreSQL: whoever holds their shards next has to know it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.postgres_shelf import NOW
from unstale.ports import HostWord

_PACED = f"CASE WHEN renewed > {NOW} THEN paced ELSE 0 END"


def words(db: Connection) -> list[HostWord]:
    """What hosts have asked for, those that have."""
    through_all(db)
    rows: Any = db.execute(
        f"SELECT name, asked, blocked, refusals, {_PACED} FROM hosts "
        f"WHERE asked > 0 OR blocked > {NOW} OR refusals > 0 OR ({_PACED}) > 0".encode()
    ).fetchall()
    return [HostWord(*row) for row in rows]


def keep(db: Connection, told: Sequence[HostWord]) -> None:
    """Keep what hosts ask for now."""
    told = sorted(told, key=lambda word: word.name)
    db.execute(
        "UPDATE hosts h SET asked = n.asked, blocked = n.blocked, refusals = n.refusals, paced = n.paced, "
        "renewed = CASE WHEN n.paced > 0 THEN 'Infinity'::float8 ELSE '-Infinity'::float8 END "
        "FROM unnest(%s::text[], %s::float8[], %s::float8[], %s::int[], %s::float8[]) "
        " n(name, asked, blocked, refusals, paced) WHERE h.name = n.name",
        (
            [word.name for word in told],
            [word.asked for word in told],
            [word.blocked for word in told],
            [word.refusals for word in told],
            [word.paced for word in told],
        ),
    )
