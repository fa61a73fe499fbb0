"""Two workers of one real PostgreSQL whose budget counts rows: together they keep it, and learn what polls take."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing

from support.patience import BUSY
from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.keeper.outcomes import Answer
from unstale.ports import COST_IN, Claim, Fetched, Listing

#: rows a second, and what polls of every other source take
BUDGET, CHEAP, DEAR, SOURCES = 2_000.0, 10, 50, 40


def test_workers_keep_a_budget_of_rows_together() -> None:
    polls: list[tuple[int, int]] = []

    async def look(claim: Claim) -> Fetched:
        rows = DEAR if claim.source % 2 else CHEAP
        polls.append((claim.source, rows))
        return Fetched(Answer.CHANGED, time.time(), b"%d" % claim.token, received=20 * rows, rows=rows)

    async def scene(address: str) -> None:
        stop, clock = asyncio.Event(), SystemClock()
        tasks, executors = [], []
        for owner in ("a", "b"):
            config = EngineConfig(BUDGET, owner=owner, first_rate=0.0, cost_in="rows", grace=2.0)
            executor, life, other = (StoreExecutor(lambda: PostgresCrew(address)) for _ in range(3))
            executors += [executor, life, other]
            planner = Planner(other, config, clock, HostLimits(lambda host: Rules(0.0, 1000)), lambda *_: None)
            tasks += [asyncio.create_task(Worker(executor, life, config, clock, look).run(stop))]
            tasks += [asyncio.create_task(planner.run(stop))]
        end = time.monotonic() + BUSY * 30.0
        while len(polls) < 10 * SOURCES and time.monotonic() < end and not any(task.done() for task in tasks):
            await asyncio.sleep(0.1)
        stop.set()
        await asyncio.gather(*tasks)
        for executor in executors:
            executor.close()

    with postgres() as server, closing(PostgresCrew(server.address())) as store:
        store.add([Listing(f"memory:{n}", kind="memory", host=str(n)) for n in range(SOURCES)], time.time())
        store.record([], settings={COST_IN: b"rows"})
        begun = time.time()
        asyncio.run(scene(server.address()))
        took = time.time() - begun
        used = sum(rows for _, rows in polls)
        assert len(polls) >= 10 * SOURCES
        # Never more than the budget and what the two may spend at once; and all that was used is counted.
        assert used <= BUDGET * took + 2 * BUDGET
        assert store.counters()["spent"] / 1e6 == used
        standing = store.fleet(1)
        learned = dict(zip(standing.source.tolist(), standing.cost.tolist(), strict=True))
        assert learned == {source: float(DEAR if source % 2 else CHEAP) for source in learned}
        # What is dear is polled less: the same weight and rate, five times the cost.
        dear = sum(rows == DEAR for _, rows in polls)
        assert dear < len(polls) - dear
