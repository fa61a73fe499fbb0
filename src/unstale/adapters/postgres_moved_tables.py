"""The tables of a store file as PostgreSQL holds them: what is read there, what is written here, what is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw
from psycopg import sql

from unstale.adapters.postgres_catalogue import place
from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_listings import hosts_of
from unstale.adapters.postgres_schema import Connection
from unstale.addresses import host_of
from unstale.frozen import dataclass

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MovedTable:
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


def rows_of(there: apsw.Connection, query: str) -> Iterator[Any]:
    """The rows of a query."""
    return iter(there.execute(query))


def tables_of(db: Connection, there: apsw.Connection) -> list[MovedTable]:
    """The tables of a store in the order in which they are filled."""
    names = dict(rows_of(there, "SELECT id, name FROM hosts"))
    sites = {
        source: names[host] or host_of(address)
        for source, host, address in rows_of(there, "SELECT id, host, address FROM sources")
    }
    hosts = hosts_of(db, {*names.values(), *sites.values()})

    def source(row: Row) -> Row:
        number, address, kind, weight, cost, host, shortest, longest, options, paused, added_at, learned = row
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
            learned,
        )

    held = rows_of(there, "SELECT count(*) FROM leases")
    expired = next(held)[0]

    def same(row: Row) -> Row:
        return row

    def tidy(row: Row) -> Row:
        return tuple(clean(one) if isinstance(one, str) else one for one in row)

    return [
        MovedTable(
            "sources",
            "SELECT id, address, kind, weight, cost, host, shortest, longest, options, paused, added_at, learned "
            "FROM sources ORDER BY id",
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
                ("learned", "float8"),
            ),
            source,
        ),
        MovedTable(
            "beliefs",
            "SELECT source, last, found, failures, latest, version, belief FROM beliefs ORDER BY source",
            (
                ("source", "int8"),
                ("last", "float8"),
                ("found", "float8"),
                ("failures", "int4"),
                ("latest", "int8"),
                ("version", "int4"),
                ("belief", "bytea"),
            ),
            same,
        ),
        MovedTable(
            "schedule",
            "SELECT b.source, s.paused, b.due FROM beliefs b JOIN sources s ON s.id = b.source ORDER BY b.source",
            (("source", "int8"), ("site", "int4"), ("awake", "bool"), ("due", "float8")),
            lambda row: (row[0], hosts[sites[row[0]]], not row[1], row[2]),
        ),
        MovedTable(
            "checkpoints",
            "SELECT source, latest, last, found, belief FROM checkpoints ORDER BY source",
            (("source", "int8"), ("latest", "int8"), ("last", "float8"), ("found", "float8"), ("belief", "bytea")),
            same,
        ),
        MovedTable(
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
        MovedTable(
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
        MovedTable(
            "entries",
            "SELECT source, number, name, digest, title, link, time, first_at, last_at, first_version, last_version, "
            "edits, edited_at FROM entries ORDER BY source, number",
            (
                ("source", "int8"),
                ("number", "int8"),
                ("name", "bytea"),
                ("digest", "bytea"),
                ("title", "text"),
                ("link", "text"),
                ("time", "text"),
                ("first_at", "float8"),
                ("last_at", "float8"),
                ("first_version", "int4"),
                ("last_version", "int4"),
                ("edits", "int4"),
                ("edited_at", "float8"),
            ),
            same,
        ),
        MovedTable(
            "edits",
            "SELECT number, at, who, what FROM edits ORDER BY number",
            (("number", "int8"), ("at", "float8"), ("who", "text"), ("what", "text")),
            tidy,
        ),
        MovedTable(
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
        MovedTable(
            "epochs",
            "SELECT id, at, value FROM epochs ORDER BY id",
            (("id", "int4"), ("at", "float8"), ("value", "bytea")),
            same,
        ),
        MovedTable(
            "settings", "SELECT name, value FROM settings ORDER BY name", (("name", "text"), ("value", "bytea")), same
        ),
        MovedTable(
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
        MovedTable(
            "counters",
            f"SELECT name, name <> 'events', value + CASE name WHEN 'expired' THEN {expired} ELSE 0 END FROM "
            f"(SELECT name, value FROM counters UNION ALL SELECT 'expired', 0 WHERE {expired} AND NOT EXISTS "
            "(SELECT 1 FROM counters WHERE name = 'expired')) ORDER BY name",
            (("name", "text"), ("shard", "int4"), ("value", "int8")),
            same,
        ),
        MovedTable(
            "listeners", "SELECT name, told FROM listeners ORDER BY name", (("name", "text"), ("told", "int8")), same
        ),
        MovedTable(
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
