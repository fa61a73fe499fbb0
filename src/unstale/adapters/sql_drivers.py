"""What drivers of databases need of us besides SQLAlchemy: rows in bulk, a file that is only read, plain reasons."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from unstale.adapters.sql_text import CHUNK, NULL


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


def sqlite(file: Path, patient: Callable[[], bool]) -> sqlite3.Connection:
    """A file opened for reading alone, at one moment; `patient` says whether to wait on for who writes."""
    driver = sqlite3.connect(
        f"{file.as_uri()}?mode=ro", timeout=0.0, isolation_level=None, uri=True, check_same_thread=False
    )
    driver.text_factory = _decoded
    driver.execute("PRAGMA query_only = 1")
    while True:
        try:
            # The first look takes the lock under which all others see the same moment.
            driver.execute("BEGIN")
            driver.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return driver
        except sqlite3.OperationalError as error:
            driver.rollback()
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not patient():
                driver.close()
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
