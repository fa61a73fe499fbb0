"""What a poll tells of itself while it goes on is in the store, and gone when it has ended."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from unstale.adapters import sql_flight, sql_text
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.cli.progress import ProgressKeeper
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import COPYING, Progress, Request

ROWS = 2500


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE things(id INTEGER PRIMARY KEY, a TEXT)")
        db.executemany("INSERT INTO things VALUES(?, ?)", ((i, f"row {i}") for i in range(ROWS)))
    return tmp_path


@pytest.mark.parametrize("target", ["copies.db", "copies.duckdb"])
def test_a_copy_tells_how_far_it_is(shop: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setattr(sql_flight, "EVERY", 0.0)
    monkeypatch.setattr(sql_text, "CHUNK", 4096)
    heard: list[Progress] = []

    async def scene() -> Answer:
        fetcher = SqlFetcher(shop / target, roots=[shop], now=lambda: 1.8e9)
        try:
            asked = Request(f"sqlite:///{shop / 'shop.db'}#things", seconds=60.0, hear=heard.append)
            return (await fetcher.fetch(asked)).answer
        finally:
            await fetcher.close()

    assert asyncio.run(scene()) is Answer.CHANGED
    rows = [one.rows for one in heard]
    assert rows == sorted(rows)
    assert (rows[-1], {one.of for one in heard}, heard[-1].kept) == (ROWS, {ROWS}, 0)
    assert heard[-1].received > 8 * ROWS


def test_what_is_told_is_in_the_store_until_the_poll_ends() -> None:
    store, told = MemoryStore(), Progress(12.0, 2.0, 600, 1000, 100, 5000)

    async def scene() -> tuple[bytes, bytes]:
        keeper = ProgressKeeper(StoreExecutor(lambda: store, threads=False))
        await asyncio.to_thread(keeper.heard(7), told)
        await asyncio.sleep(0)
        during = store.setting(f"{COPYING}7")
        await keeper.ended(7)
        # Of one that said nothing, nothing is written.
        await keeper.ended(8)
        return during, store.setting(f"{COPYING}7")

    assert asyncio.run(scene()) == (told.written(), b"")
    assert f"{COPYING}8" not in store.fleet(0).settings
