"""The reading side of the SQLite store, and the one place where SQLite's errors become a sentence."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import Any

import apsw
import numpy as np

from unstale.adapters import sqlite_copies
from unstale.adapters.sqlite_schema import connect_reading
from unstale.errors import StoreError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import Copy, FleetColumns, Listing, Observation, Price

#: answers as they are stored
ANSWERS = (Answer.UNCHANGED, Answer.CHANGED, Answer.FAILED)
#: rows of the fleet that are turned into columns at a time: more no longer fit the processor's cache
_CHUNK = 1000
_COLUMNS = (
    "SELECT s.id, s.host, s.paused, b.failures, s.weight, s.cost, s.shortest, s.longest, b.due, b.last, b.found, "
    "b.belief FROM sources s JOIN beliefs b ON b.source = s.id "
)

_PRICE = "at, price, budget, fresh, even, polls, changed, failed, spent"


class SqliteReplica:
    """Reads a store file, and can neither change nor make one; keeps the contract `Replica`.

    Many processes may read while one writes.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        #: SQLite's handle is one thread's at a time
        self._in_use, self._moved = RLock(), 0
        with _worded(self.path):
            self._db: apsw.Connection | None = self._connect()

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
                Listing(
                    address,
                    kind,
                    weight,
                    cost,
                    host,
                    shortest,
                    longest,
                    json.loads(options or "{}"),
                    bool(paused),
                    source,
                    added_at,
                )
                for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
            ]

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""
        with self._at_once() as db:
            count = db.execute("SELECT count(*) FROM sources").get
            return _standing(db, db.execute(_COLUMNS + "ORDER BY s.id"), count, width)

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        with self._at_once() as db:
            which = [(source,) for source in sorted({int(source) for source in sources})]
            rows = db.executemany(_COLUMNS + "WHERE s.id = ?", which).fetchall()
            return _standing(db, iter(rows), len(rows), width)

    def search(
        self,
        text: str = "",
        *,
        host: str | None = None,
        kind: str | None = None,
        paused: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[int]:
        """The sources after an id whose address contains a text, rising; a and A are the same letter, ä and Ä are not.

        To go through all, ask again after the last one.
        """
        literal = re.sub(r"([\\%_])", r"\\\1", text)
        asked = {
            "address LIKE ? ESCAPE '\\'": f"%{literal}%" if text else None,
            "host = (SELECT id FROM hosts WHERE name = ?)": host,
            "kind = ?": kind,
            "paused = ?": None if paused is None else int(paused),
        }
        given = {clause: value for clause, value in asked.items() if value is not None}
        where = " AND ".join(["id > ?", *given])
        with self._reading() as db:
            rows: Any = db.execute(
                f"SELECT id FROM sources WHERE {where} ORDER BY id LIMIT ?", (after, *given.values(), limit)
            )
            return [source for (source,) in rows]

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named, its bytes checked."""
        with self._reading() as db:
            return sqlite_copies.read(db, source, version)

    def held(self, addresses: Sequence[str]) -> dict[str, tuple[int, float, tuple[bytes, ...]]]:
        """Of those that are sources: id, when it last answered, and the digests of its kept versions, newest first."""
        with self._reading() as db:
            rows: Any = db.executemany(
                "SELECT s.address, s.id, b.last, t.digest FROM sources s JOIN beliefs b ON b.source = s.id "
                "LEFT JOIN copies c ON c.source = s.id LEFT JOIN contents t ON t.id = c.content "
                "WHERE s.address = ? AND NOT s.paused ORDER BY c.version DESC",
                ((address,) for address in addresses),
            )
            found: dict[str, tuple[int, float, tuple[bytes, ...]]] = {}
            for address, source, last, digest in rows:
                before = found[address][2] if address in found else ()
                found[address] = (source, last, before if digest is None else (*before, digest))
        return found

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
                "(token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch) AS ("
                " SELECT o.* FROM observations o JOIN beliefs b ON o.token = b.latest WHERE b.source = ?"
                " UNION ALL SELECT o.* FROM observations o JOIN chain ON o.token = chain.previous LIMIT ?"
                ") SELECT * FROM chain",
                (source, limit),
            ).fetchall()
        return [
            Observation(
                token,
                source,
                at,
                ANSWERS[answer],
                math.nan if elapsed is None else elapsed,
                modified,
                size,
                reason or "",
                epoch,
            )
            for token, _, at, answer, elapsed, modified, size, reason, _, epoch in rows
        ]

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        with self._reading() as db:
            rows: Any = db.execute(f"SELECT {_PRICE} FROM prices WHERE at >= ? ORDER BY id", (since,))
            return [Price(*row) for row in rows]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        with self._reading() as db:
            return dict(_all(db, "SELECT name, value FROM counters ORDER BY name"))

    def checkpoint(self, source: int) -> tuple[int, float, float, bytes | None] | None:
        """The belief after observation `latest`, from where replaying goes on: latest, last, found, belief."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT latest, last, found, belief FROM checkpoints WHERE source = ?", (source,))
            return next(rows, None)

    def epochs(self, since: int = 0) -> list[tuple[int, bytes]]:
        """The learner's shared states that observations name, from one number on, and the one in force."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT id, value FROM epochs WHERE id >= ? ORDER BY id", (since,)).fetchall()
        return list(rows)

    def moved(self) -> int:
        """A number that is another one once another process, or connection, has written: microseconds to ask.

        Any thread may ask. While another thread uses the store it is the number of before, rather than a wait.
        """
        if self._in_use.acquire(blocking=False):
            try:
                with self._reading() as db:
                    self._moved = db.execute("PRAGMA data_version").get
            finally:
                self._in_use.release()
        return self._moved

    def verify(self) -> list[str]:
        """What is wrong with the file, a sentence each: SQLite's own check, every copy against its SHA-256, and every
        source that nobody would ever poll again.
        """
        with self._reading() as db:
            rows: Any = db.execute("PRAGMA integrity_check").fetchall()
            problems = [str(text) for (text,) in rows if text != "ok"]
            problems += [
                f"copy {version} of source {source} is damaged" for source, version in sqlite_copies.damaged(db)
            ]
            forgotten: Any = db.execute(
                "SELECT s.id FROM sources s JOIN beliefs b ON b.source = s.id WHERE NOT s.paused "
                "AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.source = s.id) "
                "AND NOT EXISTS (SELECT 1 FROM sched d WHERE d.due = b.due AND d.source = s.id)"
            ).fetchall()
            problems += [f"source {source} is neither waiting nor claimed" for (source,) in forgotten]
        return problems

    def backup(self, path: str | Path) -> None:
        """A whole store as of now in a new file, while others go on writing; it appears whole or not at all."""
        target = Path(path).resolve()
        if target.exists():
            raise StoreError(sentence("backup", repr(str(path)), "exists already", "choose another name"))
        draft = target.with_name(f".{target.name}.draft")
        draft.unlink(missing_ok=True)
        try:
            with _worded(target):
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
                draft.replace(target)
                _sync(target.absolute().parent)
        finally:
            draft.unlink(missing_ok=True)

    def close(self) -> None:
        """Give back the file; closing again does nothing."""
        with self._in_use:
            db, self._db = self._db, None
            if db is not None:
                with _worded(self.path):
                    db.close()

    def _connect(self) -> apsw.Connection:
        return connect_reading(self.path)

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
        with self._in_use:
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


def _standing(db: apsw.Connection, rows: Iterator[Any], count: int, width: int) -> FleetColumns:
    """Rows of `_COLUMNS` in columns."""
    whole, floats = np.zeros((4, count), dtype=np.int64), np.zeros((7, count))
    beliefs = np.zeros((count, width))
    begin, blank = 0, bytes(8 * width)
    while chunk := list(islice(rows, _CHUNK)):
        *columns, blobs = zip(*chunk, strict=True)
        part = slice(begin, begin + len(chunk))
        whole[:, part], floats[:, part] = columns[:4], columns[4:]
        held = b"".join(blob if blob is not None and len(blob) == len(blank) else blank for blob in blobs)
        beliefs[part] = np.frombuffer(held).reshape(len(chunk), width)
        begin += len(chunk)
    source, host, paused, failures = whole
    weight, cost, shortest, longest, due, last, found = floats
    hosts, place = np.unique(host, return_inverse=True)
    names: Any = db.executemany("SELECT name FROM hosts WHERE id = ?", ((int(h),) for h in hosts))
    settings: dict[str, bytes] = dict(_all(db, "SELECT name, value FROM settings"))
    price: Any = db.execute(f"SELECT {_PRICE} FROM prices ORDER BY id DESC LIMIT 1").fetchone()
    return FleetColumns(
        source,
        weight,
        cost,
        shortest,
        longest,
        place.astype(np.int64, copy=False),
        tuple(name for (name,) in names),
        paused != 0,
        due,
        last,
        found,
        failures,
        beliefs,
        settings,
        Price(*price) if price else None,
    )


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
