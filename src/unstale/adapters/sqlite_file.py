"""A store file that is open: its connection, whose errors become a sentence here and nowhere else."""

from __future__ import annotations

import errno
import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

import apsw

from unstale.adapters.sqlite_schema import connect_reading
from unstale.adapters.sqlite_states import StoreConnection
from unstale.errors import StoreError, StoreLostError, sentence
from unstale.frozen import dataclass

#: how a file of SQLite begins, and of its head: the size of a page, their number, the edition of its tables
_MAGIC, _FIELDS = b"SQLite format 3\0", struct.Struct(">H10xI8xI")
_DAMAGED = (apsw.NotADBError, apsw.CorruptError)
#: seconds within which a file may be written twice and show the same time of it
_TICK = 0.1


class SqliteFile:
    """Holds one connection, which one thread at a time may use."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        #: SQLite's handle is one thread's at a time
        self._in_use, self._moved = RLock(), 0
        with worded(self.path, opening=True):
            self._db: StoreConnection | None = self._connect()
            self._file = _File.of(self.path)
            self._log, self._edition = _log_of(self._db), _Head.of(self._db).edition
            self._seen_at, self._sure = time.monotonic(), False

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

    def close(self) -> None:
        """Give back the file; closing again does nothing."""
        with self._in_use:
            db, self._db = self._db, None
            if db is not None:
                with worded(self.path):
                    db.close()

    def _connect(self) -> StoreConnection:
        return connect_reading(self.path)

    @contextmanager
    def _at_once(self) -> Iterator[StoreConnection]:
        """Several reads of one instant; whatever asks how sources stand is one of several."""
        with self._reading() as db:
            db.execute("BEGIN")
            try:
                db.places.catch_up(db)
                yield db
            finally:
                db.execute("ROLLBACK")

    @contextmanager
    def _reading(self) -> Iterator[StoreConnection]:
        with self._in_use:
            if self._db is None:
                raise StoreError(sentence("store", repr(str(self.path)), "is closed", "open it again"))
            with worded(self.path):
                yield self._db

    def check_file(self) -> None:
        """StoreLostError if the file is no longer the one that was opened, or was cut or overwritten: microseconds."""
        with worded(self.path):
            try:
                now = _File.of(self.path)
            except FileNotFoundError:
                raise self._lost("was deleted") from None
            if (now.device, now.number) != (self._file.device, self._file.number):
                raise self._lost("was replaced by another file")
            # While somebody else uses the connection the rest waits for the next time.
            if self._in_use.acquire(blocking=False):
                try:
                    self._check_content(now)
                    self._file = now
                finally:
                    self._in_use.release()

    def _check_content(self, now: _File) -> None:
        """The file begins as SQLite's do, holds what it says that it holds, and its log is the one that we write.

        A file that nobody has written is not read again: reading it so holds up all threads, also those that end the
        process where a disk hangs.
        """
        if self._db is None:
            return
        at = time.monotonic()
        if now != self._file:
            self._seen_at, self._sure = at, False
        if not self._sure:
            self._check_head(self._db, now.size, shrunk=now.size < self._file.size)
            self._sure = at - self._seen_at > _TICK
        if self._log is not None and _log_of(self._db) != self._log:
            raise self._lost("lost its log, the file whose name ends in -wal,")

    def _check_head(self, db: apsw.Connection, size: int, *, shrunk: bool) -> None:
        head = _Head.of(db)
        if shrunk and head.size > size:
            raise self._lost("was cut")
        if not head.follows(self._edition, shrunk=shrunk):
            # Somebody else may be writing it at this instant, so that half of it is of before: it is looked at twice.
            head = _Head.of(db)
            if not head.follows(self._edition, shrunk=shrunk):
                raise self._lost("was overwritten" if size else "was cut")
        # Compacting writes the edition before it cuts the file: so it counts from one cut to the next.
        self._edition = head.edition if shrunk else self._edition

    def _lost(self, how: str) -> StoreLostError:
        remedy = "put it back, or restore a backup, and start again"
        return StoreLostError(sentence("store", repr(str(self.path)), f"{how} while it was in use", remedy))


@dataclass(frozen=True, slots=True)
class _File:
    """Which file it is, whatever it is called, its size, and when it was last written."""

    device: int
    number: int
    size: int
    written: int

    @classmethod
    def of(cls, path: Path) -> _File:
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class _Head:
    """What a file says of itself: the size it has, and which edition of its tables, which grows when it is compacted.

    It is read by SQLite's own handle. Closing another one would take away the locks by which other processes see that
    this one uses the file and its log.
    """

    whole: bool
    size: int
    edition: int

    @classmethod
    def of(cls, db: apsw.Connection) -> _Head:
        whole, data = db.read("main", 0, 0, 100)
        page, pages, edition = _FIELDS.unpack_from(data, 16)
        return cls(whole and data.startswith(_MAGIC), pages * (65536 if page == 1 else page), edition)

    def follows(self, edition: int, *, shrunk: bool) -> bool:
        """Whether a file of that edition may have become this one: only one that was compacted is smaller."""
        return self.whole and (self.edition > edition or (self.edition == edition and not shrunk))


def _log_of(db: apsw.Connection) -> tuple[int, int] | None:
    """Which file the log is; None if there is none."""
    try:
        found = os.stat(db.filename_wal)  # noqa: PTH116  a path would take longer than the question
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def worded(path: Path, *, opening: bool = False) -> Iterator[None]:
    """SQLite's errors, and the disk's, as one sentence. What cannot even be opened as a store is none any more."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        rule, remedy = _words(error)
        lost = opening and isinstance(error, _DAMAGED)
        raise (StoreLostError if lost else StoreError)(sentence("store", repr(str(path)), rule, remedy)) from error


def _unwritable(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)


def _words(error: Exception) -> tuple[str, str]:
    if isinstance(error, apsw.FullError):
        return "has no room left, nothing was recorded", "free some disk space, then it goes on"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return "is held by another process", "end what holds it, or try again"
    if isinstance(error, _DAMAGED):
        return "is damaged or no database", "restore a backup or choose another file"
    if isinstance(error, apsw.CantOpenError):
        return "cannot be opened", "check that its folder exists and may be written"
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError) or _unwritable(error):
        return "may not be written", "change its permissions"
    return f"failed ({error})", "check the disk, then open it again"
