"""Sources in SQLite as they are listed and as they stand, one by one and in columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from unstale.adapters import sqlite_columns, sqlite_members
from unstale.adapters.spare_memory import give_back
from unstale.adapters.sqlite_claims import column
from unstale.adapters.sqlite_file import SqliteFile
from unstale.adapters.store_shared import contains
from unstale.listings.records import CollectionMember
from unstale.ports import FleetColumns, HostCount, Listing

#: sources of a fleet that fills the database's cache, and the kilobytes that it may fill from then on: what polls of so
#: many touch lies anywhere in the file, so that a larger one helps little
MANY, CACHE = 20_000, 8_192


class SqliteCatalogue(SqliteFile):
    """Keeps the contract `Catalogue`."""

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        with self._reading() as db:
            found: int | None = db.execute("SELECT id FROM sources WHERE address = ?", (address,)).get
        return found

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT s.address, s.kind, s.weight, s.cost, h.name, s.shortest, s.longest, s.options, s.paused, "
                "s.id, s.added_at FROM carray(?) w CROSS JOIN sources s ON s.id = w.value "
                "CROSS JOIN hosts h ON h.id = s.host",
                (column(sources),),
            )
            return [
                Listing(
                    address,
                    kind,
                    weight,
                    cost,
                    host,
                    shortest,
                    longest,
                    json.loads(options) if options else {},
                    bool(paused),
                    source,
                    added_at,
                )
                for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
            ]

    def search(
        self,
        text: str = "",
        *,
        host: str | None = None,
        kind: str | None = None,
        paused: bool | None = None,
        tag: str | None = None,
        options: Sequence[str] = (),
        failing: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[int]:
        """The sources after an id whose address contains a text, rising; a and A are the same letter, ä and Ä are not.

        `tag` is one that they have, `options` names of which they have one; `failing`, whether their last polls did. To
        go through all, ask again after the last one.
        """
        # Most options are not even read as JSON: their text has none of the names.
        written = " OR ".join("instr(options, ?)" for _ in options)
        among = ", ".join("?" for _ in options)
        named = f"({written}) AND EXISTS (SELECT 1 FROM json_each(options) WHERE key IN ({among}))"
        asked: dict[str, tuple[Any, ...]] = {
            "address LIKE ? ESCAPE '\\'": (contains(text),),
            "host = (SELECT id FROM hosts WHERE name = ?)": (host,),
            "kind = ?": (kind,),
            "paused = ?": (None if paused is None else int(paused),),
            # Most have none, and opening them takes as long as all the rest.
            "options IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(options, '$.tags') WHERE value = ?)": (tag,),
            # Those who fail are few.
            "(id IN (SELECT source FROM states b WHERE failures > 0 AND b.id = place(source))) = ?": (
                None if failing is None else int(failing),
            ),
            named: (*options, *options) if options else (None,),
        }
        given = {clause: values for clause, values in asked.items() if values != (None,)}
        where = " AND ".join(["id > ?", *given])
        with self._at_once() as db:
            rows: Any = db.execute(
                f"SELECT id FROM sources WHERE {where} ORDER BY id LIMIT ?",
                (after, *(value for values in given.values() for value in values), limit),
            )
            return [source for (source,) in rows]

    def names(self) -> list[tuple[int, str, str]]:
        """Every source's id, address and title, ids rising; empty where it has no title."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT id, address, CAST(coalesce(json_extract(options, '$.title'), '') AS TEXT) "
                "FROM sources ORDER BY id"
            ).fetchall()
        return list(rows)

    def hosts(self) -> list[HostCount]:
        """Each host that has sources, by name."""
        with self._at_once() as db:
            # Those who fail are few: only they are looked up.
            rows: Any = db.execute(
                "SELECT h.name, n.listed, n.paused, coalesce(f.failing, 0) "
                "FROM (SELECT host, count(*) AS listed, sum(paused) AS paused FROM sources GROUP BY host) n "
                "JOIN hosts h ON h.id = n.host LEFT JOIN (SELECT s.host, count(*) AS failing FROM states b "
                "CROSS JOIN sources s ON s.id = b.source WHERE b.failures > 0 AND b.id = place(b.source) "
                "AND NOT s.paused GROUP BY s.host) f "
                "ON f.host = n.host ORDER BY h.name"
            ).fetchall()
        return [HostCount(*row) for row in rows]

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""
        with self._at_once() as db:
            if many := db.execute("SELECT count(*) FROM sources").get > MANY:
                db.execute(f"PRAGMA cache_size = -{CACHE}")
            found = sqlite_columns.whole_fleet(db, width)
        if many:
            with self._reading() as db:
                # Nobody reads all of it again soon, and it would stay in the database's cache.
                db.release_memory()
            give_back()
        return found

    def members(self, collection: int | None = None, source: int | None = None) -> list[CollectionMember]:
        """Whom one collection tells of, or each of all; of one source, what tells of it."""
        with self._reading() as db:
            return sqlite_members.members(db, collection, source)

    def pushes(self, sources: Sequence[int] | None = None) -> list[CollectionMember]:
        """What was last pushed of these sources, or of all."""
        with self._reading() as db:
            return sqlite_members.pushes(db, sources)

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        with self._at_once() as db:
            return sqlite_columns.some_sources(db, sources, width)
