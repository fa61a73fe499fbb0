"""Sources as they are listed, in PostgreSQL: bulk adds by COPY, new listings for known sources, the hosts they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from unstale.adapters import postgres_claims
from unstale.adapters.postgres_arrays import byteas
from unstale.adapters.postgres_catalogue import place
from unstale.adapters.postgres_new_rows import NewSource, insert
from unstale.adapters.postgres_schema import Connection
from unstale.adapters.store_checks import refuse_duplicates
from unstale.adapters.store_shared import counts_otherwise
from unstale.addresses import host_of
from unstale.ports import Listing

#: after so many new sources the server's statistics are no longer true, if they are for tables so many times smaller
_MANY, _GROWN = 10_000, 1.5


def listed(
    db: Connection, listings: Sequence[Listing], options: Sequence[str | None], now: float, *, refuse: bool, again: bool
) -> tuple[list[int], int, int]:
    """Add sources, or take new listings of known ones: their ids, how many are new, how many claims that has ended.

    `again` says that this was tried before and its commit lost: those that it added are no duplicates.
    """
    places = [place(listing.address) for listing in listings]
    rows = db.execute(
        "SELECT place, id, added_at, kind, options FROM sources WHERE place = ANY(%s::bytea[])",
        (byteas(places),),
        binary=True,
    ).fetchall()
    known: dict[bytes, int] = {row[0]: row[1] for row in rows}
    before: dict[bytes, tuple[str, str | None]] = {row[0]: row[3:] for row in rows}
    if refuse:
        others = {row[0] for row in rows if not (again and row[2] == now)}
        refuse_duplicates(listings, [s.address for s, at in zip(listings, places, strict=True) if at in others])
    sites = [s.host or host_of(s.address) for s in listings]
    hosts = hosts_of(db, {s.host for s in listings}.union(sites))
    following = iter(_free(db, len(set(places) - known.keys())))
    ids, new, replaced, anew = [], dict[int, NewSource](), {}, set[int]()
    for s, text, at, site in zip(listings, options, places, sites, strict=True):
        if at not in known:
            known[at] = next(following)
            new[known[at]] = NewSource(known[at], at, s, text, hosts[s.host], hosts[site])
        elif known[at] in new:
            new[known[at]] = NewSource(known[at], at, s, text, hosts[s.host], hosts[site])
        else:
            given = s.kind, s.weight, s.cost, hosts[s.host], s.shortest, s.longest, text, s.paused
            replaced[known[at]] = (*given, known[at]), hosts[site]
            if counts_otherwise(s, *before[at]):
                anew.add(known[at])
        ids.append(known[at])
    insert(db, list(new.values()), now)
    ended = replace(db, replaced, anew)
    if len(new) > _MANY and _grown(db):
        db.execute("ANALYZE sources, beliefs, schedule")
    return ids, len(new), ended


def _free(db: Connection, count: int) -> range:
    """So many ids that nobody has; nobody else draws any meanwhile."""
    if not count:
        return range(0)
    row: Any = db.execute("SELECT setval('ids', nextval('ids') + %s)", (count - 1,)).fetchone()
    return range(row[0] - count + 1, row[0] + 1)


def _grown(db: Connection) -> bool:
    """Whether sources take up half as much room again as when the server last made statistics, or never did."""
    row: Any = db.execute(
        "SELECT pg_relation_size(oid) > %s * relpages::bigint * current_setting('block_size')::bigint "
        "FROM pg_class WHERE oid = 'sources'::regclass",
        (_GROWN,),
    ).fetchone()
    return bool(row[0])


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
    db.execute("DELETE FROM trust WHERE collection = ANY(%s)", (which,))
    gone = db.execute("DELETE FROM sources WHERE id = ANY(%s)", (which,)).rowcount
    return gone, ended


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
