"""A cause that is mended: sources that failed for it are tried at once, others wait as they did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.fetchers import Fetchers
from unstale.cli.mended import retry_mended, retry_readable, watch
from unstale.cli.settings import Files, Http, Settings
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Listing, Store

NOW = 1.8e9
LATER = NOW + 1e6


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: SqliteStore | MemoryStore
    made = SqliteStore(tmp_path / "unstale.db") if request.param == "sqlite" else MemoryStore()
    yield made
    made.close()


def _failing(store: Store, listings: list[Listing], settings: Settings) -> None:
    """Poll them once under these settings; every failure is recorded, and due much later."""
    ids = store.add(listings, NOW)
    fetchers = Fetchers(settings, lambda: NOW)

    async def looked(claims: list[Claim]) -> list[str]:
        try:
            return [(await fetchers.look(claim)).reason for claim in claims]
        finally:
            await fetchers.close()

    store.set_due(ids, [NOW] * len(ids))
    claims = store.claim(NOW, len(ids), owner="test", lease=60.0)
    reasons = asyncio.run(looked(claims))
    assert all(reasons)
    pairs = zip(claims, reasons, strict=True)
    store.record([Entry(claim, Answer.FAILED, NOW, LATER, reason=reason) for claim, reason in pairs])


def _due(store: Store) -> list[str]:
    standing = store.fleet(1)
    return [one.address for one in store.listings([int(i) for i in standing.source[standing.due <= NOW]])]


def test_settings_and_environment_that_were_mended(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = f"file://{tmp_path}/a"
    listings = [
        Listing(there, "file"),
        Listing("http://127.0.0.1:9/"),
        Listing("http://127.0.0.1:9/?token=$MENDED"),
        Listing("ftp://127.0.0.1:9/a", "file"),
        Listing("http://127.0.0.1:9/y", options={"headers": {"Authorization": "$NEVER_SET"}}),
    ]
    monkeypatch.delenv("MENDED", raising=False)
    bare = replace(Settings(), http=replace(Http(), robots=False))
    _failing(store, listings, bare)
    assert retry_mended(store, Fetchers(bare, lambda: NOW), NOW) == []
    granted = replace(bare, files=Files(roots=(str(tmp_path),)))
    retry_mended(store, Fetchers(granted, lambda: NOW), NOW)
    assert _due(store) == [there]
    monkeypatch.setenv("MENDED", "x")
    granted = replace(granted, http=replace(bare.http, allow_networks=("127.0.0.0/8",)))
    retry_mended(store, Fetchers(granted, lambda: NOW), NOW)
    assert sorted(_due(store)) == sorted(one.address for one in listings[:3])


def test_what_failed_elsewhere_waits_on(store: Store) -> None:
    near = replace(Settings(), http=replace(Http(), robots=False, allow_networks=("127.0.0.0/8",)))
    _failing(store, [Listing("http://127.0.0.1:9/")], near)
    assert retry_mended(store, Fetchers(near, lambda: NOW), NOW) == []


def test_a_file_that_may_be_read_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("hello")
    (source,) = store.add([Listing(f"file://{tmp_path}/a", "file")], NOW)
    (claim,) = store.claim(NOW, 1, owner="test", lease=60.0)
    store.record([Entry(claim, Answer.FAILED, NOW, LATER, reason="file: it may not be read")])
    monkeypatch.setattr("unstale.cli.mended.os.access", lambda *_: False)
    assert retry_readable(store, NOW) == []
    monkeypatch.undo()

    async def scene() -> None:
        stop = asyncio.Event()
        executor = StoreExecutor(lambda: store, threads=False)
        monkeypatch.setattr(executor, "close", stop.set)
        watching = asyncio.create_task(watch(lambda: executor, lambda: NOW, stop, 0.001))
        while not _due(store):
            await asyncio.sleep(0)
        stop.set()
        await watching

    asyncio.run(scene())
    assert store.fleet(1).source[store.fleet(1).due <= NOW].tolist() == [source]
