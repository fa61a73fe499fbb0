"""A store file that is open: its connection, whose errors become a sentence here and nowhere else."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

import apsw

from unstale.adapters.sqlite_schema import connect_reading
from unstale.errors import StoreError, StoreLostError, sentence
from unstale.frozen import dataclass

_DAMAGED = (apsw.NotADBError, apsw.CorruptError)


class SqliteFile:
    """Holds one connection, which one thread at a time may use."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        #: SQLite's handle is one thread's at a time
        self._in_use, self._moved = RLock(), 0
        with worded(self.path, opening=True):
            self._db: apsw.Connection | None = self._connect()
            self._file = _File.of(self.path)

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
            with worded(self.path):
                yield self._db

    def check_file(self) -> None:
        """StoreLostError if the file is no longer the one that was opened, or was cut: microseconds."""
        with worded(self.path):
            try:
                now = _File.of(self.path)
            except FileNotFoundError:
                raise self._lost("was deleted") from None
            if (now.device, now.number) != (self._file.device, self._file.number):
                raise self._lost("was replaced by another file")
            if now.size < self._file.size and _is_cut(self.path, now.size):
                raise self._lost("was cut")
            self._file = now

    def _lost(self, how: str) -> StoreLostError:
        remedy = "put it back, or restore a backup, and start again"
        return StoreLostError(sentence("store", repr(str(self.path)), f"{how} while it was in use", remedy))


@dataclass(frozen=True, slots=True)
class _File:
    """Which file it is, whatever it is called, and its size."""

    device: int
    number: int
    size: int

    @classmethod
    def of(cls, path: Path) -> _File:
        found = path.stat()
        return cls(found.st_dev, found.st_ino, found.st_size)


def _is_cut(path: Path, size: int) -> bool:
    """Whether a file that shrank holds less than its own header says; one that was compacted does not."""
    with path.open("rb") as file:
        head = file.read(32)
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    return len(head) < 32 or size < pages * (65536 if page == 1 else page)


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
