"""Copies of tables in a DuckDB file: equal to their source, switched as a whole, kept for who has begun to read."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstale.adapters.duckdb_tables import DuckTables
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.sql_records import Records
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

TABLE = "CREATE TABLE things(id INTEGER PRIMARY KEY, a TEXT, b DECIMAL(12,2))"


class Shop:
    """A source database with a table `things`, and its copy in DuckDB."""

    def __init__(self, folder: Path, made: str = TABLE) -> None:
        self.folder, self.target, self.now = folder, folder / "copies.duckdb", 1.8e9
        self.db = sqlite3.connect(folder / "shop.db", isolation_level=None)
        self.db.execute(made)
        self.fetcher = SqlFetcher(self.target, roots=[folder], now=lambda: self.now)
        self.etag: str | None = None
        self.loop = asyncio.Runner()

    def ask(self, **options: Any) -> Fetched:
        request = Request(f"sqlite:///{self.folder / 'shop.db'}#things", self.etag, options=options)
        return self.loop.run(self.fetcher.fetch(request))

    def poll(self, **options: Any) -> dict[str, Any]:
        got = self.ask(**options)
        assert got.reason == ""
        self.etag = got.etag
        return json.loads(got.body) if got.body else {}

    def here(self, statement: str = "SELECT id, a, b FROM things ORDER BY id") -> list[tuple[Any, ...]]:
        return self.db.execute(statement).fetchall()

    def copy(self, statement: str = "SELECT id, a, b::DOUBLE FROM things ORDER BY id") -> list[tuple[Any, ...]]:
        db = duckdb.connect(str(self.target), read_only=True)
        try:
            return db.execute(statement).fetchall()
        finally:
            db.close()

    def close(self) -> None:
        self.loop.run(self.fetcher.close())
        self.loop.close()
        self.db.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    found.db.execute("INSERT INTO things VALUES(1, 'x', 99), (2, 'y', 100.5), (3, NULL, NULL)")
    yield found
    found.close()


def counts(told: dict[str, Any]) -> tuple[int, int, int, int]:
    return told["rows"], told["inserted"], told["changed"], told["deleted"]


def test_rows_come_change_and_go(shop: Shop) -> None:
    first = shop.poll()
    assert counts(first) == (3, 3, 0, 0)
    assert first["types"] == ["BIGINT", "VARCHAR", "DECIMAL(12,2)"]
    assert shop.poll() == {}
    shop.db.execute("UPDATE things SET b = NULL WHERE id = 1")
    shop.db.execute("DELETE FROM things WHERE id = 2")
    shop.db.execute("INSERT INTO things VALUES(4, 'z', 7), (5, '', 0)")
    assert counts(shop.poll()) == (4, 2, 1, 1)
    assert shop.copy() == shop.here()
    # Back to what it was: the same content has the same digest.
    for statement in ("DELETE FROM things", "INSERT INTO things VALUES(1, 'x', 99), (2, 'y', 100.5), (3, NULL, NULL)"):
        shop.db.execute(statement)
    assert shop.poll()["digest"] == first["digest"]
    assert [path.name for path in sorted(shop.folder.glob("*"))] == ["copies.duckdb", "copies.duckdb.state", "shop.db"]
    assert not list(shop.folder.glob(".copies*"))


def test_what_did_not_change_is_not_written(shop: Shop) -> None:
    shop.poll()
    before = shop.target.stat()
    # Everything is read again, and nothing is new.
    shop.now += 1e6
    assert shop.poll() == {}
    after = shop.target.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_who_reads_keeps_what_he_began_with_and_nobody_waits(shop: Shop) -> None:
    shop.poll()
    # A reader of another process: one of this process would be given a connection that is there already.
    reader, begun = os.pipe()
    tell, told = os.pipe()
    child = (
        "import duckdb, os, sys\n"
        "db = duckdb.connect(sys.argv[1], read_only=True)\n"
        "ask = lambda: db.execute('SELECT count(*) FROM things').fetchone()[0]\n"
        "os.write(int(sys.argv[2]), str(ask()).encode())\n"
        "os.read(int(sys.argv[3]), 1)\n"
        "os.write(int(sys.argv[2]), str(ask()).encode())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", child, str(shop.target), str(begun), str(tell)], pass_fds=[begun, tell]
    )
    try:
        assert os.read(reader, 9) == b"3"
        shop.db.executemany("INSERT INTO things VALUES(?, 'n', 1)", [(i,) for i in range(11, 51)])
        assert shop.poll()["rows"] == 43
        assert len(shop.copy()) == 43
        os.write(told, b".")
        assert os.read(reader, 9) == b"3"
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        for end in (reader, begun, tell, told):
            os.close(end)


def test_a_file_that_the_record_does_not_know_is_read_whole_again(shop: Shop) -> None:
    # A probe that would say that nothing changed, if the file were believed.
    shop.poll(probe="count")
    old = shop.target.read_bytes()
    shop.db.execute("INSERT INTO things VALUES(9, 'n', 1)")
    shop.poll(probe="count")
    # As after a kill between the switch and its record, or when somebody brings back an older file.
    shop.target.unlink()
    shop.target.write_bytes(old)
    assert shop.poll(probe="count") == {}
    assert shop.copy() == shop.here()
    shop.target.unlink()
    assert shop.poll(probe="count") == {}
    assert shop.copy() == shop.here()


def test_after_a_kill_before_its_record_a_table_is_read_again_even_if_another_one_was_polled_first(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise OSError("killed")

    shop.db.execute("CREATE TABLE others(id INTEGER PRIMARY KEY)")
    shop.poll()
    shop.db.execute("INSERT INTO things VALUES(4, 'z', 1), (5, 'z', 2)")
    with monkeypatch.context() as patch:
        patch.setattr(Records, "record", killed)
        assert shop.ask().answer is Answer.FAILED
    # The switch was made, and its record was not.
    assert shop.copy() == shop.here()
    other = Request(f"sqlite:///{shop.folder / 'shop.db'}#others")
    assert shop.loop.run(shop.fetcher.fetch(other)).reason == ""
    shop.etag = None
    assert shop.poll()["rows"] == 5
    assert shop.copy() == shop.here()


def test_without_a_record_the_file_is_read_whole_again(shop: Shop) -> None:
    shop.poll()
    for path in shop.folder.glob("copies.duckdb.state*"):
        path.unlink()
    shop.db.execute("INSERT INTO things VALUES(9, 'n', 1)")
    assert shop.poll()["rows"] == 4
    assert shop.copy() == shop.here()


@pytest.mark.parametrize("step", ["_make", "_change", "_digest", "_note"])
def test_a_poll_that_breaks_off_leaves_the_old_copy(shop: Shop, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    if step != "_make":
        shop.poll()
    old = shop.copy() if step != "_make" else None
    shop.db.execute("UPDATE things SET a = 'new'")
    with monkeypatch.context() as patch:
        patch.setattr(DuckTables, step, broken)
        assert shop.ask().answer is Answer.FAILED
    assert (shop.copy() if shop.target.exists() else None) == old
    assert not list(shop.folder.glob(".copies*"))
    assert shop.poll()["rows"] == 3
    assert shop.copy() == shop.here()


def test_rows_without_a_key_are_counted(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "CREATE TABLE things(a, b)")
    shop.db.execute("INSERT INTO things VALUES('x', 1), ('x', 1), ('y', NULL)")
    assert counts(shop.poll()) == (3, 3, 0, 0)
    shop.db.execute("DELETE FROM things WHERE rowid = 1")
    assert counts(shop.poll()) == (2, 0, 0, 1)
    assert sorted(shop.copy("SELECT a, b FROM things")) == [("x", "1"), ("y", None)]
    shop.close()


def test_columns_that_come_go_and_change_their_types(shop: Shop) -> None:
    shop.poll()
    for change in ("ADD COLUMN c DEFAULT 7", "RENAME COLUMN a TO d", "DROP COLUMN c", "ADD COLUMN D_ BLOB"):
        shop.db.execute(f"ALTER TABLE things {change}")
        assert shop.poll(schema="follow")["rows"] == 3
    assert shop.copy("SELECT id, d, b::DOUBLE FROM things ORDER BY id") == shop.here("SELECT id, d, b FROM things")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("'text'", "column b has values that DECIMAL(12,2) of DuckDB cannot hold"),
        ("1.005", "column b has values that DECIMAL(12,2) of DuckDB rounds"),
        ("x'00'", "column b with a value of bytes is not what its type decimal(12,2) says"),
    ],
)
def test_what_a_loose_database_holds_is_refused_where_it_is_not_of_its_type(
    shop: Shop, value: str, reason: str
) -> None:
    shop.poll()
    old = shop.copy()
    shop.db.execute(f"INSERT INTO things VALUES(7, 'odd', {value})")
    assert shop.ask().reason.startswith(reason)
    assert shop.copy() == old
    assert shop.poll(types={"b": "any"})["types"][2] == "VARCHAR"


def test_a_key_that_is_not_unique_is_refused(shop: Shop) -> None:
    shop.db.execute("UPDATE things SET a = 'x'")
    assert shop.ask(key="a").reason == "key is the same in several rows: name columns that are unique together"
    assert not shop.target.exists()


def test_a_file_that_is_not_ours_is_refused(shop: Shop) -> None:
    other = duckdb.connect(str(shop.target))
    other.execute("CREATE TABLE theirs(a INT)")
    other.close()
    assert "is another program's database: choose another file" in shop.ask().reason
    shop.target.write_bytes(b"no database " * 1000)
    assert "could not be used" in shop.ask().reason


def test_two_sources_of_one_name_are_two_tables(shop: Shop, tmp_path: Path) -> None:
    shop.poll()
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    request = Request(f"sqlite:///{tmp_path / 'other' / 'shop.db'}#things")
    shop.fetcher = SqlFetcher(shop.target, roots=[tmp_path])
    got = shop.loop.run(shop.fetcher.fetch(request))
    assert got.body is not None
    told = json.loads(got.body)
    assert told["table"].startswith("things_")
    assert (len(shop.copy()), shop.copy(f"SELECT * FROM {told['table']}")) == (3, [])
    other.close()


def test_without_duckdb_it_says_what_to_install(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert shop.ask().reason == "DuckDB is not installed, this needs it: pip install 'unstale[warehouse]'"


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9), st.sampled_from(["x", "", None, "a,b", "\\N", '"', "\r\n"])),
        st.tuples(st.just("drop"), st.integers(0, 9), st.none()),
        st.tuples(st.just("poll"), st.booleans(), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=15, deadline=None)
@given(acts=ACTS)
def test_the_copy_equals_the_source_whatever_happens(
    acts: list[tuple[str, Any, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop = Shop(tmp_path_factory.mktemp("shop"))
    for what, number, text in [*acts, ("poll", True, None)]:
        if what == "put":
            shop.db.execute("INSERT OR REPLACE INTO things VALUES(?, ?, ?)", (number, text, number / 4))
        elif what == "drop":
            shop.db.execute("DELETE FROM things WHERE id = ?", (number,))
        else:
            shop.poll(**({} if number else {"key": "id"}))
            assert shop.copy() == shop.here()
    shop.close()


def test_nothing_is_written_to_the_output_of_a_command(tmp_path: Path) -> None:
    tables = DuckTables(tmp_path / "copies.duckdb", lambda: False)
    try:
        assert tables._db.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)
    finally:
        tables.close()
