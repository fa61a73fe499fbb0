"""A fleet read in parts from PostgreSQL, and what workers tell of the sources that they have polled since."""

from __future__ import annotations

from typing import Any

from unstale.adapters.postgres_columns import columns_of
from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.postgres_tables import COST
from unstale.ports import Census, FleetColumns


def part_of(db: Connection, width: int, after: int, upto: int | None, most: int) -> FleetColumns:
    """Sources with ids above one and up to another, at most so many, ids rising; inside a transaction."""
    return columns_of(db, width, within=(after, 2**62 if upto is None else upto, most))


def census(db: Connection) -> Census:
    """How many sources there are, and what polls of those that are not paused cost."""
    through_all(db)
    row: Any = db.execute(
        f"SELECT count(*), coalesce(sum({COST}) FILTER (WHERE NOT paused), 0), coalesce(max({COST}), 1) "
        "FROM sources".encode()
    ).fetchone()
    return Census(int(row[0]), float(row[1]), float(row[2]))


def tell(db: Connection, value: bytes) -> None:
    """Keep how sources stood before and after polls until somebody takes it up."""
    db.execute("INSERT INTO tallies(value) VALUES (%s)", (value,))


def taken(db: Connection) -> list[bytes]:
    """What was told since the last time, which is forgotten."""
    rows: Any = db.execute(
        "WITH gone AS (DELETE FROM tallies RETURNING id, value) SELECT value FROM gone ORDER BY id"
    ).fetchall()
    return [bytes(value) for (value,) in rows]
