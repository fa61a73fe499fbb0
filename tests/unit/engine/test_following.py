"""Following a replica: its sources come and go with it, ours stay."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.clock import SystemClock
from unstale.engine.following import Following
from unstale.engine.store_executor import StoreExecutor
from unstale.ports import Digest, Listing

UP = "http://up.example:8600"


class Lists:
    """A replica that lists these, two at a time."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.reason = list(addresses), ""

    async def digest(self, peer: str, since: float, after: int, back: str = "") -> Digest:
        rows = tuple((address, 1.0, bytes(32)) for address in self.addresses[after : after + 2])
        further = after + 2 if after + 2 < len(self.addresses) else None
        return Digest(rows, 1.0, further, 10, self.reason)


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "store.db")


def look(store: SqliteStore, peering: Any, **given: Any) -> tuple[int, int, int] | None:
    return asyncio.run(
        Following(UP, peering, StoreExecutor(lambda: store, threads=False), SystemClock(), **given).look()
    )


def addresses(store: SqliteStore) -> list[str]:
    return [one.address for one in store.listings(store.search(limit=100))]


def test_sources_come_and_go(store: SqliteStore) -> None:
    peering = Lists("https://a/1", "https://a/2", "https://b/3", "https://b/4", "https://b/5")
    assert look(store, peering) == (5, 0, 5)
    (first, *_) = store.listings(store.search(limit=1))
    assert (first.kind, first.host, first.options) == ("replica", "up.example", {"upstream": UP})
    peering.addresses.remove("https://a/2")
    peering.addresses.append("https://c/6")
    assert look(store, peering) == (1, 1, 5)
    assert addresses(store) == ["https://a/1", "https://b/3", "https://b/4", "https://b/5", "https://c/6"]
    assert look(store, peering) == (0, 0, 5)


def test_what_others_added_is_left_alone(store: SqliteStore) -> None:
    store.add(
        [
            Listing("https://a/1"),
            Listing("https://x/"),
            Listing("https://y/", "replica", options={"upstream": "http://another"}),
        ],
        1.0,
    )
    assert look(store, Lists("https://a/1", "https://a/2")) == (1, 0, 2)
    assert addresses(store) == ["https://a/1", "https://x/", "https://y/", "https://a/2"]
    assert store.listings([1])[0].kind == "http"


def test_what_could_not_be_seen_is_not_gone(store: SqliteStore) -> None:
    peering = Lists("https://a/1", "https://a/2", "https://a/3")
    look(store, peering)
    peering.addresses, peering.reason = [], "it hangs"
    assert look(store, peering) is None
    assert len(addresses(store)) == 3


@pytest.mark.parametrize(
    ("select", "wanted"),
    [("*", 3), ("https://a/*", 2), ("a/", 2), ("*/?", 3), ("https://B/*", 0), ("[ab]", 0)],
)
def test_a_selection(store: SqliteStore, select: str, wanted: int) -> None:
    look(store, Lists("https://a/1", "https://a/2", "https://b/3"), select=select)
    assert len(addresses(store)) == wanted
