"""A fleet that is planned in parts has the price of the whole, and sketches go by what workers tell of their polls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import NOTHING
from unstale.engine.held_fleet import HeldFleet
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import PollOutcome, entries_of
from unstale.engine.parts import FleetInParts
from unstale.engine.plan_in_parts import PlanInParts
from unstale.engine.pricing import Pricer, next_plan
from unstale.engine.published_plan import PublishedPlan
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import unpacked
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Fetched, Grant, Listing

SOURCES, INTERVAL, NOW = 4_000, 6_000.0, 1e6
CONFIG = EngineConfig(SOURCES / INTERVAL)


class Told(SystemClock):
    """Time is what it is said to be."""

    at = NOW

    def now(self) -> float:
        return self.at


@pytest.fixture
def store() -> Iterator[PostgresCrew]:
    """Sources that were polled a while ago, change at various paces and weigh more or less; a few fail."""
    rng, learner = np.random.default_rng(4), Learner(SOURCES, INTERVAL)
    rates, rows = np.exp(rng.normal(0.0, 1.0, SOURCES)) / INTERVAL, np.arange(SOURCES)
    for n in range(1, 8):
        learner.observe(rows, np.full(SOURCES, n * INTERVAL), rng.random(SOURCES) < -np.expm1(-rates * INTERVAL))
    polled, fails = NOW - rng.uniform(0.0, 1.5, SOURCES) * INTERVAL, rng.random(SOURCES) < 0.02
    with postgres() as server, closing(PostgresCrew(server.address(), own_time=False)) as store:
        store.add([Listing(f"s{n}", weight=float(1 + n % 7), cost=float(1 + n % 2)) for n in range(SOURCES)], 0.0)
        claims = sorted(store.claim(1.0, SOURCES, lease=60.0, owner="w"), key=lambda claim: claim.source)
        entries = [
            Entry(
                claim,
                Answer.FAILED if fails[n] else Answer.UNCHANGED,
                float(polled[n]),
                float(polled[n] + INTERVAL),
                learner.columns.rows[n].tobytes(),
            )
            for n, claim in enumerate(claims)
        ]
        assert all(store.record(entries))
        yield store


def test_the_price_of_the_parts_is_that_of_the_whole(store: PostgresCrew) -> None:
    whole, _ = scheduler_of(store.fleet(WIDTH), CONFIG, NOW, HostLimits())
    until = next_plan(whole, CONFIG, NOW)
    price = whole.plan(CONFIG.rate * (until - NOW), NOW, until)

    async def planned() -> tuple[list[float], int]:
        executor, clock = StoreExecutor(lambda: store, threads=False), Told()
        large = PlanInParts(executor, HostLimits(), Pricer(executor), clock, large=100, size=900)
        assert await large.plans(1)
        about = store.part(WIDTH, -1, 0, 1)
        found = []
        # The first round looks around a guess, the next ones around what came of it.
        for _ in range(6):
            clock.at += 1e-6
            plan = await large.plan(CONFIG, about, [], clock.at, 0.0)
            found.append(plan.sample.price)
        return found, len(large.parts.parts)

    prices, parts = asyncio.run(planned())
    assert parts == 5
    assert prices[0] == pytest.approx(price, rel=0.05)
    assert prices[-1] == pytest.approx(price, rel=0.01)


def test_sketches_that_heard_of_polls_are_those_of_the_fleet_as_it_stands(store: PostgresCrew) -> None:
    executor, clock = StoreExecutor(lambda: store, threads=False), Told()
    plan = PublishedPlan(1.5 * INTERVAL, 2_000.0, 2.0, in_parts=True)

    async def sketched(parts: FleetInParts) -> None:
        while not parts.known:
            await parts.read_next(CONFIG, NOTHING, plan.price, NOW, 500.0, plan.scale)

    async def polls() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts, anew = FleetInParts(executor, HostLimits(), 900), FleetInParts(executor, HostLimits(), 900)
        await sketched(parts)
        before = np.array([part.sketch.spent for part in parts.parts if part.sketch is not None])
        clock.at = NOW + 1.0
        store.beat("w", 0.0, 0.0, 1.0, {}, None)
        learning = HeldFleet(executor, replace(CONFIG, owner="w"), clock, HeldHostLimits(), lambda name, facts: None)
        learning.hear(plan, Grant(1.0), store.hold("w").epochs, b"")
        await learning.relearn()
        claims = store.claim(clock.at, 300, lease=60.0, owner="w")
        answers = [Answer.CHANGED, Answer.UNCHANGED, Answer.FAILED]
        batch = [
            PollOutcome(claim, answers[n % 3], Fetched(answers[n % 3], NOW - 1.0), None)
            for n, claim in enumerate(claims)
        ]
        scheduler = await learning.scheduler_for([claim.source for claim in claims])
        entries, *_ = entries_of(scheduler, batch)
        assert all(store.record(entries))
        learning.recorded([claim.source for claim in claims], 0, 0.0)
        store.tally(learning.polls.take())
        parts.take_up(unpacked(store.tallies()))
        assert store.tallies() == []
        await sketched(anew)
        heard, read = (
            np.array([part.sketch.spent for part in one.parts if part.sketch is not None]) for one in (parts, anew)
        )
        return before, heard, read

    before, heard, read = asyncio.run(polls())
    assert heard == pytest.approx(read, rel=1e-9, abs=1e-6)
    # Three hundred polls that were due are no longer.
    assert (before[:, :, 0].sum() - read[:, :, 0].sum()) > 300
