"""The reading side of the PostgreSQL store: copies, what polls taught, prices, and whether all of it is whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstale.adapters import postgres_columns, postgres_copies, postgres_edits, postgres_entries
from unstale.adapters.postgres_catalogue import place
from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.postgres_shelf import PostgresShelf
from unstale.adapters.postgres_tables import COST
from unstale.adapters.store_shared import observation
from unstale.ports import Checkpoint, Copy, Edit, Epoch, Holding, KeptEntry, Observation, Price


class PostgresReplica(PostgresShelf):
    """Reads a store in a PostgreSQL database; keeps the contract `ReadStore`."""

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named, its bytes checked."""
        return self._read(lambda db: postgres_copies.read(db, source, version))

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""
        query = "SELECT version FROM copies WHERE source = %s ORDER BY version DESC"
        return [row[0] for row in self._read(lambda db: db.execute(query, (source,)).fetchall())]

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first: a walk along the chain from the newest one."""
        rows: Any = self._read(
            lambda db: db.execute(
                "WITH RECURSIVE chain"
                "(token, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, told, n) AS ("
                " SELECT o.token, o.polled_at, o.answer, o.elapsed, o.modified, o.bytes, o.reason, o.previous, "
                " o.epoch, o.told, 1 FROM observations o WHERE o.token = (SELECT latest FROM beliefs WHERE source = %s)"
                " UNION ALL SELECT o.token, o.polled_at, o.answer, o.elapsed, o.modified, o.bytes, o.reason, "
                " o.previous, o.epoch, o.told, n + 1 FROM chain, observations o"
                " WHERE o.token = chain.previous AND n < %s"
                ") SELECT * FROM chain ORDER BY n LIMIT %s",
                (source, limit, limit),
            ).fetchall()
        )
        return [
            observation(source, token, at, answer, elapsed, modified, size, reason, epoch, told)
            for token, at, answer, elapsed, modified, size, reason, _, epoch, told, _ in rows
        ]

    def kept_entries(self, source: int, limit: int = 1000, before: int | None = None) -> list[KeptEntry]:
        """The entries of a feed, those that were seen last first."""
        return self._read(lambda db: postgres_entries.read(db, source, limit, before))

    def entry_count(self, source: int) -> int:
        """How many entries of a feed are kept."""
        return self._read(lambda db: postgres_entries.count(db, source))

    def edits(self, limit: int = 1000, before: int | None = None) -> list[Edit]:
        """Who changed what, the newest first."""
        return self._read(lambda db: postgres_edits.read(db, limit, before))

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        query = f"SELECT {postgres_columns.PRICE} FROM prices WHERE at >= %s ORDER BY id".encode()
        return [Price(*row) for row in self._read(lambda db: db.execute(query, (since,)).fetchall())]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        query = "SELECT name, sum(value)::bigint FROM counters GROUP BY name HAVING sum(value) > 0 ORDER BY name"
        return dict(self._read(lambda db: db.execute(query).fetchall()))

    def total_cost(self) -> float:
        """What one poll of each source costs, but of those that are paused."""

        def whole(db: Connection) -> float:
            through_all(db)
            asked = f"SELECT coalesce(sum({COST}), 0.0) FROM sources WHERE NOT paused"
            row: Any = db.execute(asked.encode()).fetchone()
            return float(row[0])

        return self.at_once(whole)

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none; nobody goes by the learner's state for having read another one."""
        row: Any = self._read(lambda db: db.execute("SELECT value FROM settings WHERE name = %s", (name,)).fetchone())
        return b"" if row is None else bytes(row[0])

    def held(self, addresses: Sequence[str]) -> dict[str, Holding]:
        """What is held of those that are sources and not paused, by address."""
        rows = self._read(
            lambda db: db.execute(
                "SELECT s.address, s.id, b.last, coalesce((SELECT array_agg(c.digest ORDER BY c.version DESC) "
                "FROM copies c WHERE c.source = s.id), '{}') FROM sources s JOIN beliefs b ON b.source = s.id "
                "WHERE s.place = ANY(%b::bytea[]) AND NOT s.paused",
                ([place(address) for address in addresses],),
                binary=True,
            ).fetchall()
        )
        return {address: Holding(source, last, tuple(digests)) for address, source, last, digests in rows}

    def checkpoint(self, source: int) -> Checkpoint | None:
        """The belief from where replaying a source's observations goes on."""
        query = "SELECT latest, last, found, belief FROM checkpoints WHERE source = %s"
        row: Any = self._read(lambda db: db.execute(query, (source,)).fetchone())
        return None if row is None else Checkpoint(*row)

    def epochs(self, since: int = 0) -> list[Epoch]:
        """The learner's shared states that observations may name, from one number on, and the one in force."""
        query = "SELECT id, value FROM epochs WHERE id >= %s ORDER BY id"
        return [Epoch(*row) for row in self._read(lambda db: db.execute(query, (since,)).fetchall())]

    def damaged(self) -> list[tuple[int, int]]:
        """Sources and versions whose bytes are not those that were stored, each once."""
        return self._read(lambda db: list(postgres_copies.damaged(db)))

    def verify(self) -> list[str]:
        """What is wrong with the copies, a sentence each: every one against its SHA-256."""
        return [f"copy {version} of source {source} is damaged" for source, version in self.damaged()]
