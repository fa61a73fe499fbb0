"""A worker that loses a shard while it reads its sources does not go on as if it had it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import Any

import pytest

from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.held_fleet import HeldFleet
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.holding import LifeHeard
from unstale.engine.published_plan import PublishedPlan
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.errors import StoreError
from unstale.ports import Claim, Fetched, Grant, HeldShards, Listing


def fleet_of(store: PostgresCrew) -> HeldFleet:
    """The fleet of worker a, which holds all shards and has heard so."""
    store.add([Listing(f"s{n}") for n in range(40)], 0.0)
    store.beat("a", 0.0, 0.0, 1.0, {}, None)
    executor = StoreExecutor(lambda: store, threads=False)
    fleet = HeldFleet(executor, EngineConfig(1.0, owner="a"), SystemClock(), HeldHostLimits(), lambda name, facts: None)
    fleet.held = list
    heard(fleet, store.hold("a").epochs)
    return fleet


def worker_of(store: PostgresCrew) -> Worker:
    """The worker a, which holds all shards and has read their sources."""

    async def look(claim: Claim) -> Fetched:
        raise NotImplementedError

    store.add([Listing(f"s{n}") for n in range(40)], 0.0)
    store.beat("a", 0.0, 0.0, 1.0, {}, None)
    executor = StoreExecutor(lambda: store, threads=False)
    return Worker(executor, executor, EngineConfig(1.0, owner="a"), SystemClock(), look)


def life(held: HeldShards) -> LifeHeard:
    return LifeHeard(Grant(1.0, 0.0), held, b'{"scale": 1.0, "price": 1.0}', b"", 0)


def test_what_was_left_alone_for_another_that_is_gone_is_polled_again(
    store: PostgresCrew, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = worker_of(store)
    fleet = worker._fleet

    async def play() -> None:
        worker._heard(life(store.hold("a")))
        await fleet.look_around()
        store.beat("b", 0.0, 0.0, 1.0, {}, None)
        worker._heard(life(store.hold("a")))
        await worker._leave_shards()
        assert 0 < fleet.taken.sum() < 40
        assert worker._holding.let_go == worker._unwanted != ()
        store.leave("b")
        worker._holding.let_go = ()
        worker._heard(life(store.hold("a")))
        await fleet.look_around()
        assert not fleet.taken.any()
        # The same, if it is heard while it is looked which sources they are.
        store.beat("b", 0.0, 0.0, 1.0, {}, None)
        worker._heard(life(store.hold("a")))
        find = store.sources_of

        def meanwhile(shards: Any) -> list[int]:
            store.leave("b")
            worker._heard(life(store.hold("a")))
            return find(shards)

        monkeypatch.setattr(store, "sources_of", meanwhile)
        await worker._leave_shards()
        await fleet.look_around()
        assert not fleet.taken.any()
        assert worker._holding.let_go == ()

    asyncio.run(play())


def heard(fleet: HeldFleet, epochs: dict[int, int] | Any) -> bool:
    return fleet.hear(PublishedPlan(scale=1.0), Grant(1.0, 0.0), epochs, b"")


def test_a_shard_that_goes_while_all_is_read_is_lost(store: PostgresCrew, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, read = fleet_of(store), store.held_fleet

    def meanwhile(owner: str, width: int) -> Any:
        standing = read(owner, width)
        # Another worker comes, and gets its part: the sign of life says so before all was read.
        store.beat("b", 0.0, 0.0, 1.0, {}, None)
        heard(fleet, store.hold("a", store.hold("a").unwanted).epochs)
        return standing

    async def play() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(store, "held_fleet", meanwhile)
            await fleet.look_around()
        assert len(fleet.scheduler.ids) == 40
        assert fleet.lost
        assert fleet.outdated
        await fleet.look_around()
        assert not fleet.lost
        assert not fleet.outdated
        assert fleet.scheduler.ids.tolist() == store.sources_of(list(fleet.epochs))
        assert 0 < len(fleet.scheduler.ids) < 40

    asyncio.run(play())


def test_what_could_not_be_read_is_read_again(store: PostgresCrew, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = fleet_of(store)

    def away(owner: str, width: int) -> Any:
        raise StoreError("away")

    async def play() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(store, "held_fleet", away)
            with pytest.raises(StoreError):
                await fleet.look_around()
        assert len(fleet.scheduler.ids) == 0
        await fleet.look_around()
        assert len(fleet.scheduler.ids) == 40
        assert not fleet.lost

    with closing(store):
        asyncio.run(play())
