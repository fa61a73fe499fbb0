"""A SQLite file is read as it was at one moment, whatever is written to it while a poll goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.sql_copies import account, duck, fetched
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_types import Column
from unstale.ports import Request


def test_what_is_written_while_a_poll_reads_is_not_in_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, typed = tmp_path / "shop.db", Source.typed
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE things(id INTEGER PRIMARY KEY, a TEXT)")
    db.execute("INSERT INTO things VALUES(1, 'x'), (2, 'y')")

    def writing(self: Source, names: tuple[str, ...]) -> tuple[Column, ...]:
        found = typed(self, names)
        # Between what the poll sees first and its rows.
        db.execute("DELETE FROM things WHERE id = 1")
        return found

    monkeypatch.setattr(Source, "typed", writing)
    request = Request(f"sqlite:///{file}#things")
    assert account(fetched(SqlFetcher(tmp_path / "copies.duckdb", roots=[tmp_path]), request))["rows"] == 2
    assert duck(tmp_path / "copies.duckdb", "SELECT id FROM things ORDER BY id") == [(1,), (2,)]
    assert db.execute("SELECT count(*) FROM things").fetchone() == (1,)
    db.close()
