"""Tables of a group: what one transaction changed in two tables is never seen apart, and one poll brings both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import duckdb
import psycopg
import pytest

from support.postgres import Postgres, postgres
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.target_places import target_place
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

ASKED = "SELECT (SELECT sum(n) FROM {0}orders), (SELECT sum(n) FROM {0}lines)"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE DATABASE lake")
        yield found


@pytest.fixture
def shop(server: Postgres) -> Postgres:
    for name in ("orders", "lines"):
        server.run(
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name}(id int PRIMARY KEY, n int)",
            f"INSERT INTO {name} SELECT i, 0 FROM generate_series(1, 50) i",
        )
    return server


def target(server: Postgres, folder: Path, name: str) -> tuple[str, Callable[[], tuple[int, int]]]:
    """A target, and what somebody who reads both tables in one transaction sees."""
    if name == "postgres":

        def schema() -> tuple[int, int]:
            with psycopg.connect(server.address("lake")) as db:
                found = db.execute(ASKED.format("copies.")).fetchone()
                assert found is not None
                return found[0], found[1]

        return f"{server.address('lake')}&schema=copies", schema
    file = str(folder / name)

    def duck() -> tuple[int, int]:
        with duckdb.connect(file, read_only=True) as db:
            found = db.execute(ASKED.format("")).fetchone()
            assert found is not None
            return found[0], found[1]

    def lite() -> tuple[int, int]:
        db = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            db.set_busy_timeout(10_000)
            found: tuple[int, int] = db.execute(ASKED.format("")).get
            return found
        finally:
            db.close()

    return file, duck if name.endswith(".duckdb") else lite


def poll(server: Postgres, place: str, table: str, etag: str | None = None, group: str = "shop") -> Fetched:
    async def scene() -> Fetched:
        fetcher = SqlFetcher(target_place(place), roots=[server.folder])
        try:
            options = {"group": group} if group else {}
            return await fetcher.fetch(Request(f"{server.address()}#{table}", etag, options=options, seconds=60.0))
        finally:
            await fetcher.close()

    return asyncio.run(scene())


@pytest.mark.parametrize("name", ["copies.duckdb", "copies.db", "postgres"])
def test_what_one_transaction_changed_is_never_seen_apart(shop: Postgres, tmp_path: Path, name: str) -> None:
    place, read = target(shop, tmp_path, name)
    for table in ("orders", "lines"):
        assert poll(shop, place, table).reason == ""
    end, seen = threading.Event(), set[int]()

    def write() -> None:
        with shop.connect() as db:
            for i in range(100_000):
                if end.is_set():
                    return
                with db.transaction():
                    for table in ("orders", "lines"):
                        db.execute(f"UPDATE {table} SET n = n + 1 WHERE id = {i % 50 + 1}".encode())

    def look() -> None:
        while not end.is_set():
            orders, lines = read()
            seen.add(orders if orders == lines else -1)

    threads = [threading.Thread(target=one) for one in (write, look)]
    for thread in threads:
        thread.start()
    try:
        for i in range(8):
            assert poll(shop, place, ("orders", "lines")[i % 2]).reason == ""
            orders, lines = read()
            assert orders == lines
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert -1 not in seen
    assert len(seen) > 1


def test_one_poll_brings_all_members_and_a_held_one_holds_them(shop: Postgres, tmp_path: Path) -> None:
    place, read = target(shop, tmp_path, "copies.duckdb")
    first = poll(shop, place, "orders")
    lines = poll(shop, place, "lines")
    shop.run("BEGIN; UPDATE orders SET n = 1 WHERE id = 1; UPDATE lines SET n = 1 WHERE id = 1; COMMIT")
    assert poll(shop, place, "orders", first.etag).answer is Answer.CHANGED
    assert read() == (1, 1)
    # The other one's own poll is told of it.
    assert poll(shop, place, "lines", lines.etag).answer is Answer.CHANGED
    shop.run("ALTER TABLE lines RENAME n TO m", "UPDATE orders SET n = 2 WHERE id = 1")
    got = poll(shop, place, "orders")
    assert got.reason.startswith(
        "lines, of the same group: its schema changed and the copy is held: column n is called m"
    )
    assert read() == (1, 1)
    # One whose table is gone keeps nobody back.
    shop.run("DROP TABLE lines")
    assert poll(shop, place, "orders").reason == ""
    assert read() == (2, 1)


def test_parquet_files_refuse_a_group(shop: Postgres, tmp_path: Path) -> None:
    got = poll(shop, str(tmp_path / "copies.parquet"), "orders")
    assert got.reason.startswith("group of tables cannot be switched to at once in Parquet files: choose a .duckdb")
