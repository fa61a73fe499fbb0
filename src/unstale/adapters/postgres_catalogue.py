"""Sources in PostgreSQL as they are listed and as they stand, one by one and in columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from unstale.adapters import postgres_columns, postgres_members
from unstale.adapters.postgres_link import PostgresLink
from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.store_shared import contains
from unstale.listings.records import CollectionMember
from unstale.ports import FleetColumns, HostCount, Listing

_LISTED = (
    "SELECT s.address, s.kind, s.weight, s.cost, h.name, s.shortest, s.longest, s.options, s.paused, s.id, s.added_at "
    "FROM sources s JOIN hosts h ON h.id = s.host "
)


class PostgresCatalogue(PostgresLink):
    """Keeps the contract `Catalogue`."""

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        row = self._read(lambda db: db.execute("SELECT id FROM sources WHERE place = %s", (place(address),)).fetchone())
        return row[0] if row else None

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        which = [int(source) for source in sources]
        rows = self._read(lambda db: db.execute(_LISTED + "WHERE s.id = ANY(%s)", (which,)).fetchall())
        known = {
            source: Listing(
                address,
                kind,
                weight,
                cost,
                host,
                shortest,
                longest,
                json.loads(options or "{}"),
                paused,
                source,
                added_at,
            )
            for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
        }
        return [known[source] for source in which if source in known]

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
        asked = {
            'lower(address COLLATE "C") LIKE lower(%s COLLATE "C")': contains(text),
            "host = (SELECT id FROM hosts WHERE name = %s)": host,
            "kind = %s": kind,
            "paused = %s": paused,
            "options::jsonb->'tags' ? %s": tag,
            "options::jsonb ?| %s": list(options) or None,
            "id IN (SELECT source FROM beliefs WHERE (failures > 0) = %s)": failing,
        }
        given = {clause: value for clause, value in asked.items() if value is not None}
        where = " AND ".join(["id > %s", *given])
        query = f"SELECT id FROM sources WHERE {where} ORDER BY id LIMIT %s".encode()
        return [row[0] for row in self._read(lambda db: db.execute(query, (after, *given.values(), limit)).fetchall())]

    def names(self) -> list[tuple[int, str, str]]:
        """Every source's id, address and title, ids rising; empty where it has no title."""
        return self._read(
            lambda db: db.execute(
                "SELECT id, address, coalesce(options::jsonb->>'title', '') FROM sources ORDER BY id"
            ).fetchall()
        )

    def hosts(self) -> list[HostCount]:
        """Each host that has sources, by name."""

        def whole(db: Connection) -> list[HostCount]:
            through_all(db)
            rows = db.execute(
                "SELECT h.name, n.sources, n.paused, n.failing FROM (SELECT s.host, count(*) AS sources, "
                " count(*) FILTER (WHERE s.paused) AS paused, "
                " count(*) FILTER (WHERE b.failures > 0 AND NOT s.paused) AS failing "
                " FROM sources s JOIN beliefs b ON b.source = s.id GROUP BY s.host) n "
                'JOIN hosts h ON h.id = n.host ORDER BY h.name COLLATE "C"'
            )
            return [HostCount(*row) for row in rows]

        return self.at_once(whole)

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""

        def whole(db: Connection) -> FleetColumns:
            through_all(db)
            return postgres_columns.columns_of(db, width)

        return self.at_once(whole)

    def members(self, collection: int | None = None, source: int | None = None) -> list[CollectionMember]:
        """Whom one collection tells of, or each of all; of one source, what tells of it."""
        return self._read(lambda db: postgres_members.members(db, collection, source))

    def pushes(self, sources: Sequence[int] | None = None) -> list[CollectionMember]:
        """What was last pushed of these sources, or of all."""
        return self._read(lambda db: postgres_members.pushes(db, sources))

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        return self.at_once(lambda db: postgres_columns.columns_of(db, width, sources))


def place(address: str) -> bytes:
    """What an address is found by: 16 bytes of its SHA-256."""
    return sha256(address.encode("utf-8", "replace")).digest()[:16]
