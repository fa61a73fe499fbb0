"""What tests of copies of tables share: polling a table once, and reading its copy in SQLite and DuckDB."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw
import duckdb

from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


def fetched(fetcher: SqlFetcher, request: Request) -> Fetched:
    """What one poll brings, by a fetcher that is closed after it."""

    async def scene() -> Fetched:
        try:
            return await fetcher.fetch(request)
        finally:
            await fetcher.close()

    return asyncio.run(scene())


def account(got: Fetched) -> dict[str, Any]:
    """What a poll that found a change says of the copy."""
    assert (got.answer, got.reason) == (Answer.CHANGED, "")
    assert got.body is not None
    found: dict[str, Any] = json.loads(got.body)
    return found


def sqlite(file: Path, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a copy in SQLite."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(db.execute(statement))
    finally:
        db.close()


def duck(file: Path, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a copy in DuckDB."""
    with duckdb.connect(str(file), read_only=True) as db:
        return db.execute(statement).fetchall()
