"""A PostgreSQL store that is open: its connections, and what to do when they are lost.

Rules of this file:
1. One public call is one transaction. If the connection is lost in it, it is run again on a new one, for a while.
2. What runs again is told so: only it knows whether the lost commit had gone through.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from unstale.adapters.postgres_schema import (
    Connection,
    check_schema,
    connect,
    lost,
    named,
    recognise,
    require_store,
    worded,
)
from unstale.adapters.postgres_tables import MIGRATIONS
from unstale.errors import StoreError, sentence

T = TypeVar("T")

#: seconds for which a lost connection is tried again, and between two tries at first and at most
PATIENCE, AGAIN, AGAIN_AT_MOST = 10.0, 0.1, 2.0
#: sources of which a notice tells, and that are remembered until they are asked for, at most
HASTENED = 600
#: what notices say beside sources that were made due: those need nobody look for what is due
EDITED, PRICED = "edited", "priced"
#: how often a transaction that others got in the way of is run again
_TRIES = 5


class PostgresLink:
    """Holds one connection that asks, and one that hears of what others did.

    `dsn` is what libpq takes, like postgresql://user@host/database; several stores can share a database, each in a
    `schema`. A lost connection is tried again for `patience` seconds.
    """

    def __init__(self, dsn: str, *, schema: str = "unstale", patience: float = PATIENCE) -> None:
        self.name, self.schema = named(dsn), check_schema(schema)
        self._dsn, self._patience = dsn, patience
        self._in_use, self._moved = RLock(), 0
        self._ear: Connection | None = None
        #: what others have made due; None: it may be anybody
        self._hastened: set[int] | None = None
        self._closed = False
        self._db: Connection | None = None
        self._db = self._connect()

    def moved(self) -> int:
        """A number that is another one once somebody else has edited the fleet, moved due times or set a price.

        It counts notifications that have arrived: nothing is asked of the server. Any thread may ask; while another
        thread uses the store it is the number of before, rather than a wait.
        """
        if not self._in_use.acquire(blocking=False):
            return self._moved
        try:
            mine = self._db.info.backend_pid if self._db is not None else 0
            if self._ear is None:
                self._ear = connect(self._dsn, self.name, self.schema)
                with worded(self.name):
                    self._ear.execute(f"LISTEN {self.schema}".encode())
                self._moved, self._hastened = self._moved + 1, None
            with worded(self.name):
                for note in self._ear.notifies(timeout=0):
                    if note.pid != mine:
                        self._moved += 1
                        self._hear(note.payload)
        except StoreError:
            self._deafen()
        finally:
            self._in_use.release()
        return self._moved

    def hastened(self) -> list[int] | None:
        """The sources that others have made due since this was asked last, as far as heard; None: it may be anybody."""
        with self._in_use:
            told, self._hastened = self._hastened, set()
            return None if told is None else sorted(told)

    def _hear(self, word: str) -> None:
        known = self._hastened
        if word in (EDITED, PRICED) or known is None:
            return
        # Other versions say nothing, and of many it is not said who they are.
        told = {int(one) for one in word.split(",") if one.isdecimal()}
        self._hastened = known | told if told and len(known) + len(told) <= HASTENED else None

    def server_time(self) -> float:
        """The server's clock, by which workers on many machines go."""
        return self._read(server_time)

    def time_if_idle(self) -> float | None:
        """The server's clock, None if that cannot be asked at once: somebody else uses the store, or it is lost."""
        if not self._in_use.acquire(blocking=False):
            return None
        try:
            return None if self._db is None else server_time(self._db)
        except psycopg.Error:
            return None
        finally:
            self._in_use.release()

    def close(self) -> None:
        """Give back the connections; closing again does nothing."""
        with self._in_use:
            self._closed = True
            self._deafen()
            if self._db is not None:
                self._db.close()
            self._db = None

    def _deafen(self) -> None:
        if self._ear is not None:
            self._ear.close()
        self._ear = None

    def _connect(self) -> Connection:
        db = connect(self._dsn, self.name, self.schema)
        with worded(self.name):
            try:
                version = recognise(db, self.name, self.schema)
                require_store(version, self.name)
                if version < len(MIGRATIONS):
                    old = f"has version {version}, this program reads {len(MIGRATIONS)}"
                    raise StoreError(sentence("store", self.name, old, "open it for writing once, which brings it up"))
            except BaseException:
                db.close()
                raise
        return db

    def _read(self, work: Callable[[Connection], T]) -> T:
        return self._again(lambda db, again: work(db))

    def at_once(self, work: Callable[[Connection], T]) -> T:
        """Several reads of one instant."""

        def inside(db: Connection, again: bool) -> T:
            with db.transaction():
                db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                return work(db)

        return self._again(inside)

    def _again(self, work: Callable[[Connection, bool], T]) -> T:
        """Do it, and do it again while the connection is lost or others got in the way; `again` says that it is."""
        with self._in_use:
            if self._closed:
                raise StoreError(sentence("store", self.name, "is closed", "open it again"))
            until, wait, tries, again = time.monotonic() + self._patience, AGAIN, 0, False
            while True:
                try:
                    if self._db is None:
                        self._db = self._connect()
                    return work(self._db, again)
                except (psycopg.Error, StoreError) as error:
                    cause = error.__cause__ if isinstance(error, StoreError) else error
                    gone = cause is not None and lost(cause, self._db)
                    again, tries = again or gone, tries + 1
                    if gone:
                        self._drop()
                    crossed = isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)
                    if (gone and time.monotonic() + wait < until) or (crossed and tries < _TRIES):
                        time.sleep(wait)
                        wait = min(2.0 * wait, AGAIN_AT_MOST)
                        continue
                    with worded(self.name):
                        raise

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None
        self._deafen()


def server_time(db: Connection) -> float:
    """Seconds since the epoch by the server's clock at this moment, not when the transaction began."""
    row: Any = db.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    return float(row[0])
