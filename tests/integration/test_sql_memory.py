"""What memory copies in DuckDB and Parquet take: little for rows that pass through, however many."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.sql_copies import account, fetched
from unstale.adapters import duckdb_draft
from unstale.adapters.duckdb_spool import Spool
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.ports import Fetched, Request

ROWS = [(i, f"row {i}") for i in range(5000)]


def poll(folder: Path, target: Path) -> Fetched:
    return fetched(SqlFetcher(target, roots=[folder]), Request(f"sqlite:///{folder / 'shop.db'}#things"))


def make(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as db, db:
        db.execute("CREATE TABLE things(id INTEGER PRIMARY KEY, a TEXT)")
        db.executemany("INSERT INTO things VALUES(?, ?)", ROWS)


def rows_of(target: Path) -> list[Any]:
    if target.suffix == ".parquet":
        return duckdb.sql(f"SELECT id, a FROM '{target}/things/*/*.parquet' ORDER BY id").fetchall()
    with duckdb.connect(str(target), read_only=True) as db:
        return db.execute("SELECT id, a FROM things ORDER BY id").fetchall()


@pytest.mark.parametrize("name", ["copies.duckdb", "copies.parquet"])
def test_rows_of_a_first_copy_pass_through_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make(tmp_path)
    given: list[str] = []
    insert = Spool.insert

    def inserting(self: Spool, table: str) -> None:
        given.append(limit(self))
        insert(self, table)

    def limit(spool: Spool) -> str:
        (found,) = spool._db.execute("SELECT current_setting('memory_limit')").fetchone() or ("",)
        return str(found)

    monkeypatch.setattr(Spool, "insert", inserting)
    account(poll(tmp_path, tmp_path / name))
    assert given == ["122.0 MiB"]
    assert rows_of(tmp_path / name) == ROWS


@pytest.mark.parametrize("name", ["copies.duckdb", "copies.parquet"])
def test_what_little_memory_cannot_hold_is_copied_with_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make(tmp_path)
    monkeypatch.setattr(duckdb_draft, "LITTLE", "300KB")
    assert account(poll(tmp_path, tmp_path / name))["rows"] == len(ROWS)
    assert rows_of(tmp_path / name) == ROWS
