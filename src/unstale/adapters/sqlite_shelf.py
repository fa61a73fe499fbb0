"""A SQLite store as servers read it: one row per request, bodies as they lie on the disk."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unstale.adapters.sqlite_catalogue import SqliteCatalogue
from unstale.adapters.sqlite_claims import column
from unstale.adapters.sqlite_standing import ToldHeads, heads
from unstale.adapters.store_shared import ANSWERS, NEWEST, NUMBER
from unstale.keeper.outcomes import Answer
from unstale.ports import Announced, CrewMember, Edition, Head, Recent

#: bytes of the index's two headers, see sqlite.org/walformat.html
_HEADERS = 96


class SqliteShelf(SqliteCatalogue):
    """Keeps the contract `Shelf`."""

    _index: mmap.mmap | None = None
    _told: ToldHeads | None = None

    def mark(self) -> bytes | None:
        """The two headers of the write-ahead log's index, which every commit changes."""
        if self._index is None:
            self._index = _index(self.path) if self._db is not None else None
        return None if self._index is None else self._index[:_HEADERS]

    def heads(self, sources: Sequence[int]) -> list[Head]:
        """How sources stand now, those that exist."""
        with self._at_once() as db:
            return heads(db, sources)

    def heads_unlike(self, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Of sources that stood so: those that stand otherwise now, and those that are gone."""
        with self._at_once() as db:
            self._told = self._told or ToldHeads()
            return self._told.unlike(db, told)

    def editions(self, wanted: Sequence[tuple[int, int]]) -> list[Edition | None]:
        """Versions without their bytes, in the order asked."""
        asked, found = set(wanted), dict[tuple[int, int], Edition]()
        with self._reading() as db:
            # One statement for all: one for each takes six times as long. A source that is asked for at one version
            # may be read at another one that is asked for of another source.
            rows: Any = db.execute(
                "SELECT c.source, c.version, c.taken_at, c.media_type, c.last_modified, t.digest, t.size, coalesce("
                "(SELECT o.taken_at FROM copies o WHERE o.source = c.source AND o.version < c.version "
                " ORDER BY o.version DESC LIMIT 1), 0.0), c.via "
                "FROM carray(?) w CROSS JOIN copies c ON c.source = w.value AND c.version IN carray(?) "
                "JOIN contents t ON t.id = c.content",
                (column(sorted({source for source, _ in asked})), column({version for _, version in asked})),
            )
            for source, version, *rest in rows:
                found[source, version] = Edition(version, *rest)
        return [found.get(one) for one in wanted]

    def packed(self, source: int, version: int) -> bytes | None:
        """The zstd frame of a version, as it was stored."""
        with self._reading() as db:
            frame: bytes | None = db.execute(
                "SELECT t.body FROM copies c JOIN contents t ON t.id = c.content WHERE c.source = ? AND c.version = ?",
                (source, version),
            ).get
        return frame

    def announced(self, since: float, after: int, limit: int) -> list[Announced]:
        """Sources with ids above `after` whose copies are as of `since` or later, ids rising."""
        with self._at_once() as db:
            rows: Any = db.execute(
                "SELECT b.source, s.address, b.last, b.version, t.digest FROM beliefs b "
                "JOIN sources s ON s.id = b.source JOIN copies c ON c.source = b.source AND c.version = b.version "
                "JOIN contents t ON t.id = c.content WHERE b.source > ? AND b.last >= ? AND NOT s.paused "
                "ORDER BY b.source LIMIT ?",
                (after, since, limit),
            ).fetchall()
        return [Announced(*row) for row in rows]

    def recent(self, count: int) -> list[Recent]:
        """The newest observations by token, newest first."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT token, source, polled_at, answer FROM observations ORDER BY token DESC LIMIT ?", (count,)
            ).fetchall()
        return [Recent(token, source, at, ANSWERS[answer]) for token, source, at, answer in rows]

    def answered_at(self) -> float:
        """When any source last answered, -inf if none of the newest polls was."""
        with self._reading() as db:
            at: float | None = db.execute(
                "SELECT max(polled_at) FROM (SELECT polled_at, answer FROM observations ORDER BY token DESC LIMIT ?) "
                "WHERE answer != ?",
                (NEWEST, NUMBER[Answer.FAILED]),
            ).get
        return -math.inf if at is None else at

    def alive(self) -> tuple[CrewMember, ...] | None:
        """One process keeps a file; who asks looks whether it holds it."""
        return None

    def close(self) -> None:
        """Give back the file; closing again does nothing."""
        if self._index is not None:
            self._index.close()
            self._index = None
        super().close()


def _index(path: Path) -> mmap.mmap | None:
    """The write-ahead log's index, which lives as long as a connection is open; None where it cannot be mapped."""
    try:
        with Path(f"{path}-shm").open("rb") as file:
            return mmap.mmap(file.fileno(), _HEADERS, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
