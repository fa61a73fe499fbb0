"""A PostgreSQL store as servers read it: one question per request, bodies as they were stored."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from unstale.adapters.postgres_catalogue import PostgresCatalogue
from unstale.adapters.store_shared import ANSWERS, NEWEST, NUMBER
from unstale.keeper.outcomes import Answer
from unstale.ports import Announced, CrewMember, Edition, Head, Recent, unlike

#: seconds without a sign of life after which a worker is gone, and the time by the server's own clock
GONE, NOW = 5.0, "extract(epoch FROM clock_timestamp())::float8"


class PostgresShelf(PostgresCatalogue):
    """Keeps the contract `Shelf`."""

    def mark(self) -> bytes | None:
        """Only the server knows, and asking it takes as long as what was to be asked."""
        return None

    def heads(self, sources: Sequence[int]) -> list[Head]:
        """How sources stand now, those that exist."""
        which = [int(source) for source in sources]
        query = (
            "SELECT source, latest, version, last, due, failures FROM beliefs JOIN schedule USING (source) "
            "WHERE source = ANY(%s)"
        )
        rows = self._read(lambda db: db.execute(query, (which,)).fetchall())
        known = {row[0]: Head(*row) for row in rows}
        return [known[source] for source in which if source in known]

    def heads_unlike(self, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Of sources that stood so: those that stand otherwise now, and those that are gone."""
        return unlike(self.heads(list(told)), told)

    def editions(self, wanted: Sequence[tuple[int, int]]) -> list[Edition | None]:
        """Versions without their bytes, in the order asked."""
        sources, versions = [source for source, _ in wanted], [version for _, version in wanted]
        rows = self._read(
            lambda db: db.execute(
                "SELECT source, version, taken_at, media_type, last_modified, digest, size, coalesce("
                "(SELECT o.taken_at FROM copies o WHERE o.source = c.source AND o.version < c.version "
                " ORDER BY o.version DESC LIMIT 1), 0.0), "
                "via FROM copies c WHERE (source, version) IN (SELECT * FROM unnest(%s::bigint[], %s::bigint[]))",
                (sources, versions),
            ).fetchall()
        )
        found = {(row[0], row[1]): Edition(*row[1:]) for row in rows}
        return [found.get(one) for one in wanted]

    def packed(self, source: int, version: int) -> bytes | None:
        """The zstd frame of a version, as it was stored."""
        query = "SELECT body FROM copies WHERE source = %s AND version = %s"
        row: Any = self._read(lambda db: db.execute(query, (source, version), binary=True).fetchone())
        return None if row is None else bytes(row[0])

    def announced(self, since: float, after: int, limit: int) -> list[Announced]:
        """Sources with ids above `after` whose copies are as of `since` or later, ids rising."""
        rows = self._read(
            lambda db: db.execute(
                "SELECT b.source, s.address, b.last, b.version, c.digest FROM beliefs b JOIN sources s ON s.id = "
                "b.source JOIN copies c ON c.source = b.source AND c.version = b.version "
                "WHERE b.source > %s AND b.last >= %s AND NOT s.paused ORDER BY b.source LIMIT %s",
                (after, since, limit),
            ).fetchall()
        )
        return [Announced(*row) for row in rows]

    def recent(self, count: int) -> list[Recent]:
        """The newest observations by token, newest first."""
        query = "SELECT token, source, polled_at, answer FROM observations ORDER BY token DESC LIMIT %s"
        rows = self._read(lambda db: db.execute(query, (count,)).fetchall())
        return [Recent(token, source, at, ANSWERS[answer]) for token, source, at, answer in rows]

    def answered_at(self) -> float:
        """When any source last answered, -inf if none of the newest polls was."""
        row: Any = self._read(
            lambda db: db.execute(
                "SELECT max(polled_at) FROM (SELECT polled_at, answer FROM observations ORDER BY token DESC LIMIT %s) "
                "newest WHERE answer <> %s",
                (NEWEST, NUMBER[Answer.FAILED]),
            ).fetchone()
        )
        return -math.inf if row[0] is None else float(row[0])

    def alive(self) -> tuple[CrewMember, ...] | None:
        """The workers that have given a sign of life lately."""
        query = f"SELECT owner, share, level, burst, facts FROM workers WHERE at >= {NOW} - %s ORDER BY owner".encode()
        rows = self._read(lambda db: db.execute(query, (GONE,)).fetchall())
        return tuple(CrewMember(row[0], row[1], row[2], row[3], json.loads(row[4])) for row in rows)
