"""The reading side of the PostgreSQL store: its connection, what to do when that is lost, and what can be read.

Rules of this file:
1. One public call is one transaction. If the connection is lost in it, it is run again on a new one, for a while.
2. What runs again is told so: only it knows whether the lost commit had gone through.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from unstale.adapters import postgres_columns, postgres_copies
from unstale.adapters.postgres_schema import (
    MIGRATIONS,
    Connection,
    check_schema,
    connect,
    lost,
    named,
    recognise,
    require_store,
    worded,
)
from unstale.adapters.sqlite_replica import ANSWERS
from unstale.errors import StoreError, sentence
from unstale.ports import Copy, FleetColumns, Listing, Observation, Price

T = TypeVar("T")

#: seconds for which a lost connection is tried again, and between two tries at first and at most
PATIENCE, AGAIN, AGAIN_AT_MOST = 10.0, 0.1, 2.0
#: how often a transaction that others got in the way of is run again
_TRIES = 5
_LISTED = (
    "SELECT s.address, s.kind, s.weight, s.cost, h.name, s.shortest, s.longest, s.options, s.paused, s.id, s.added_at "
    "FROM sources s JOIN hosts h ON h.id = s.host "
)


class PostgresReplica:
    """Reads a store in a PostgreSQL database; keeps the contract `Replica`.

    `dsn` is what libpq takes, like postgresql://user@host/database; several stores can share a database, each in a
    `schema`. A lost connection is tried again for `patience` seconds.
    """

    def __init__(self, dsn: str, *, schema: str = "unstale", patience: float = PATIENCE) -> None:
        self.name, self.schema = named(dsn), check_schema(schema)
        self._dsn, self._patience = dsn, patience
        self._in_use, self._moved = RLock(), 0
        self._ear: Connection | None = None
        self._closed = False
        self._db: Connection | None = None
        self._db = self._connect()

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        row = self._read(lambda db: db.execute("SELECT id FROM sources WHERE place = %s", (place(address),)).fetchone())
        return row[0] if row else None

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        which = [int(source) for source in sources]
        rows = self._read(lambda db: db.execute(_LISTED + "WHERE s.id = ANY(%s)", (which,)).fetchall())
        known = {
            source: Listing(
                address,
                kind,
                weight,
                cost,
                host,
                shortest,
                longest,
                json.loads(options or "{}"),
                paused,
                source,
                added_at,
            )
            for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
        }
        return [known[source] for source in which if source in known]

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""

        def whole(db: Connection) -> FleetColumns:
            db.execute("SET LOCAL enable_seqscan = on")
            return postgres_columns.columns_of(db, width)

        return self._at_once(whole)

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        return self._at_once(lambda db: postgres_columns.columns_of(db, width, sources))

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
            'lower(address COLLATE "C") LIKE lower(%s COLLATE "C")': f"%{literal}%" if text else None,
            "host = (SELECT id FROM hosts WHERE name = %s)": host,
            "kind = %s": kind,
            "paused = %s": paused,
        }
        given = {clause: value for clause, value in asked.items() if value is not None}
        where = " AND ".join(["id > %s", *given])
        query = f"SELECT id FROM sources WHERE {where} ORDER BY id LIMIT %s".encode()
        return [row[0] for row in self._read(lambda db: db.execute(query, (after, *given.values(), limit)).fetchall())]

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named, its bytes checked."""
        return self._read(lambda db: postgres_copies.read(db, source, version))

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""
        query = "SELECT version FROM copies WHERE source = %s ORDER BY version DESC"
        return [row[0] for row in self._read(lambda db: db.execute(query, (source,)).fetchall())]

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first: a walk along the chain from the newest one."""
        rows: Any = self._read(
            lambda db: db.execute(
                "WITH RECURSIVE chain(token, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, n) "
                "AS (SELECT o.token, o.polled_at, o.answer, o.elapsed, o.modified, o.bytes, o.reason, o.previous, "
                " o.epoch, 1 FROM observations o WHERE o.token = (SELECT latest FROM beliefs WHERE source = %s)"
                " UNION ALL SELECT o.token, o.polled_at, o.answer, o.elapsed, o.modified, o.bytes, o.reason, "
                " o.previous, o.epoch, n + 1 FROM chain, observations o WHERE o.token = chain.previous AND n < %s"
                ") SELECT * FROM chain ORDER BY n LIMIT %s",
                (source, limit, limit),
            ).fetchall()
        )
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
            for token, at, answer, elapsed, modified, size, reason, _, epoch, _ in rows
        ]

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        query = f"SELECT {postgres_columns.PRICE} FROM prices WHERE at >= %s ORDER BY id".encode()
        return [Price(*row) for row in self._read(lambda db: db.execute(query, (since,)).fetchall())]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        query = "SELECT name, sum(value)::bigint FROM counters GROUP BY name HAVING sum(value) > 0 ORDER BY name"
        return dict(self._read(lambda db: db.execute(query).fetchall()))

    def checkpoint(self, source: int) -> tuple[int, float, float, bytes | None] | None:
        """The belief after observation `latest`, from where replaying goes on: latest, last, found, belief."""
        query = "SELECT latest, last, found, belief FROM checkpoints WHERE source = %s"
        row: Any = self._read(lambda db: db.execute(query, (source,)).fetchone())
        return row  # type: ignore[no-any-return]

    def epochs(self, since: int = 0) -> list[tuple[int, bytes]]:
        """The learner's shared states that observations may name, from one number on, and the one in force."""
        query = "SELECT id, value FROM epochs WHERE id >= %s ORDER BY id"
        return self._read(lambda db: db.execute(query, (since,)).fetchall())

    def verify(self) -> list[str]:
        """What is wrong with the copies, a sentence each: every one against its SHA-256."""
        return self._read(
            lambda db: [
                f"copy {version} of source {source} is damaged" for source, version in postgres_copies.damaged(db)
            ]
        )

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
                self._ear.execute(f"LISTEN {self.schema}".encode())
                self._moved += 1
            with worded(self.name):
                self._moved += sum(note.pid != mine for note in self._ear.notifies(timeout=0))
        except StoreError:
            self._deafen()
        finally:
            self._in_use.release()
        return self._moved

    def server_time(self) -> float:
        """The server's clock, by which workers on many machines go."""
        query = "SELECT extract(epoch FROM clock_timestamp())::float8"
        row: Any = self._read(lambda db: db.execute(query).fetchone())
        return float(row[0])

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

    def _at_once(self, work: Callable[[Connection], T]) -> T:
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


def place(address: str) -> bytes:
    """What an address is found by: 16 bytes of its SHA-256."""
    from hashlib import sha256

    return sha256(address.encode("utf-8", "replace")).digest()[:16]
