"""A PostgreSQL schema as a target: its connection, and what is known of the tables in it.

Rules of this file:
1. One poll has one connection. Who changes a table is alone with it, by an advisory lock.
2. What is recorded is recorded in the transaction that changes the table: there is no moment between the two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unstale.adapters.environment import filled
from unstale.adapters.sql_drivers import cut
from unstale.adapters.sql_schema import Schema, Schemas
from unstale.adapters.sql_targets import LocalTable
from unstale.adapters.target_places import SchemaPlace
from unstale.errors import MissingExtraError, StoreError, UnstaleError, sentence

if TYPE_CHECKING:
    from psycopg import Connection

#: seconds that a change of a table's shape waits for who reads it
READERS = 2.0
_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "client_connection_check_interval": "2s",
    "lock_timeout": f"{READERS:g}s",
    # A change that a crash of the server undoes takes its record with it: the next poll makes both again.
    "synchronous_commit": "off",
    "client_min_messages": "error",
}
_MADE = """
CREATE TABLE IF NOT EXISTS {schema}.unstale_tables(
    name text PRIMARY KEY, "table" text NOT NULL UNIQUE, columns text NOT NULL, key text NOT NULL, rows bigint NOT NULL,
    digest bytea NOT NULL, probe text NOT NULL, mark text NOT NULL, read_at double precision NOT NULL,
    manifest bytea NOT NULL, edition bigint NOT NULL, types text NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.unstale_schemas(
    name text PRIMARY KEY, held text NOT NULL, pending text NOT NULL, accepted boolean NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.unstale_groups(
    name text PRIMARY KEY, grp text NOT NULL, asked text NOT NULL, at double precision NOT NULL)
"""


class SchemaRecords:
    """The records of a schema, opened by one poll; `patient` says whether to wait on for another's turn."""

    def __init__(self, place: SchemaPlace, patient: Callable[[], bool]) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("psycopg", "sql") from None
        self._error, self._place, self._patient = psycopg.Error, place, patient
        self._schema = quoted(place.schema)
        with self._worded():
            # Taken apart first: no secret can be read as another part of the address.
            parts = {name: filled(str(value)) for name, value in psycopg.conninfo.conninfo_to_dict(place.dsn).items()}
            given: dict[str, Any] = {"application_name": "unstale", "connect_timeout": 5, **parts}
            self._db: Connection[Any] = psycopg.connect(autocommit=True, prepare_threshold=None, **given)
        try:
            with self._worded():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""
        with self._worded():
            row = self._db.execute(
                f"SELECT * FROM {self._schema}.unstale_tables WHERE name = %s".encode(), (name,)
            ).fetchone()
        if row is None:
            return LocalTable(name, view)
        _, view, columns, key, *rest, types = row
        found = LocalTable(name, view, tuple(json.loads(columns)), tuple(json.loads(key)), *rest)
        found = replace(found, types=tuple(json.loads(types)))
        # A table that somebody took away is read whole again.
        return found if self._has(view) else replace(found, probe="", mark="", read_at=0.0, manifest=b"")

    def schemas(self, name: str) -> Schemas:
        """What is known of the schema of a table's source."""
        asked = f"SELECT held, pending, accepted FROM {self._schema}.unstale_schemas WHERE name = %s"
        with self._worded():
            row = self._db.execute(asked.encode(), (name,)).fetchone()
        return Schemas() if row is None else Schemas(Schema.read(row[0]), Schema.read(row[1]), row[2])

    def set_schemas(self, name: str, known: Schemas) -> None:
        """Write down what is known of it now."""
        kept = ["" if one is None else one.kept() for one in (known.held, known.pending)]
        with self._worded():
            self._db.execute(
                f"INSERT INTO {self._schema}.unstale_schemas VALUES(%s, %s, %s, %s) ON CONFLICT(name) DO UPDATE SET "
                "(held, pending, accepted) = (excluded.held, excluded.pending, excluded.accepted)".encode(),
                (name, *kept, known.accepted),
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all tables that are merged meanwhile be switched to in one step, or none."""
        with self._worded(), self._db.transaction():
            yield

    def join_group(self, group: str, name: str, asked: str, now: float) -> None:
        """Write down that a table is polled as one of a group, and how."""
        with self._worded():
            self._db.execute(
                f"INSERT INTO {self._schema}.unstale_groups VALUES(%s, %s, %s, %s) ON CONFLICT(name) DO UPDATE SET "
                "(grp, asked, at) = (excluded.grp, excluded.asked, excluded.at)".encode(),
                (name, group, asked, now),
            )

    def group(self, group: str, since: float) -> list[str]:
        """How those of a group are polled who were polled themselves since then."""
        asked = f"SELECT asked FROM {self._schema}.unstale_groups WHERE grp = %s AND at >= %s"
        with self._worded():
            return [found for (found,) in self._db.execute(asked.encode(), (group, since))]

    @contextmanager
    def writing(self, name: str) -> Iterator[None]:
        """Be alone with a table, in one transaction."""
        with self._worded(), self._db.transaction():
            asked = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
            while not self._row(asked, f"unstale {self._place.schema} {name}")[0]:
                if not self._patient():
                    raise StoreError("another poll changes the copy: it is polled again when it is due")
            yield

    def same_shape(self, held: LocalTable) -> bool:
        """Whether the table as recorded has this shape; StoreError if another poll has recorded since."""
        asked = f"SELECT edition, columns, key, types FROM {self._schema}.unstale_tables WHERE name = %s"
        edition, *shape = self._db.execute(asked.encode(), (held.name,)).fetchone() or (0, "", "", "")
        if edition != held.edition:
            raise StoreError("the copy was changed by another poll meanwhile: it is polled again when it is due")
        return bool(shape == [json.dumps(one) for one in (held.columns, held.key, held.types)])

    def record(self, done: LocalTable) -> None:
        """Write down what is known of a table now."""
        lists = [json.dumps(one) for one in (done.columns, done.key)]
        told = (done.rows, done.digest, done.probe, done.mark, done.read_at, done.manifest, done.edition)
        marks, names = ", ".join(["%s"] * 12), '"table", columns, key, rows, digest, probe, mark, read_at, manifest'
        names += ", edition, types"
        put = ", ".join(f"excluded.{one.strip()}" for one in names.split(","))
        self._db.execute(
            f"INSERT INTO {self._schema}.unstale_tables VALUES({marks}) "
            f"ON CONFLICT(name) DO UPDATE SET ({names}) = ({put})".encode(),
            (done.name, done.view, *lists, *told, json.dumps(done.types)),
        )

    def close(self) -> None:
        """Give back the connection, and with it what was put aside."""
        with suppress(Exception):
            self._db.close()

    def interrupt(self) -> None:
        """Let what runs end with an error; for another thread. The server sees it too, and ends the statement."""
        with suppress(Exception):
            cut(self._db)

    def _prepare(self) -> None:
        each = ", ".join("set_config(%s, %s, false)" for _ in _SETTINGS)
        self._row(f"SELECT {each}", *(part for pair in _SETTINGS.items() for part in pair))
        asked = "SELECT to_regclass(%s) IS NOT NULL, to_regnamespace(%s) IS NOT NULL"
        made, there = self._row(asked, f"{self._schema}.unstale_groups", self._schema)
        if made:
            return
        with self.writing(""):
            if not there:
                self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
            self._db.execute(_MADE.format(schema=self._schema).encode())

    def _has(self, table: str) -> bool:
        found = self._row("SELECT to_regclass(%s) IS NOT NULL", f"{self._schema}.{quoted(table)}")
        return bool(found[0])

    def _row(self, statement: str, *values: Any) -> tuple[Any, ...]:
        """The one row that a statement gives."""
        # A statement without values is sent as it is, with its percent signs.
        found = self._db.execute(statement.encode(), values or None).fetchone()
        assert found is not None
        return tuple(found)

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """The server's errors as one sentence, which shows no value."""
        try:
            yield
        except UnstaleError:
            raise
        except self._error as error:
            why, remedy = _reason(error)
            raise StoreError(sentence("target", str(self._place), why, remedy)) from None


def _reason(error: Exception) -> tuple[str, str]:
    state = str(getattr(error, "sqlstate", None) or "")
    if state == "2BP01":
        return "has views or others that depend on a table whose columns changed", "drop them and make them anew"
    if state == "55P03":
        return "has a table that is being read, whose columns changed", "it is tried again at the next poll"
    if state == "42501":
        return "may not be written to by this role", "GRANT CREATE, USAGE ON SCHEMA to it, or on its database"
    if not state:
        return "could not be reached, or the connection was cut", "check its address and whether it runs"
    return f"could not be used (SQLSTATE {state})", "check the server's log"


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'
