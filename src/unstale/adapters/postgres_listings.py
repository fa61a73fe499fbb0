"""Sources as they are listed, in PostgreSQL: bulk adds by COPY, new listings for known sources, the hosts they name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from unstale.adapters import postgres_claims
from unstale.adapters.postgres_catalogue import place
from unstale.adapters.postgres_schema import Connection
from unstale.adapters.store_checks import refuse_duplicates
from unstale.adapters.store_shared import counts_otherwise
from unstale.addresses import host_of
from unstale.ports import Listing

#: after so many new sources the server's statistics are no longer true
_MANY = 10_000


def listed(
    db: Connection, listings: Sequence[Listing], options: Sequence[str | None], now: float, *, refuse: bool, again: bool
) -> tuple[list[int], int, int]:
    """Add sources, or take new listings of known ones: their ids, how many are new, how many claims that has ended.

    `again` says that this was tried before and its commit lost: those that it added are no duplicates.
    """
    places = [place(listing.address) for listing in listings]
    rows = db.execute(
        "SELECT place, id, added_at, kind, options FROM sources WHERE place = ANY(%b::bytea[])", (places,), binary=True
    ).fetchall()
    known: dict[bytes, int] = {row[0]: row[1] for row in rows}
    before: dict[bytes, tuple[str, str | None]] = {row[0]: row[3:] for row in rows}
    if refuse:
        others = {row[0] for row in rows if not (again and row[2] == now)}
        refuse_duplicates(listings, [s.address for s, at in zip(listings, places, strict=True) if at in others])
    hosts = hosts_of(db, {s.host for s in listings} | {s.host or host_of(s.address) for s in listings})
    fresh = len(set(places) - known.keys())
    free: Any = db.execute("SELECT nextval('ids') FROM generate_series(1, %s)", (fresh,)).fetchall()
    ids, new, replaced, anew, following = [], {}, {}, set[int](), iter(free)
    for s, text, at in zip(listings, options, places, strict=True):
        site = hosts[s.host or host_of(s.address)]
        given = (
            s.kind,
            float(s.weight),
            float(s.cost),
            hosts[s.host],
            float(s.shortest),
            float(s.longest),
            text,
            s.paused,
        )
        if at not in known:
            known[at] = next(following)[0]
            new[known[at]] = (known[at], at, s.address, now, *given), site
        elif known[at] in new:
            new[known[at]] = (known[at], at, s.address, now, *given), site
        else:
            replaced[known[at]] = (*given, known[at]), site
            if counts_otherwise(s, *before[at]):
                anew.add(known[at])
        ids.append(known[at])
    insert(db, new, now)
    ended = replace(db, replaced, anew)
    if len(new) > _MANY:
        db.execute("ANALYZE sources, beliefs, schedule")
    return ids, len(new), ended


def forgotten(db: Connection, sources: Sequence[int]) -> tuple[int, int]:
    """Forget sources with all they taught: how many there were, and how many of their claims that ended."""
    which = list(sources)
    ended = postgres_claims.end_of(db, which)
    db.execute("SELECT 1 FROM beliefs WHERE source = ANY(%s) ORDER BY source FOR UPDATE", (which,))
    db.execute(
        "DELETE FROM observations WHERE token IN (WITH RECURSIVE chain(token) AS ("
        " SELECT latest FROM beliefs WHERE source = ANY(%s)"
        " UNION ALL SELECT o.previous FROM observations o JOIN chain ON o.token = chain.token"
        ") SELECT token FROM chain)",
        (which,),
    )
    for table in ("copies", "entries", "beliefs", "schedule", "checkpoints"):
        db.execute(f"DELETE FROM {table} WHERE source = ANY(%s)".encode(), (which,))
    gone = db.execute("DELETE FROM sources WHERE id = ANY(%s)", (which,)).rowcount
    return gone, ended


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
            "COPY beliefs(source, last, found, failures, latest, version) FROM STDIN (FORMAT binary)"
        ) as copy:
            copy.set_types(["int8", "float8", "float8", "int4", "int8", "int4"])
            for source in new:
                copy.write_row((source, -math.inf, -math.inf, 0, 0, 0))
        with cursor.copy("COPY schedule(source, site, awake, due) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "int4", "bool", "float8"])
            for source, (row, site) in new.items():
                copy.write_row((source, site, not row[-1], now))


def replace(db: Connection, replaced: Mapping[int, tuple[tuple[Any, ...], int]], anew: Set[int] = frozenset()) -> int:
    """Take new listings, of which `anew` have other things count; how many claims that or pausing has ended."""
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
    db.execute("SELECT 1 FROM schedule WHERE source = ANY(%s) ORDER BY source FOR UPDATE", (ids,))
    ended = postgres_claims.end_of(
        db, [source for source, still in zip(ids, paused, strict=True) if still or source in anew]
    )
    if anew:
        db.execute("UPDATE copies SET fingerprint = NULL WHERE source = ANY(%s)", (sorted(anew),))
    db.execute(
        "UPDATE schedule s SET awake = NOT n.paused, site = n.site, mark = mark + 1 "
        "FROM unnest(%s::bigint[], %s::bool[], %s::int[]) n(source, paused, site) WHERE s.source = n.source",
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
