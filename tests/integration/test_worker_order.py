"""Workers claim what is worth most when more is due than they may poll, as an engine does that holds its fleet."""

from __future__ import annotations

import asyncio
from contextlib import closing

import numpy as np

from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.foremost import Foremost, foremost
from unstale.engine.host_limits import HostLimits
from unstale.engine.shared_learning import PublishedPlan, SharedLearning
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing

SOURCES, INTERVAL, NOW, PRICE = 80, 600.0, 1e6, 150.0


class Still(SystemClock):
    """Time stands still."""

    def now(self) -> float:
        return NOW


def overloaded(store: PostgresCrew) -> None:
    """Sources that change at various paces and weigh more or less, all of them overdue by more or less."""
    rng, learner = np.random.default_rng(3), Learner(SOURCES, INTERVAL)
    rates = rng.uniform(0.05, 4.0, SOURCES) / INTERVAL
    for n in range(1, 13):
        learner.observe(
            np.arange(SOURCES), np.full(SOURCES, n * INTERVAL), rng.random(SOURCES) < -np.expm1(-rates * INTERVAL)
        )
    weights = rng.choice([1.0, 10.0], SOURCES)
    store.add([Listing(f"s{n}", weight=float(weights[n])) for n in range(SOURCES)], 0.0)
    entries = []
    for claim in store.claim(1.0, SOURCES, lease=60.0, owner="w"):
        n = claim.source - 1
        polled, late = NOW - float(rng.uniform(0.5, 3.0)) * INTERVAL, float(rng.uniform(0.0, 2.0)) * INTERVAL
        entries.append(Entry(claim, Answer.UNCHANGED, polled, NOW - late, learner.columns.rows[n].tobytes()))
    assert all(store.record(entries))


def test_who_is_claimed_first_is_whom_the_brain_of_an_engine_names() -> None:
    config = EngineConfig(SOURCES / INTERVAL)
    with postgres() as server, closing(PostgresCrew(server.address())) as store:
        overloaded(store)
        engine, _ = scheduler_of(store.fleet(WIDTH), config, NOW, HostLimits())
        engine.price = PRICE
        best = engine.ids[foremost(engine, NOW, 20)].tolist()
        assert best != [source for source, _ in store.waiting(NOW)[:20]]

        async def choose() -> tuple[list[int] | None, list[int], list[int] | None]:
            executor = StoreExecutor(lambda: store, threads=False)
            learning = SharedLearning(executor, config, Still(), HostLimits(), lambda cost: None)
            learning.plan = PublishedPlan(INTERVAL, PRICE, 1.0)
            line = Foremost(executor, learning, Still())
            first = await line.among(10)
            claims = [claim.source for claim in store.claim(NOW, 10, lease=60.0, owner="w", among=first)]
            line.claimed(first, claims)
            # Who may claim all that is due weighs nobody.
            return first, claims, await Foremost(executor, learning, Still()).among(SOURCES)

        first, claims, nobody = asyncio.run(choose())
        assert first == best
        assert set(claims) <= set(best)
        assert len(claims) == 10
        assert nobody is None
