"""From a SQLite file to a PostgreSQL database: everything, in one transaction, compared before it is committed.

Rules of this file:
1. The file is only read, as of one instant.
2. Ids, tokens, versions and counters stay what they were; claims that were held end as expired.
3. What was written is read back and compared row by row: floats and beliefs bit for bit, bodies by their SHA-256.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
from psycopg import sql

from unstale.adapters.postgres_catalogue import place
from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_listings import hosts_of
from unstale.adapters.postgres_observations import cover
from unstale.adapters.postgres_schema import EDITING, Connection, lock
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_schema import connect_reading
from unstale.addresses import host_of
from unstale.errors import StoreError, sentence

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """How one table is read there and written here; `turned` makes a row of ours out of one of theirs."""

    name: str
    query: str
    columns: tuple[tuple[str, str], ...]
    turned: Callable[[Row], Row]
    #: what is compared of a column, if it is not the column itself
    seen: tuple[tuple[str, str], ...] = ()

    def reading(self) -> sql.Composed:
        """What of it is compared."""
        seen = dict(self.seen)
        shown = sql.SQL(", ").join(sql.SQL(seen.get(name, name)) for name, _ in self.columns)
        # Text is in the order of its bytes there.
        order = sql.SQL('name COLLATE "C"' if self.columns[0][1] == "text" else "1, 2")
        return sql.SQL("SELECT {} FROM {} ORDER BY {}").format(shown, sql.Identifier(self.name), order)


def moved(path: str | Path, dsn: str, *, schema: str = "unstale") -> dict[str, int]:
    """Bring the store in a file to an empty database, whole or not at all; how much of what was moved."""
    # What is wrong with the file is said in its own words.
    SqliteReplica(path).close()
    store = PostgresStore(dsn, schema=schema)
    there = connect_reading(Path(path))
    try:
        there.execute("BEGIN")
        return store.fill(lambda db: _fill(db, there, store.name))
    finally:
        there.close()
        store.close()


def _fill(db: Connection, there: apsw.Connection, name: str) -> dict[str, int]:
    lock(db, EDITING)
    if db.execute("SELECT 1 FROM sources LIMIT 1").fetchone() is not None:
        raise StoreError(sentence("store", name, "holds sources already", "choose an empty database"))
    newest = there.execute("SELECT max(token), max(polled_at) FROM observations").fetchone() or (None, None)
    cover(db, newest[0] or 0, newest[1] or 0.0, math.inf)
    counts = {}
    for table in _tables(db, there):
        count = _copied(db, table, (table.turned(row) for row in _rows(there, table.query)))
        _compare(db, table, (table.turned(row) for row in _rows(there, table.query)), name)
        counts[table.name] = count
    tally = dict(_rows(there, "SELECT name, value FROM counters"))
    for sequence, last in (("ids", tally.get("added", 0)), ("tokens", tally.get("claimed", 0))):
        if last:
            db.execute("SELECT setval(%s, %s)", (sequence, last))
    db.execute("ANALYZE sources, beliefs")
    return {name: counts[name] for name in ("sources", "observations", "copies", "beliefs")}


def _copied(db: Connection, table: _Table, rows: Iterable[Row]) -> int:
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in table.columns)
    query = sql.SQL("COPY {}({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table.name), names)
    count = 0
    with db.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types([kind for _, kind in table.columns])
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def _compare(db: Connection, table: _Table, rows: Iterable[Row], name: str) -> None:
    hashed = [i for i, (column, _) in enumerate(table.columns) if column in dict(table.seen)]
    with db.cursor(f"moved_{table.name}", binary=True) as cursor:
        cursor.itersize = 5000
        cursor.execute(table.reading())
        # Here and there are in the same order; one that is longer ends in a row that has no partner.
        here = iter(cursor)
        for row in rows:
            expected = tuple(sha256(one).digest() if i in hashed else one for i, one in enumerate(row))
            if next(here, None) != expected:
                break
        else:
            if next(here, None) is None:
                return
    raise StoreError(
        sentence("store", name, f"does not hold the {table.name} that were moved, nothing was kept", "report it")
    )


def _rows(there: apsw.Connection, query: str) -> Iterator[Any]:
    return iter(there.execute(query))


def _tables(db: Connection, there: apsw.Connection) -> list[_Table]:
    names = dict(_rows(there, "SELECT id, name FROM hosts"))
    sites = {
        source: names[host] or host_of(address)
        for source, host, address in _rows(there, "SELECT id, host, address FROM sources")
    }
    hosts = hosts_of(db, {*names.values(), *sites.values()})

    def source(row: Row) -> Row:
        number, address, kind, weight, cost, host, shortest, longest, options, paused, added_at = row
        return (
            number,
            place(address),
            address,
            kind,
            weight,
            cost,
            hosts[names[host]],
            shortest,
            longest,
            options,
            bool(paused),
            added_at,
        )

    held = _rows(there, "SELECT count(*) FROM leases")
    expired = next(held)[0]

    def same(row: Row) -> Row:
        return row

    def tidy(row: Row) -> Row:
        return tuple(clean(one) if isinstance(one, str) else one for one in row)

    return [
        _Table(
            "sources",
            "SELECT id, address, kind, weight, cost, host, shortest, longest, options, paused, added_at FROM sources "
            "ORDER BY id",
            (
                ("id", "int8"),
                ("place", "bytea"),
                ("address", "text"),
                ("kind", "text"),
                ("weight", "float8"),
                ("cost", "float8"),
                ("host", "int4"),
                ("shortest", "float8"),
                ("longest", "float8"),
                ("options", "text"),
                ("paused", "bool"),
                ("added_at", "float8"),
            ),
            source,
        ),
        _Table(
            "beliefs",
            "SELECT b.source, s.paused, b.due, b.last, b.found, b.failures, b.latest, b.version, b.belief "
            "FROM beliefs b JOIN sources s ON s.id = b.source ORDER BY b.source",
            (
                ("source", "int8"),
                ("site", "int4"),
                ("awake", "bool"),
                ("due", "float8"),
                ("last", "float8"),
                ("found", "float8"),
                ("failures", "int4"),
                ("latest", "int8"),
                ("version", "int4"),
                ("belief", "bytea"),
            ),
            lambda row: (row[0], hosts[sites[row[0]]], not row[1], *row[2:]),
        ),
        _Table(
            "checkpoints",
            "SELECT source, latest, last, found, belief FROM checkpoints ORDER BY source",
            (("source", "int8"), ("latest", "int8"), ("last", "float8"), ("found", "float8"), ("belief", "bytea")),
            same,
        ),
        _Table(
            "observations",
            "SELECT token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, told "
            "FROM observations ORDER BY token",
            (
                ("token", "int8"),
                ("source", "int8"),
                ("polled_at", "float8"),
                ("answer", "int2"),
                ("elapsed", "float8"),
                ("modified", "float8"),
                ("bytes", "int8"),
                ("reason", "text"),
                ("previous", "int8"),
                ("epoch", "int4"),
                ("told", "float8"),
            ),
            tidy,
        ),
        _Table(
            "members",
            "SELECT collection, source, address, time, tag, told FROM members ORDER BY collection, source",
            (
                ("collection", "int8"),
                ("source", "int8"),
                ("address", "text"),
                ("time", "float8"),
                ("tag", "text"),
                ("told", "float8"),
            ),
            tidy,
        ),
        _Table(
            "copies",
            "SELECT c.source, c.version, c.taken_at, t.digest, t.size, t.body, c.media_type, c.etag, c.last_modified, "
            "c.fingerprint, c.address, c.via FROM copies c JOIN contents t ON t.id = c.content "
            "ORDER BY c.source, c.version",
            (
                ("source", "int8"),
                ("version", "int4"),
                ("taken_at", "float8"),
                ("digest", "bytea"),
                ("size", "int8"),
                ("body", "bytea"),
                ("media_type", "text"),
                ("etag", "text"),
                ("last_modified", "text"),
                ("fingerprint", "bytea"),
                ("address", "text"),
                ("via", "text"),
            ),
            tidy,
            (("body", "sha256(body)"),),
        ),
        _Table(
            "epochs",
            "SELECT id, at, value FROM epochs ORDER BY id",
            (("id", "int4"), ("at", "float8"), ("value", "bytea")),
            same,
        ),
        _Table(
            "settings", "SELECT name, value FROM settings ORDER BY name", (("name", "text"), ("value", "bytea")), same
        ),
        _Table(
            "prices",
            "SELECT id, at, price, budget, fresh, even, polls, changed, failed, spent FROM prices ORDER BY id",
            (
                ("id", "int8"),
                ("at", "float8"),
                ("price", "float8"),
                ("budget", "float8"),
                ("fresh", "float8"),
                ("even", "float8"),
                ("polls", "int8"),
                ("changed", "int8"),
                ("failed", "int8"),
                ("spent", "float8"),
            ),
            same,
        ),
        _Table(
            "counters",
            f"SELECT name, name <> 'events', value + CASE name WHEN 'expired' THEN {expired} ELSE 0 END FROM "
            f"(SELECT name, value FROM counters UNION ALL SELECT 'expired', 0 WHERE {expired} AND NOT EXISTS "
            "(SELECT 1 FROM counters WHERE name = 'expired')) ORDER BY name",
            (("name", "text"), ("shard", "int4"), ("value", "int8")),
            same,
        ),
        _Table(
            "listeners", "SELECT name, told FROM listeners ORDER BY name", (("name", "text"), ("told", "int8")), same
        ),
        _Table(
            "events",
            "SELECT number, source, address, version, at, digest FROM events ORDER BY number",
            (
                ("number", "int8"),
                ("source", "int8"),
                ("address", "text"),
                ("version", "int4"),
                ("at", "float8"),
                ("digest", "bytea"),
            ),
            same,
        ),
    ]
