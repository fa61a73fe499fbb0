"""A SQLite store as the replica server reads it: one row per request, bodies as they lie on the disk."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unstale.adapters.sqlite_replica import ANSWERS, SqliteReplica
from unstale.keeper.outcomes import Answer

#: polls that are looked through for one that was answered
_NEWEST = 1000
_FAILED = ANSWERS.index(Answer.FAILED)
#: bytes of the index's two headers, see sqlite.org/walformat.html
_HEADERS = 96


class SqliteShelf(SqliteReplica):
    """Reads a store file for a server; keeps the server's contract `Shelf`."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self._index = _index(self.path)

    def mark(self) -> bytes | None:
        """The two headers of the write-ahead log's index, which every commit changes."""
        return None if self._index is None else self._index[:_HEADERS]

    def head_rows(self, sources: Sequence[int]) -> list[tuple[int, int, int, float, float, int]]:
        """Of each source that exists: id, newest observation's token, newest version, last answer, due, failures."""
        with self._reading() as db:
            rows: Any = db.executemany(
                "SELECT source, latest, version, last, due, failures FROM beliefs WHERE source = ?",
                ((source,) for source in sources),
            )
            return list(rows)

    def edition_row(
        self, source: int, version: int
    ) -> tuple[int, float, str, str | None, bytes, int, float, str] | None:
        """Version, when taken, media type, Last-Modified, digest, size, when the one before was taken, and via."""
        with self._reading() as db:
            row: Any = db.execute(
                "SELECT c.version, c.taken_at, c.media_type, c.last_modified, t.digest, t.size, coalesce("
                "(SELECT taken_at FROM copies WHERE source = ?1 AND version < ?2 ORDER BY version DESC LIMIT 1), 0.0), "
                "c.via "
                "FROM copies c JOIN contents t ON t.id = c.content WHERE c.source = ?1 AND c.version = ?2",
                (source, version),
            ).fetchone()
        return row  # type: ignore[no-any-return]

    def packed(self, source: int, version: int) -> bytes | None:
        """The zstd frame of a version, as it was stored."""
        with self._reading() as db:
            frame: bytes | None = db.execute(
                "SELECT t.body FROM copies c JOIN contents t ON t.id = c.content WHERE c.source = ? AND c.version = ?",
                (source, version),
            ).get
        return frame

    def addresses(self) -> list[tuple[int, str]]:
        """Every source's id and address, ids rising."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT id, address FROM sources ORDER BY id").fetchall()
        return list(rows)

    def digest_rows(self, since: float, after: int, limit: int) -> list[tuple[int, str, float, int, bytes]]:
        """Of sources above an id whose copy is as of `since` or later: id, address, as of, version, digest."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT b.source, s.address, b.last, b.version, t.digest FROM beliefs b "
                "JOIN sources s ON s.id = b.source JOIN copies c ON c.source = b.source AND c.version = b.version "
                "JOIN contents t ON t.id = c.content WHERE b.source > ? AND b.last >= ? AND NOT s.paused "
                "ORDER BY b.source LIMIT ?",
                (after, since, limit),
            ).fetchall()
        return list(rows)

    def heard(self) -> float:
        """When any source last answered, -inf if none of the newest polls was."""
        with self._reading() as db:
            at: float | None = db.execute(
                "SELECT max(polled_at) FROM (SELECT polled_at, answer FROM observations ORDER BY token DESC LIMIT ?) "
                "WHERE answer != ?",
                (_NEWEST, _FAILED),
            ).get
        return -math.inf if at is None else at

    def host_rows(self) -> list[tuple[str, int, int, int]]:
        """Each host: its name, its sources, how many of them are paused, how many of the others fail."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT h.name, count(*), sum(s.paused), sum(b.failures > 0 AND NOT s.paused) FROM sources s "
                "JOIN beliefs b ON b.source = s.id JOIN hosts h ON h.id = s.host GROUP BY s.host"
            ).fetchall()
        return list(rows)

    def recent(self, count: int) -> list[tuple[int, int, float, str]]:
        """The newest observations by token: token, source, when it was polled, what it answered."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT token, source, polled_at, answer FROM observations ORDER BY token DESC LIMIT ?", (count,)
            ).fetchall()
        return [(token, source, at, ANSWERS[answer].value) for token, source, at, answer in rows]

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""
        with self._reading() as db:
            value: bytes | None = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).get
        return value or b""

    def weights(self, sources: Sequence[int]) -> dict[int, float]:
        """The weights of those of these sources that exist."""
        with self._reading() as db:
            rows: Any = db.executemany("SELECT id, weight FROM sources WHERE id = ?", ((source,) for source in sources))
            return dict(rows)

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
