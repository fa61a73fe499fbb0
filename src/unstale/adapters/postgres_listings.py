"""Sources as they are listed, in PostgreSQL: bulk adds by COPY, new listings for known sources, the hosts they name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from unstale.adapters.postgres_claims import FREE
from unstale.adapters.postgres_schema import Connection


def insert(db: Connection, new: Mapping[int, tuple[tuple[Any, ...], int]], now: float) -> None:
    """Add rows of listings with the hosts we owe manners; all are due now."""
    if not new:
        return
    with db.cursor() as cursor:
        with cursor.copy(
            "COPY sources(id, place, address, added_at, kind, weight, cost, host, shortest, longest, options, paused) "
            "FROM STDIN (FORMAT binary)"
        ) as copy:
            copy.set_types(
                [
                    "int8",
                    "bytea",
                    "text",
                    "float8",
                    "text",
                    "float8",
                    "float8",
                    "int4",
                    "float8",
                    "float8",
                    "text",
                    "bool",
                ]
            )
            for row, _ in new.values():
                copy.write_row(row)
        with cursor.copy(
            "COPY beliefs(source, site, awake, due, last, found, failures, latest, version) FROM STDIN (FORMAT binary)"
        ) as copy:
            copy.set_types(["int8", "int4", "bool", "float8", "float8", "float8", "int4", "int8", "int4"])
            for source, (row, site) in new.items():
                copy.write_row((source, site, not row[-1], now, -math.inf, -math.inf, 0, 0, 0))


def replace(db: Connection, replaced: Mapping[int, tuple[tuple[Any, ...], int]]) -> int:
    """Take new listings; how many claims that pausing has ended."""
    if not replaced:
        return 0
    with db.cursor() as cursor:
        cursor.executemany(
            "UPDATE sources SET kind = %s, weight = %s, cost = %s, host = %s, shortest = %s, longest = %s, "
            "options = %s, paused = %s WHERE id = %s",
            [row for row, _ in sorted(replaced.values(), key=lambda one: int(one[0][-1]))],
        )
    ids = sorted(replaced)
    paused = [replaced[source][0][-2] for source in ids]
    db.execute("SELECT 1 FROM beliefs WHERE source = ANY(%s) ORDER BY source FOR UPDATE", (ids,))
    ended = db.execute(
        f"UPDATE beliefs SET {FREE} WHERE source = ANY(%s) AND token IS NOT NULL".encode(),
        ([source for source, still in zip(ids, paused, strict=True) if still],),
    ).rowcount
    db.execute(
        "UPDATE beliefs b SET awake = NOT n.paused, site = n.site FROM unnest(%s::bigint[], %s::bool[], %s::int[]) "
        "n(source, paused, site) WHERE b.source = n.source",
        (ids, paused, [replaced[source][1] for source in ids]),
    )
    return ended


def hosts_of(db: Connection, names: Iterable[str]) -> dict[str, int]:
    """The numbers of hosts by their names; new ones get one. Inside a transaction that edits."""
    wanted = sorted(names)
    db.execute(
        "INSERT INTO hosts(name) SELECT name FROM unnest(%s::text[]) name WHERE NOT EXISTS "
        "(SELECT 1 FROM hosts h WHERE h.name = name.name)",
        (wanted,),
    )
    return dict(db.execute("SELECT name, id FROM hosts WHERE name = ANY(%s)", (wanted,)).fetchall())
