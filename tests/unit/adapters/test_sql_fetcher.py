"""Polling databases, with SQLite as the database: the copy equals the source, and unchanged means unchanged."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

NOW = 1.8e9
TABLE = "CREATE TABLE things(id INTEGER PRIMARY KEY, a, tick INTEGER)"


class Shop:
    """A source database with a table `things`, and a fetcher that keeps its copy; `poll` remembers the validator."""

    def __init__(self, folder: Path, made: str = TABLE, **options: Any) -> None:
        self.folder, self.options, self.now = folder, options, NOW
        self.db = sqlite3.connect(folder / "shop.db", isolation_level=None)
        self.db.execute(made)
        self.etag: str | None = None
        self.address = f"sqlite:///{folder / 'shop.db'}#things"
        self.fetcher = SqlFetcher(folder / "copies.db", roots=[folder], now=lambda: self.now)
        self.loop = asyncio.Runner()

    def ask(self, **changes: Any) -> Fetched:
        settings: dict[str, Any] = {"address": self.address, "options": self.options} | changes
        return self.loop.run(self.fetcher.fetch(Request(**settings)))

    def poll(self) -> Fetched:
        got = self.ask(etag=self.etag)
        assert got.reason == ""
        self.etag = got.etag
        return got

    def here(self) -> list[tuple[Any, ...]]:
        return sorted(self.db.execute("SELECT * FROM things"), key=repr)

    def copy(self, view: str = "things") -> list[tuple[Any, ...]]:
        db = apsw.Connection(str(self.folder / "copies.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return sorted(db.execute(f"SELECT * FROM {view}"), key=repr)
        finally:
            db.close()

    def close(self) -> None:
        self.loop.run(self.fetcher.close())
        self.loop.close()
        self.db.close()


def account(got: Fetched) -> dict[str, Any]:
    assert got.body is not None
    found: dict[str, Any] = json.loads(got.body)
    return found


VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([0.5, "x", "", b"x"]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9), VALUES),
        st.tuples(st.just("delete"), st.integers(0, 9), st.none()),
        st.tuples(st.just("late"), st.integers(0, 9), VALUES),
        st.tuples(st.just("poll"), st.none(), st.none()),
    ),
    max_size=25,
)
KEYLESS = "CREATE TABLE things(id INTEGER, a, tick INTEGER)"


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (TABLE, {}),
        (KEYLESS, {}),
        (KEYLESS, {"key": ["id"], "changed": "tick", "overlap": 5}),
        (TABLE, {"changed": "tick", "overlap": 5, "batch": 2}),
        (TABLE, {"changed": "tick", "overlap": 5, "probe": "checksum"}),
        (KEYLESS, {"changed": "tick", "overlap": 5}),
    ],
    ids=["key", "no key", "named key", "changed", "checksum", "changed without key"],
)
@given(steps=STEPS)
def test_the_copy_equals_the_source_and_unchanged_means_just_that(
    table: str, options: dict[str, Any], steps: list[tuple[str, Any, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder, closing(Shop(Path(folder), table, **options)) as shop:
        clock, known = 100, None
        for what, key, value in [*steps, ("poll", None, None), ("poll", None, None)]:
            if what == "poll":
                before, got = known, shop.poll()
                known = shop.here()
                assert shop.copy() == known
                assert (got.answer is Answer.UNCHANGED) == (before == known)
                assert account(got)["rows"] == len(known) if got.body else before is not None
                continue
            clock += 1
            shop.db.execute("DELETE FROM things WHERE id = ?", (key,))
            if what == "late":
                # A row whose transaction began up to three ticks ago, and that is only seen now.
                shop.db.execute("INSERT INTO things VALUES(?, ?, ?)", (key, value, clock - 3))
            elif what == "put":
                shop.db.execute("INSERT INTO things VALUES(?, ?, ?)", (key, value, clock))


def test_only_what_changed_is_read(tmp_path: Path) -> None:
    shop = Shop(tmp_path, changed="tick", overlap=10)
    shop.db.execute("BEGIN")
    shop.db.executemany("INSERT INTO things VALUES(?, ?, ?)", [(i, "x" * 100, i) for i in range(1000)])
    shop.db.execute("COMMIT")
    first = shop.poll()
    assert first.received == 1000 * (8 + 100 + 8)
    assert account(first) == account(first) | {"rows": 1000, "inserted": 1000, "changed": 0, "deleted": 0}
    shop.db.execute("UPDATE things SET a = 'y', tick = 1005 WHERE id = 3")
    second = shop.poll()
    assert account(second) == account(second) | {"inserted": 0, "changed": 1, "deleted": 0, "probe": "changed"}
    # Ticks 989 to 999, and the row itself.
    assert second.received == 11 * 116 + 17
    shop.db.execute("DELETE FROM things WHERE id = 5")
    third = shop.poll()
    assert account(third) == account(third) | {"inserted": 0, "changed": 0, "deleted": 1, "rows": 999}
    assert third.received < 1000 * 8 + 20 * 116
    assert shop.copy() == shop.here()
    shop.close()


def test_a_change_that_its_column_does_not_tell_is_found_at_the_sweep(tmp_path: Path) -> None:
    shop = Shop(tmp_path, changed="tick", overlap=1, sweep=3600)
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1), (2, 'y', 100)")
    shop.poll()
    shop.db.execute("UPDATE things SET a = 'unseen' WHERE id = 1")
    shop.now += 3599.0
    assert shop.poll().answer is Answer.UNCHANGED
    shop.now += 1.0
    assert account(shop.poll())["changed"] == 1
    assert shop.copy() == shop.here()
    # A clock that was set back must not put the sweep off for ever.
    shop.now = NOW - 1e8
    assert shop.poll().received > 0
    shop.close()


def test_what_was_copied_but_never_recorded_is_told_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path, changed="tick")
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1)")
    first = shop.poll()
    shop.db.execute("INSERT INTO things VALUES(2, 'y', 2)")
    lost = shop.ask(etag=first.etag)
    again = shop.ask(etag=first.etag)
    assert (lost.answer, again.answer, again.body, again.etag) == (Answer.CHANGED,) * 2 + (lost.body, lost.etag)
    assert shop.ask(etag=lost.etag).answer is Answer.UNCHANGED
    # Who has lost the validator gets the same bytes, and sees by them that nothing changed.
    assert shop.ask().body == lost.body
    shop.close()


def test_a_lost_copy_is_made_anew_without_a_change(tmp_path: Path) -> None:
    shop = Shop(tmp_path, changed="tick")
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1)")
    shop.poll()
    for file in tmp_path.glob("copies.db*"):
        file.unlink()
    assert shop.poll().answer is Answer.UNCHANGED
    assert shop.copy() == [(1, "x", 1)]
    shop.close()


def test_columns_that_come_go_and_change_their_names(tmp_path: Path) -> None:
    shop = Shop(tmp_path, changed="tick", schema="follow")
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1), (2, 'y', 2)")
    shop.poll()
    for change in ("ADD COLUMN b DEFAULT 7", "RENAME COLUMN a TO c", "DROP COLUMN b"):
        shop.db.execute(f"ALTER TABLE things {change}")
        assert shop.poll().answer is Answer.CHANGED
        assert shop.copy() == shop.here()
    shop.db.execute("ALTER TABLE things DROP COLUMN tick")
    assert "column 'tick' is not there: choose from id, c" in shop.ask().reason
    shop.close()


def test_a_query_is_a_source(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1), (2, 'y:z%', 2)")
    place = f"sqlite:///{tmp_path / 'shop.db'}"
    query = "SELECT a, count(*) AS n FROM things WHERE a <> ':b' AND a LIKE '%' GROUP BY a; -- end".replace(";", "")
    got = shop.ask(address=place, options={"query": query, "key": "a"})
    assert account(got) == account(got) | {"columns": ["a", "n"], "rows": 2, "table": "query"}
    assert shop.copy("query") == [("x", 1), ("y:z%", 1)]
    shop.close()


def test_values_keep_what_sqlite_can_hold(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    odd = sqlite3.connect(tmp_path / "shop.db")
    odd.execute("INSERT INTO things VALUES(1, CAST(x'ff41' AS TEXT), 9e999), (2, x'00ff', -0.5), (3, 'ü', NULL)")
    odd.commit()
    odd.close()
    shop.poll()
    assert shop.copy() == sorted([(1, b"\xffA", float("inf")), (2, b"\x00\xff", -0.5), (3, "ü", None)], key=repr)
    assert shop.poll().answer is Answer.UNCHANGED
    shop.close()


def test_times_with_a_zone_teach_when_it_changed(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "CREATE TABLE things(id INTEGER PRIMARY KEY, tick TEXT)", changed="tick")
    shop.db.execute("INSERT INTO things VALUES(1, '2026-01-01T00:00:00+00:00')")
    assert shop.poll().changed_at == (1767225600.0,)
    shop.db.execute("INSERT INTO things VALUES(2, '2026-01-02T00:00:00')")
    assert shop.poll().changed_at == ()
    shop.close()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"query": "SELECT 1"}, "must name a table or a query, not both"),
        ({"table": "absent"}, "table 'absent' is not there, or not for us to read: check its name and schema"),
        ({"key": ["id", "ID"]}, "column 'ID' is not there: choose from id, a, tick"),
        ({"key": 7}, "key 7 must name columns"),
        ({"key": "a"}, "key is the same in several rows: name columns that are unique together"),
        ({"changed": "when"}, "column 'when' is not there"),
        ({"probe": "changed"}, "probe 'changed' needs the column that it looks at: name it in the option changed"),
        ({"probe": "xmin"}, "probe 'xmin' needs a table of PostgreSQL: choose checksum"),
        ({"probe": "guess"}, "probe 'guess' must be one of auto, changed, xmin, checksum, count"),
        ({"overlap": -1}, "overlap -1.0 must be a finite number at least 0"),
        ({"sweep": "often"}, "sweep 'often' must be a number above 0"),
        ({"batch": 0}, "batch 0.0 must be a finite number at least 1"),
        ({"max_bytes": 20}, "the rows have more than 20 bytes: raise max_bytes if they may"),
    ],
)
def test_what_cannot_be_polled_is_one_sentence(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    shop = Shop(tmp_path, **options)
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1), (2, 'x', 2)")
    got = shop.ask()
    assert got.answer is Answer.FAILED
    assert reason in got.reason
    shop.close()


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("DELETE FROM things", "query 'DELETE FROM things' must begin with SELECT or WITH"),
        ("SELECT 1; DROP TABLE things", "query with a semicolon must be one statement"),
        ("WITH x AS (SELECT 1) DELETE FROM things", "SQLite says: near"),
        ("SELECT absent FROM things", "SQLite says: no such column: absent"),
        ("SELECT 1) AS q, (DELETE FROM things RETURNING 1", "SQLite says: near"),
    ],
)
def test_a_query_can_only_read(tmp_path: Path, query: str, reason: str) -> None:
    shop = Shop(tmp_path)
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1)")
    got = shop.ask(address=f"sqlite:///{tmp_path / 'shop.db'}", options={"query": query})
    assert got.answer is Answer.FAILED
    assert reason in got.reason
    assert shop.here() == [(1, "x", 1)]
    shop.close()


def test_files_are_read_only_where_it_is_allowed(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
        sqlite3.connect(tmp_path / name / "a.db").execute("CREATE TABLE t(a)").connection.close()
    (tmp_path / "in" / "link.db").symlink_to(tmp_path / "out" / "a.db")
    (tmp_path / "in" / "store.db").hardlink_to(tmp_path / "in" / "a.db")
    target = tmp_path / "in" / "copies.db"
    held = [tmp_path / "in" / "store.db", tmp_path / "nothing"]

    async def reasons(*names: str, **settings: Any) -> list[str]:
        fetcher = SqlFetcher(target, roots=[tmp_path / "in"], **settings)
        found = [(await fetcher.fetch(Request(f"sqlite:///{tmp_path / name}#t"))).reason for name in names]
        await fetcher.close()
        return found

    allowed = asyncio.run(reasons("in/a.db", "in/none.db", "out/a.db", "in/../out/a.db", "in/link.db", "in/copies.db"))
    outside = "lies in no allowed folder: add its folder to the settings"
    assert allowed == [
        "",
        "file 'none.db' does not exist: check the address",
        f"file 'a.db' {outside}",
        f"file 'a.db' {outside}",
        f"file 'a.db' {outside}",
        "file 'copies.db' is Unstale's own: choose another one",
    ]
    assert not (tmp_path / "in" / "none.db").exists()
    # The same file under another name is the same file.
    assert asyncio.run(reasons("in/a.db", held=held)) == ["file 'a.db' is Unstale's own: choose another one"]


@pytest.mark.parametrize("address", ["sqlite://#t", "sqlite:///:memory:#t", "sqlite:///file:a?mode=rwc#t"])
def test_an_sqlite_database_must_be_a_file(tmp_path: Path, address: str) -> None:
    got = asyncio.run(SqlFetcher(tmp_path / "copies.db", roots=[Path("/")]).fetch(Request(address)))
    assert "must be its file" in got.reason


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgresql://127.0.0.1/shop#t", "127.0.0.1: its address 127.0.0.1 is not public, add it to allow_networks"),
        ("postgresql://[::ffff:10.0.0.1]/shop#t", "is not public"),
        ("postgresql://0x7f.1/shop#t", "its address 127.0.0.1 is not public"),
        ("postgresql://localhost/shop#t", "is not public"),
        ("postgresql:///shop#t", "address of a database must name one host"),
        ("postgresql:///shop?host=/run/postgresql#t", "lies in no allowed folder"),
        ("postgresql://8.8.8.8/shop?host=127.0.0.1#t", "must name one host"),
        ("postgresql://8.8.8.8/shop?hostaddr=127.0.0.1#t", "address with hostaddr says more than is allowed"),
        ("postgresql://8.8.8.8/shop?service=x&sslkey=y#t", "address with service, sslkey says more than is allowed"),
        ("postgresql://8.8.8.8/shop?options=-c%20x#t", "address with options says more"),
        ("mssql+pyodbc:///?odbc_connect=x#t", "address with odbc_connect says more"),
        ("postgresql://8.8.8.8/shop?driver=/lib/x.so#t", "address with driver says more"),
        ("postgresql+asyncpg://8.8.8.8/shop#t", "asyncpg"),
        ("mysql+nothing://8.8.8.8/shop#t", "does not know"),
        ("nothing://8.8.8.8/shop#t", "does not know"),
        ("mysql://8.8.8.8/shop#t", "its driver MySQLdb is not installed: pip install 'mysqlclient'"),
        ("postgresql://u:$SHOP_PASSWORD@8.8.8.8/shop#t", "environment variable SHOP_PASSWORD is not set"),
        ("postgresql://a b:c@:x#t", "address is not a database's"),
    ],
)
def test_addresses_that_lead_where_they_must_not(tmp_path: Path, address: str, reason: str) -> None:
    fetcher = SqlFetcher(tmp_path / "copies.db")
    got = asyncio.run(fetcher.fetch(Request(address, seconds=2 * SOON)))
    asyncio.run(fetcher.close())
    assert got.answer is Answer.FAILED
    assert reason in got.reason
    assert not (tmp_path / "copies.db").exists()


def test_secrets_are_filled_in_and_never_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The value looks like another host, and must stay a password.
    monkeypatch.setenv("SHOP_PASSWORD", "x@8.8.8.8/other?host=1")
    monkeypatch.setenv("SHOP_HOST", "localhost")
    fetcher = SqlFetcher(tmp_path / "copies.db")
    got = asyncio.run(fetcher.fetch(Request("postgresql://u:$SHOP_PASSWORD@${SHOP_HOST}/shop#t")))
    asyncio.run(fetcher.close())
    assert got.reason.startswith("${SHOP_HOST}: its address ")
    assert "is not public" in got.reason
    assert "x@" not in got.reason


def test_a_server_that_never_answers_is_left_at_the_deadline(tmp_path: Path) -> None:
    async def scene(port: int) -> None:
        fetcher = SqlFetcher(tmp_path / "copies.db", Gate(["127.0.0.0/8"]))
        begin = time.monotonic()
        got = await fetcher.fetch(Request(f"postgresql://u@127.0.0.1:{port}/shop#t", seconds=0.3))
        assert 0.25 < time.monotonic() - begin < SOON
        assert got.reason == "no whole answer within 0.3 s"
        await fetcher.close()

    # The system takes the connection, and nobody ever speaks.
    with socket.create_server(("127.0.0.1", 0)) as server:
        asyncio.run(scene(server.getsockname()[1]))


def test_without_sqlalchemy_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    got = asyncio.run(SqlFetcher(tmp_path / "copies.db").fetch(Request("postgresql://a/b#t")))
    assert got.reason == "SQLAlchemy is not installed, this needs it: pip install 'unstale[sql]'"


def test_a_target_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (tmp_path / "copies.db").write_text("something else entirely " * 50)
    assert "could not be used" in shop.ask().reason
    shop.close()


def test_two_sources_of_one_name_are_two_tables(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.db.execute("INSERT INTO things VALUES(1, 'x', 1)")
    (tmp_path / "other").mkdir()
    other = Shop(tmp_path / "other")
    shop.poll()
    got = shop.ask(address=other.address)
    assert account(got)["table"].startswith("things_")
    assert (shop.copy(), shop.copy(account(got)["table"])) == ([(1, "x", 1)], [])
    shop.close()
    other.close()
