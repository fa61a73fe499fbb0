"""What an engine adds up of a large fleet is what is told of it: the same numbers, and no longer than they hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.engine import summing
from unstale.engine.config import EngineConfig
from unstale.engine.fleet_sums import SUMS, KeptSums
from unstale.engine.host_limits import HostLimits
from unstale.engine.loading import LoadedFleet
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, FleetColumns, Listing, Price
from unstale.service import FleetService, documents, fleet_service

COUNT, DAY, NOW = 400, 86_400.0, 1_700_000_000.0


class Still:
    """A clock that stands."""

    def now(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.0)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FleetService]:
    """A fleet of which some are paused, some fail, some were never polled and some are promised fresh."""
    rng, learner = np.random.default_rng(5), Learner(COUNT, DAY)
    for day in range(5):
        times = NOW - DAY * (5 - day) + rng.uniform(0.0, 1000.0, COUNT)
        learner.observe(np.arange(COUNT), times, rng.random(COUNT) < rng.choice([0.1, 0.5, 0.9], COUNT))
    store = SqliteStore(tmp_path / "store.db")
    listings = [
        Listing(
            f"https://h{n % 9}.example/{n}",
            weight=1.0 + n % 3,
            host=f"h{n % 9}",
            paused=n % 50 == 7,
            options={"fresh_within": "1h"} if n % 40 == 3 else {},
        )
        for n in range(COUNT)
    ]
    store.add(listings, NOW - 9 * DAY)
    claims = store.claim(NOW, COUNT - 60, lease=60.0, owner="a")
    ends = (Answer.FAILED, *[Answer.UNCHANGED] * 9)
    store.record(
        [
            Entry(c, ends[c.source % 10], NOW - 60.0 * (c.source % 90), NOW + DAY, learner.columns.rows[i].tobytes())
            for i, c in enumerate(claims)
        ],
        settings={"learner": kept(learner), "engine": json.dumps({"at": NOW, "surcharges": {}}).encode()},
        price=Price(NOW, 5000.0, COUNT / DAY),
    )
    store.close()
    made = service_of(Settings(store=str(tmp_path / "store.db")))
    made.clock = lambda: NOW
    made.running = lambda: True  # type: ignore[method-assign]
    yield made
    made.close()


def add_up(service: FleetService, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its engine would, now and then."""
    monkeypatch.setattr(summing, "MANY", COUNT - 1)

    async def once() -> None:
        executor = StoreExecutor(lambda: SqliteStore(service.store.path), threads=False)  # type: ignore[attr-defined]
        limits = HostLimits(service.terms.rules)
        fleet = LoadedFleet(executor, EngineConfig(service.budget().rate), Still(), limits, lambda *_: None)
        await fleet.look_around()
        made = summing.Summing(executor, fleet, Still(), limits)
        assert made.wait(NOW) == 0.0
        await made.keep()
        assert made.wait(NOW) == summing.EVERY
        executor.close()

    asyncio.run(once())


def refuse(width: int) -> FleetColumns:
    raise AssertionError("the whole fleet is read")


def test_what_is_kept_is_what_reading_all_of_it_tells(service: FleetService, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = service.status()
    add_up(service, monkeypatch)
    monkeypatch.setattr(service.store, "fleet", refuse)
    monkeypatch.setattr(service.store, "total_cost", lambda: pytest.fail("all costs are read"))
    told = service.status()
    assert (whole.summed_at, told.summed_at) == (None, NOW)
    assert told.counts == whole.counts
    assert (whole.counts.paused, whole.counts.failing > 9, whole.counts.never_polled > 9) == (8, True, True)
    assert whole.contracts
    assert told.contracts == whole.contracts
    one, other = (documents.status(replace(each, summed_at=None)) for each in (told, whole))
    assert [each["id"] for each in one["worst"]] == [each["id"] for each in other["worst"]]
    assert set(one) == set(other)
    for name, value in other.items():
        if isinstance(value, float):
            assert one[name] == pytest.approx(value, rel=1e-9), name
        elif name not in ("worst", "engine"):
            assert one[name] == value, name
    for mine, theirs in zip(one["worst"], other["worst"], strict=True):
        assert mine["fresh"] == pytest.approx(theirs["fresh"], rel=1e-9)
        assert (mine["interval"] is None) is (theirs["interval"] is None)
        assert (mine["interval"] or 0.0) == pytest.approx(theirs["interval"] or 0.0, rel=1e-6)


@pytest.mark.parametrize("since", ["an edit", "an end", "a while", "a budget", "a longer list", "promises"])
def test_what_no_longer_holds_is_not_told(service: FleetService, monkeypatch: pytest.MonkeyPatch, since: str) -> None:
    add_up(service, monkeypatch)
    assert service.status().summed_at == NOW
    limit = 20
    if since == "an edit":
        service.edit([7], {"weight": 9.0})
    elif since == "an end":
        service.running = lambda: False  # type: ignore[method-assign]
    elif since == "a while":
        service.clock = lambda: NOW + summing.COUNTS * summing.EVERY + 1.0
    elif since == "a budget":
        service.set_budget(3.0 * service.budget().rate, "command")
    elif since == "promises":
        monkeypatch.setattr(fleet_service, "PROMISED", 3)
    else:
        limit = COUNT
    assert service.status(limit=limit).summed_at is None


def test_sums_of_another_version_are_none() -> None:
    assert KeptSums.read(b"") is None
    assert KeptSums.read(b'{"at": 1.0, "sums": {"total": 3}}') is None
    assert KeptSums.read(b"\xff") is None


def test_a_small_fleet_is_not_added_up(service: FleetService) -> None:
    async def waits() -> float:
        executor = StoreExecutor(lambda: SqliteStore(service.store.path), threads=False)  # type: ignore[attr-defined]
        fleet = LoadedFleet(executor, EngineConfig(1.0), Still(), HostLimits(), lambda *_: None)
        await fleet.look_around()
        executor.close()
        return summing.Summing(executor, fleet, Still(), HostLimits()).wait(NOW)

    assert asyncio.run(waits()) == float("inf")
    assert service.setting(SUMS) == b""
