"""The SQLite file of a store: how it is opened, which versions are safe, and how its tables grow up.

Rules of this file:
1. A migration is one transaction and raises `user_version` in it: a kill leaves the old version or the new one.
2. Migrations are only ever appended. A file of a newer version is refused, never guessed at.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import apsw

from unstale.adapters.sqlite_states import StoreConnection
from unstale.adapters.sqlite_tables import MIGRATIONS
from unstale.errors import OlderStoreError, StoreError, sentence

#: "unst" in the file's header: another program's database is not ours to migrate
APPLICATION = 0x756E7374
#: milliseconds that a transaction of another process is waited for
PATIENCE = 10_000


def safe(version: tuple[int, ...]) -> bool:
    """Whether this SQLite is free of the WAL-reset bug, by which a committed transaction can vanish.

    Fixed in 3.51.3 and in two older lines; 3.52.0 was withdrawn.

    >>> [safe(v) for v in ((3, 40, 1), (3, 44, 6), (3, 50, 7), (3, 51, 2), (3, 51, 3), (3, 52, 0), (3, 54, 1))]
    [False, True, True, False, True, False, True]
    """
    if version < (3, 51, 3):
        return (3, 44, 6) <= version < (3, 45) or (3, 50, 7) <= version < (3, 51)
    return version[:3] != (3, 52, 0)


def connect_reading(path: Path) -> StoreConnection:
    """An open store file that this connection cannot change in any way, nor make; also where nothing can be written."""
    try:
        db = _open(path, apsw.SQLITE_OPEN_READONLY)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        if os.access(path.parent, os.W_OK):
            raise
        db = _open_unwritable(path)
    version = db.pragma("user_version")
    if version < len(MIGRATIONS):
        db.close()
        raise OlderStoreError(
            sentence(
                "store",
                repr(str(path)),
                f"has version {version}, this program reads {len(MIGRATIONS)}",
                "open it for writing once, which brings it up",
            )
        )
    return db


def connect(path: Path, *, create: bool = True) -> StoreConnection:
    """An open, migrated store file: WAL, and every commit on the disk before it returns."""
    if str(path) == ":memory:":
        # SQLite takes this name for no file at all, and is refused below for having no log.
        return _connect(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    if create and not path.exists():
        _make(path)
    return _connect(path)


def _make(path: Path) -> None:
    """A new store under its name, whole or not at all: an empty file under it is somebody's accident, not ours."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        _connect(draft, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE).close()
        _name(draft, path)
    except BaseException:
        for ending in ("-wal", "-shm", "-journal"):
            Path(f"{draft}{ending}").unlink(missing_ok=True)
        raise
    finally:
        draft.unlink(missing_ok=True)


def _name(draft: Path, path: Path) -> None:
    """Give the draft its name, unless somebody who made it at the same time was first."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        # Not every file system has links.
        if not path.exists():
            draft.rename(path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _connect(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> StoreConnection:
    db = _open(path, flags)
    try:
        mode = db.execute("PRAGMA journal_mode = WAL").get
        if mode != "wal":
            raise StoreError(
                sentence("store", repr(str(path)), f"has no write-ahead log here but {mode}", "put it on a local disk")
            )
        for setting in (
            "synchronous = FULL",
            "wal_autocheckpoint = 4000",
            "journal_size_limit = 67108864",
            "cache_size = -65536",
            "temp_store = MEMORY",
        ):
            db.execute(f"PRAGMA {setting}")
        _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


def _open(path: Path, flags: int) -> StoreConnection:
    library = apsw.sqlite_lib_version()
    if not safe(tuple(int(part) for part in library.split("."))):
        raise StoreError(
            sentence(
                "SQLite", library, "can lose what it has committed (WAL-reset bug)", "install apsw 3.51.3 or later"
            )
        )
    if path.is_dir():
        raise StoreError(sentence("store", repr(str(path)), "is a folder", "name a file in it, like unstale.db"))
    if not flags & apsw.SQLITE_OPEN_CREATE and not path.exists():
        raise StoreError(
            sentence("store", repr(str(path)), "does not exist", "check its name, or add a source to make it")
        )
    if not flags & apsw.SQLITE_OPEN_CREATE and not path.stat().st_size and not _has_log(path):
        rule, remedy = "is empty, it holds no store any more", "restore a backup, or remove the file to begin anew"
        raise StoreError(sentence("store", repr(str(path)), rule, remedy))
    db = StoreConnection(str(path), flags=flags)
    try:
        db.set_busy_timeout(PATIENCE)
        _recognise(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _open_unwritable(path: Path) -> StoreConnection:
    """A store file where not even the index of its log can be written: nobody else writes there, so none is needed."""
    if _has_log(path):
        # Without locks the connection may be alone with the log, and keeps the index of it in memory.
        own = "win32-none" if os.name == "nt" else "unix-none"
        db = StoreConnection(str(path), flags=apsw.SQLITE_OPEN_READONLY, vfs=own)
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
    else:
        place = f"{path.absolute().as_uri()}?immutable=1"
        db = StoreConnection(place, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        _recognise(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _has_log(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _recognise(db: apsw.Connection, path: Path) -> None:
    version, application = db.pragma("user_version"), db.pragma("application_id")
    tables = db.execute("SELECT count(*) FROM sqlite_schema").get
    if application != APPLICATION and (tables or application):
        raise StoreError(sentence("store", repr(str(path)), "is another program's database", "choose another file"))
    if version > len(MIGRATIONS):
        raise StoreError(
            sentence(
                "store",
                repr(str(path)),
                f"has version {version}, this program knows {len(MIGRATIONS)}",
                "install a newer unstale",
            )
        )


def _migrate(db: apsw.Connection) -> None:
    while db.pragma("user_version") < len(MIGRATIONS):
        # Another process may migrate too: who comes second finds it done.
        db.execute("BEGIN IMMEDIATE")
        try:
            version = db.pragma("user_version")
            if version < len(MIGRATIONS):
                db.execute(MIGRATIONS[version])
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                db.execute(f"PRAGMA user_version = {version + 1}")
            db.execute("COMMIT")
        except BaseException:
            if not db.get_autocommit():
                db.execute("ROLLBACK")
            raise
