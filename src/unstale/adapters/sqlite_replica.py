"""The reading side of the SQLite store, and the one place where SQLite's errors become a sentence."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from unstale.adapters import sqlite_copies
from unstale.adapters.sqlite_schema import connect
from unstale.errors import StoreError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import Copy, Listing, Observation, Price, Standing

#: answers as they are stored
ANSWERS = (Answer.UNCHANGED, Answer.CHANGED, Answer.FAILED)
#: rows of the fleet that are turned into columns at a time: more no longer fit the processor's cache
_CHUNK = 1000


class SqliteReplica:
    """Reads a store file; keeps the contract `Replica`. Many may read while one engine writes."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with _worded(self.path):
            self._db: apsw.Connection | None = connect(self.path)

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        with self._reading() as db:
            found: int | None = db.execute("SELECT id FROM sources WHERE address = ?", (address,)).get
        return found

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        with self._reading() as db:
            rows: Any = db.executemany(
                "SELECT s.address, s.kind, s.weight, s.cost, h.name, s.shortest, s.longest, s.options, s.paused, "
                "s.id, s.added_at FROM sources s JOIN hosts h ON h.id = s.host WHERE s.id = ?",
                ((int(source),) for source in sources),
            )
            return [
                Listing(address, kind, weight, cost, host, shortest, longest, json.loads(options or "{}"),
                        bool(paused), source, added_at)
                for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
            ]  # fmt: skip

    def fleet(self, width: int) -> Standing:
        """Everything a start needs, in columns."""
        with self._at_once() as db:
            count = db.execute("SELECT count(*) FROM sources").get
            whole, floats = np.zeros((4, count), dtype=np.int64), np.zeros((7, count))
            beliefs = np.zeros((count, width))
            rows: Any = db.execute(
                "SELECT s.id, s.host, s.paused, b.failures, s.weight, s.cost, s.shortest, s.longest, b.due, b.last, "
                "b.found, b.belief FROM sources s JOIN beliefs b ON b.source = s.id ORDER BY s.id"
            )
            begin, blank = 0, bytes(8 * width)
            while chunk := list(islice(rows, _CHUNK)):
                *columns, blobs = zip(*chunk, strict=True)
                part = slice(begin, begin + len(chunk))
                whole[:, part], floats[:, part] = columns[:4], columns[4:]
                held = b"".join(blob if blob is not None and len(blob) == len(blank) else blank for blob in blobs)
                beliefs[part] = np.frombuffer(held).reshape(len(chunk), width)
                begin += len(chunk)
            names: dict[int, str] = dict(_all(db, "SELECT id, name FROM hosts ORDER BY id"))
            settings: dict[str, bytes] = dict(_all(db, "SELECT name, value FROM settings"))
            price: Any = db.execute("SELECT at, price, budget FROM prices ORDER BY id DESC LIMIT 1").fetchone()
        source, host, paused, failures = whole
        weight, cost, shortest, longest, due, last, found = floats
        return Standing(source, weight, cost, shortest, longest,
                        np.searchsorted(np.fromiter(names, np.int64, len(names)), host), tuple(names.values()),
                        paused != 0, due, last, found, failures, beliefs, settings,
                        Price(*price) if price else None)  # fmt: skip

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
        with self._reading() as db:
            rows: Any = db.execute(
                "WITH RECURSIVE chain"
                "(token, source, polled_at, answer, elapsed, modified, bytes, reason, previous) AS ("
                " SELECT o.* FROM observations o JOIN beliefs b ON o.token = b.latest WHERE b.source = ?"
                " UNION ALL SELECT o.* FROM observations o JOIN chain ON o.token = chain.previous LIMIT ?"
                ") SELECT * FROM chain",
                (source, limit),
            ).fetchall()
        return [
            Observation(token, source, at, ANSWERS[answer], math.nan if elapsed is None else elapsed, modified, size,
                        reason or "")
            for token, _, at, answer, elapsed, modified, size, reason, _ in rows
        ]  # fmt: skip

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT at, price, budget FROM prices WHERE at >= ? ORDER BY id", (since,))
            return [Price(*row) for row in rows]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        with self._reading() as db:
            return dict(_all(db, "SELECT name, value FROM counters ORDER BY name"))

    def verify(self) -> list[str]:
        """What is wrong with the file, a sentence each: SQLite's own check, then every copy against its SHA-256."""
        with self._reading() as db:
            rows: Any = db.execute("PRAGMA integrity_check").fetchall()
            problems = [str(text) for (text,) in rows if text != "ok"]
            problems += [
                f"copy {version} of source {source} is damaged" for source, version in sqlite_copies.damaged(db)
            ]
        return problems

    def backup(self, path: str | Path) -> None:
        """A whole store as of now in a new file, while others go on writing; it appears whole or not at all."""
        target = Path(path)
        if target.exists():
            raise StoreError(sentence("backup", repr(str(path)), "exists already", "choose another name"))
        draft = target.with_name(f".{target.name}.draft")
        draft.unlink(missing_ok=True)
        try:
            with _worded(target):
                # A connection of its own: the copy is of one instant, and does not start over when we write.
                source, copied = apsw.Connection(str(self.path)), apsw.Connection(str(draft))
                try:
                    with copied.backup("main", source, "main") as step:
                        step.step(-1)
                    copied.pragma("journal_mode", "delete")
                finally:
                    source.close()
                    copied.close()
                _sync(draft)
                draft.replace(target)
                _sync(target.absolute().parent)
        finally:
            draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Give back the file; closing again does nothing."""
        db, self._db = self._db, None
        if db is not None:
            with _worded(self.path):
                db.close()

    @contextmanager
    def _at_once(self) -> Iterator[apsw.Connection]:
        """Several reads of one instant."""
        with self._reading() as db:
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        if self._db is None:
            raise StoreError(sentence("store", repr(str(self.path)), "is closed", "open it again"))
        with _worded(self.path):
            yield self._db


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        rule, remedy = _words(error)
        raise StoreError(sentence("store", repr(str(path)), rule, remedy)) from error


def _all(db: apsw.Connection, query: str) -> list[Any]:
    return db.execute(query).fetchall()


def _words(error: Exception) -> tuple[str, str]:
    if isinstance(error, apsw.FullError):
        return "has no room left, nothing was recorded", "free some disk space, then it goes on"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "is held by another process", "end what holds it, or try again"
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return "is damaged or no database", "restore a backup or choose another file"
    if isinstance(error, apsw.CantOpenError):
        return "cannot be opened", "check that its folder exists and may be written"
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return "may not be written", "change its permissions"
    return f"failed ({error})", "check the disk, then open it again"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
