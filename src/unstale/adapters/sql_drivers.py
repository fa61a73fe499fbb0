"""What drivers of databases need of us besides SQLAlchemy: rows in bulk, a file that is only read, plain reasons."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from unstale.adapters.sql_text import CHUNK, NULL
from unstale.errors import InputError, UnstaleError
from unstale.logs import log

# How PostgreSQL prints what goes into a copy, whoever's defaults these are.
_SETTINGS = {"TimeZone": "UTC", "DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "extra_float_digits": "1"}
_PACKAGES = {"MySQLdb": "mysqlclient", "psycopg2": "psycopg2-binary", "psycopg": "unstale[sql]"}


def psycopg_connection() -> type:
    """The class of psycopg's connections; that of None if it is not installed."""
    try:
        from psycopg import Connection
    except ImportError:
        return NoneType
    return Connection


def cut(driver: Any) -> None:
    """Wake who waits at a connection's socket, by its end; a statement is ended by its own timeout."""
    with socket.socket(fileno=os.dup(driver.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def still_postgres(sqlalchemy: Any, connection: Any, tables: str, left: float) -> None:
    """Begin to read PostgreSQL: one moment at which these tables are held, and its values as copies have them."""
    if tables:
        hold_shape(sqlalchemy, connection, tables, left)
    wanted = _SETTINGS | {"statement_timeout": str(max(1, int(left * 1000)))}
    # All in one: most looks find nothing, and need but one more.
    each = ", ".join(f"set_config('{name}', :{name.lower()}, true)" for name in wanted)
    connection.execute(sqlalchemy.text(f"SELECT {each}"), {name.lower(): value for name, value in wanted.items()})


def hold_shape(sqlalchemy: Any, connection: Any, table: str, left: float) -> None:
    """Let nobody rewrite a table of PostgreSQL from before the moment at which it is read until the reading ends.

    TRUNCATE, and an ALTER TABLE that writes all rows anew, show an empty table to whoever began before them. Holding
    the table comes first, therefore, and the moment after it. Writers are not held up. A view that is stored, or a
    table of another server, cannot be held so, and is read as it is found.
    """
    try:
        connection.exec_driver_sql(
            f"SET LOCAL statement_timeout = {max(1, int(left * 1000))}; LOCK TABLE {table} IN ACCESS SHARE MODE"
        )
    except sqlalchemy.exc.DBAPIError as error:
        if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in (None, "57014"):
            raise
        connection.rollback()


def still_mysql(sqlalchemy: Any, connection: Any, tables: Sequence[Any], left: float) -> None:
    """Begin to read MySQL or MariaDB: one moment, nothing but reading, and times as they are in UTC.

    A column can come at once, and is then seen among rows from before it. So a table is held first, by a statement that
    opens it and reads nothing, and the moment is that of the first reading after it.
    """
    shape = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET time_zone = '+00:00'"
    # It says so when it greets, to drivers that tell.
    greeting = getattr(connection.connection.dbapi_connection, "get_server_info", str)()
    is_mariadb = connection.dialect.is_mariadb or "mariadb" in str(greeting).lower()
    for wanted in (*statement_bounds(is_mariadb, left), *shape):
        connection.exec_driver_sql(wanted)
    if tables:
        connection.exec_driver_sql("START TRANSACTION READ ONLY")
        nothing = sqlalchemy.select(sqlalchemy.literal_column("1")).where(sqlalchemy.false())
        try:
            for table in tables:
                connection.execute(nothing.select_from(table)).close()
            return
        except sqlalchemy.exc.ProgrammingError:
            # There is none, which is said where it is looked for.
            connection.exec_driver_sql("ROLLBACK")
    connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def statement_bounds(is_mariadb: bool, left: float) -> tuple[str, ...]:
    """What MySQL and MariaDB are told so that no statement takes longer than is left; each has a word of its own."""
    if is_mariadb:
        return (f"SET SESSION max_statement_time = {max(left, 0.001):.3f}",)
    return (f"SET SESSION max_execution_time = {max(1, int(left * 1000))}",)


def copied(driver: Any, statement: str, values: Any, alone: bool) -> Iterator[bytes]:
    """What COPY sends for a statement; its values are put in here, for COPY takes none."""
    from psycopg import ClientCursor
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    written = ClientCursor(driver).mogrify(statement, values)
    # A cursor would go round its loop for every row, and take three times as long.
    wire = driver.pgconn
    # An empty text that is alone would be an empty line, which is no row, unless it is quoted.
    form = f"FORMAT csv, NULL '{NULL}', ENCODING 'UTF8'{', FORCE_QUOTE *' if alone else ''}"
    begun = wire.exec_(f"COPY ({written}) TO STDOUT ({form})".encode())
    if begun.status != ExecStatus.COPY_OUT:
        raise error_from_result(begun)
    kept, take = bytearray(), wire.get_copy_data
    while True:
        length, row = take(0)
        if length < 0:
            break
        kept += row
        if len(kept) >= CHUNK:
            yield bytes(kept)
            kept.clear()
    while (ended := wire.get_result()) is not None:
        if ended.status != ExecStatus.COMMAND_OK:
            raise error_from_result(ended)
    yield bytes(kept)


def sqlite(file: Path) -> sqlite3.Connection:
    """A file opened for reading alone."""
    driver = sqlite3.connect(
        f"{file.as_uri()}?mode=ro", timeout=0.0, isolation_level=None, uri=True, check_same_thread=False
    )
    driver.text_factory = _decoded
    driver.execute("PRAGMA query_only = 1")
    return driver


def still_sqlite(driver: sqlite3.Connection, patient: Callable[[], bool]) -> None:
    """Begin to read SQLite: everything as it is at one moment; `patient` says whether to wait on for who writes.

    When SQLAlchemy has connected, for it rolls back whatever was begun before.
    """
    while True:
        try:
            # The first look takes the lock under which all others see the same moment.
            driver.execute("BEGIN")
            driver.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return
        except sqlite3.OperationalError as error:
            driver.rollback()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not patient():
                raise


def _decoded(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


_STATES = {
    "28": "it refused the name or password",
    "3D000": "there is no such database",
    "42501": "the role may not read this",
    "25006": "the query would write, which is not allowed",
    "57014": "no whole answer within the poll's time",
    "57P01": "the connection was ended by the database",
    "53300": "it has too many connections already",
}


def reason(error: BaseException | None) -> str:
    """Why a database failed, in words that hold nothing of a row, a name's secret or a place."""
    if isinstance(error, sqlite3.Error):
        # SQLite's own messages name tables and columns, nothing else.
        return f"SQLite says: {' '.join(str(error).split())[:200]}"
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""
    for begin, words in _STATES.items():
        if state.startswith(begin):
            return words
    if state.startswith(("42", "0A")):
        told = getattr(getattr(error, "diag", None), "message_primary", None) or "the statement is wrong"
        return f"PostgreSQL says: {' '.join(told.split())[:200]}"
    if state:
        return f"the database failed (SQLSTATE {state})"
    if error is not None and "password authentication failed" in str(error):
        return _STATES["28"]
    return "it could not be connected to, or the connection was cut"


@contextmanager
def worded(sqlalchemy: Any, host: str) -> Iterator[None]:
    """Whatever a driver raises as one sentence; `host` is what the database is called in it."""
    try:
        yield
    except UnstaleError:
        raise
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(error.name or "", error.name)
        raise InputError(f"its driver {error.name} is not installed: pip install '{package}'") from None
    except sqlalchemy.exc.NoSuchModuleError:
        raise InputError("address names a database that SQLAlchemy does not know: install its dialect") from None
    except sqlalchemy.exc.DBAPIError as error:
        raise InputError(f"{host}: {reason(error.orig)}") from None
    except Exception as error:  # whatever a driver may raise
        if isinstance(error, sqlite3.Error) or isinstance(getattr(error, "sqlstate", None), str):
            raise InputError(f"{host}: {reason(error)}") from None
        log("driver_failed", {"kind": "sql", "place": host})
        raise InputError(f"{host}: it could not be asked ({type(error).__name__})") from None
