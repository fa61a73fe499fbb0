"""The reading side of the SQLite store: copies, what polls taught, prices, and whether all of it is whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from unstale.adapters import sqlite_copies, sqlite_edits, sqlite_entries
from unstale.adapters.sqlite_columns import PRICE
from unstale.adapters.sqlite_file import worded
from unstale.adapters.sqlite_schema import connect_reading
from unstale.adapters.sqlite_shelf import SqliteShelf
from unstale.adapters.sqlite_tables import COST
from unstale.adapters.store_shared import observation
from unstale.errors import StoreError, sentence
from unstale.ports import Checkpoint, Copy, Edit, Epoch, Holding, KeptEntry, Observation, Price


class SqliteReplica(SqliteShelf):
    """Reads a store file, and can neither change nor make one; keeps the contract `ReadStore`.

    Many processes may read while one writes.
    """

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named, its bytes checked."""
        with self._reading() as db:
            return sqlite_copies.read(db, source, version)

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT version FROM copies WHERE source = ? ORDER BY version DESC", (source,))
            return [version for (version,) in rows]

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first: a walk along the chain from the newest one."""
        with self._at_once() as db:
            rows: Any = db.execute(
                "WITH RECURSIVE chain"
                "(token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, told) AS ("
                " SELECT o.* FROM states b CROSS JOIN observations o ON o.token = b.latest WHERE b.id = place(?)"
                " UNION ALL SELECT o.* FROM observations o JOIN chain ON o.token = chain.previous LIMIT ?"
                ") SELECT * FROM chain",
                (source, limit),
            ).fetchall()
        return [
            observation(source, token, at, answer, elapsed, modified, size, reason, epoch, told)
            for token, _, at, answer, elapsed, modified, size, reason, _, epoch, told in rows
        ]

    def kept_entries(self, source: int, limit: int = 1000, before: int | None = None) -> list[KeptEntry]:
        """The entries of a feed, those that were seen last first."""
        with self._reading() as db:
            return sqlite_entries.read(db, source, limit, before)

    def entry_count(self, source: int) -> int:
        """How many entries of a feed are kept."""
        with self._reading() as db:
            return sqlite_entries.count(db, source)

    def edits(self, limit: int = 1000, before: int | None = None) -> list[Edit]:
        """Who changed what, the newest first."""
        with self._reading() as db:
            return sqlite_edits.read(db, limit, before)

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        with self._reading() as db:
            rows: Any = db.execute(f"SELECT {PRICE} FROM prices WHERE at >= ? ORDER BY id", (since,))
            return [Price(*row) for row in rows]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT name, value FROM counters ORDER BY name").fetchall()
        return dict(rows)

    def total_cost(self) -> float:
        """What one poll of each source costs, but of those that are paused."""
        with self._reading() as db:
            return float(db.execute(f"SELECT total({COST}) FROM sources WHERE NOT paused").get or 0.0)

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""
        with self._reading() as db:
            value: bytes | None = db.execute("SELECT value FROM settings WHERE name = ?", (name,)).get
        return value or b""

    def held(self, addresses: Sequence[str]) -> dict[str, Holding]:
        """What is held of those that are sources and not paused, by address."""
        with self._at_once() as db:
            rows: Any = db.executemany(
                "SELECT s.address, s.id, b.last, t.digest FROM sources s JOIN beliefs b ON b.source = s.id "
                "LEFT JOIN copies c ON c.source = s.id LEFT JOIN contents t ON t.id = c.content "
                "WHERE s.address = ? AND NOT s.paused ORDER BY c.version DESC",
                ((address,) for address in addresses),
            )
            found: dict[str, Holding] = {}
            for address, source, last, digest in rows:
                before = found[address].digests if address in found else ()
                found[address] = Holding(source, last, before if digest is None else (*before, digest))
        return found

    def checkpoint(self, source: int) -> Checkpoint | None:
        """The belief from where replaying a source's observations goes on."""
        with self._reading() as db:
            row: Any = db.execute(
                "SELECT latest, last, found, belief FROM checkpoints WHERE source = ?", (source,)
            ).fetchone()
        return None if row is None else Checkpoint(*row)

    def epochs(self, since: int = 0) -> list[Epoch]:
        """The learner's shared states that observations name, from one number on, and the one in force."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT id, value FROM epochs WHERE id >= ? ORDER BY id", (since,)).fetchall()
        return [Epoch(*row) for row in rows]

    def verify(self) -> list[str]:
        """What is wrong with the file, a sentence each: SQLite's own check, every copy against its SHA-256, and every
        source that nobody would ever poll again.
        """
        with self._at_once() as db:
            rows: Any = db.execute("PRAGMA integrity_check").fetchall()
            problems = [str(text) for (text,) in rows if text != "ok"]
            problems += [
                f"copy {version} of source {source} is damaged" for source, version in sqlite_copies.damaged(db)
            ]
            forgotten: Any = db.execute(
                "SELECT id FROM sources s WHERE NOT paused "
                "AND NOT EXISTS (SELECT 1 FROM states b WHERE b.id = place(s.id))"
            ).fetchall()
            problems += [f"source {source} is neither waiting nor claimed" for (source,) in forgotten]
        return problems

    def damaged(self) -> list[tuple[int, int]]:
        """Sources and versions whose bytes are not those that were stored, each once."""
        with self._reading() as db:
            return sorted(set(sqlite_copies.damaged(db)))

    def backup(self, path: str | Path) -> list[str]:
        """A whole store as of now in a new file, while others go on writing; it appears whole or not at all.

        What is wrong with it, a sentence each: the file as it was written is read back and verified. What the store
        holds damaged is damaged in a copy of it, too, which is better than none.
        """
        target = Path(path).resolve()
        if target.exists():
            raise StoreError(sentence("backup", repr(str(path)), "exists already", "choose another name"))
        draft = target.with_name(f".{target.name}.draft")
        draft.unlink(missing_ok=True)
        try:
            with worded(target):
                # A connection of its own: the copy is of one instant, and does not start over when we write.
                source, copied = connect_reading(self.path), apsw.Connection(str(draft))
                try:
                    with copied.backup("main", source, "main") as step:
                        step.step(-1)
                    copied.pragma("journal_mode", "delete")
                finally:
                    source.close()
                    copied.close()
                _sync(draft)
                written = SqliteReplica(draft)
                problems = written.verify()
                written.close()
                draft.replace(target)
                _sync(target.absolute().parent)
                return problems
        finally:
            draft.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
