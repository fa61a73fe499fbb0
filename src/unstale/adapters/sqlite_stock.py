"""The stock of a proxy in a SQLite file of its own: rows that only the proxy understands, written whole or not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock

import apsw

from unstale.adapters.sqlite_file import worded
from unstale.errors import StoreError, sentence

#: what SQLite notes in the file: that it is ours, and the form of its rows
_OURS, _FORM = 0x756E7370, 1


class SqliteStock:
    """Rows by address; one process at a time may have the file."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._in_use = Path(path), Lock()
        with worded(self._path):
            self._db = db = apsw.Connection(str(path))
            db.set_busy_timeout(1000)
            db.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
            known = db.execute("PRAGMA application_id").get, db.execute("PRAGMA user_version").get
            if known == (0, 0) and not db.execute("SELECT count(*) FROM sqlite_master").get:
                db.execute(
                    f"BEGIN IMMEDIATE; PRAGMA application_id = {_OURS}; PRAGMA user_version = {_FORM};"
                    "CREATE TABLE stock (address TEXT PRIMARY KEY, told BLOB NOT NULL, body BLOB NOT NULL,"
                    " written INTEGER NOT NULL); COMMIT"
                )
            elif known != (_OURS, _FORM):
                db.close()
                remedy = "name another file: what a proxy keeps can be asked for again"
                raise StoreError(sentence("stock", repr(str(path)), "is no stock of this version", remedy))
            # Taken now, so that a second proxy hears of it at its start.
            db.execute("BEGIN IMMEDIATE; COMMIT")
            self._turn = db.execute("SELECT coalesce(max(written), 0) FROM stock").get

    def load(self) -> Iterable[tuple[str, bytes, bytes]]:
        """All rows, those that were written last behind."""
        with worded(self._path):
            yield from self._db.execute("SELECT address, told, body FROM stock ORDER BY written")

    def write(self, rows: Sequence[tuple[str, bytes, bytes | None]], gone: Sequence[str]) -> None:
        """Write these and remove those, all or nothing; a body of None is the one of before."""
        with self._in_use, worded(self._path), self._db:
            self._turn += 1
            self._db.executemany("DELETE FROM stock WHERE address = ?", [(address,) for address in gone])
            for address, told, body in rows:
                if body is None:
                    order = "UPDATE stock SET told = ?, written = ? WHERE address = ?"
                    self._db.execute(order, (told, self._turn, address))
                else:
                    order = "INSERT OR REPLACE INTO stock (address, told, body, written) VALUES (?, ?, ?, ?)"
                    self._db.execute(order, (address, told, body, self._turn))

    def close(self) -> None:
        """Give back the file."""
        with self._in_use, worded(self._path):
            self._db.close()
