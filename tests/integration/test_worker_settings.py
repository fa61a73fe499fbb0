"""Two workers of one real PostgreSQL go by settings that are said while they run, and then by their file's again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing

from support.patience import BUSY
from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.said_settings import SAID, SettingSaid, kept_words
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing

#: polls a second, and sources: those with even numbers never change, and something is promised of them
BUDGET, SOURCES, WITHIN, EVEN = 20.0, 40, 2.0, range(2, 41, 2)


def words(**said: str) -> bytes:
    return kept_words({name: SettingSaid(value, "api", 1.0, "") for name, value in said.items()})


def test_all_workers_follow_what_is_said_within_seconds() -> None:
    polls: list[tuple[float, int]] = []

    async def look(claim: Claim) -> Fetched:
        polls.append((time.monotonic(), claim.source))
        first = claim.etag is None
        answer = Answer.CHANGED if first or claim.source % 2 else Answer.UNCHANGED
        return Fetched(answer, time.time(), b"%d" % claim.token, etag="1")

    async def scene(address: str, store: PostgresCrew) -> None:
        stop, clock = asyncio.Event(), SystemClock()
        workers: list[Worker] = []
        tasks, executors = [], []
        for owner in ("a", "b"):
            config = EngineConfig(BUDGET, owner=owner, first_rate=100.0, grace=2.0)
            executor, life, other = (StoreExecutor(lambda: PostgresCrew(address)) for _ in range(3))
            executors += [executor, life, other]
            planner = Planner(other, config, clock, HostLimits(lambda host: Rules(0.0, 1000)), lambda *_: None)
            workers.append(Worker(executor, life, config, clock, look))
            tasks += [asyncio.create_task(workers[-1].run(stop)), asyncio.create_task(planner.run(stop))]

        async def until(what: Callable[[], bool], why: str) -> None:
            end = time.monotonic() + BUSY * 60.0
            while not what():
                assert time.monotonic() < end, why
                assert not any(task.done() for task in tasks)
                await asyncio.sleep(0.1)

        def since(begin: float, source: int | None = None) -> int:
            return sum(at > begin and source in (None, polled) for at, polled in polls)

        def rare() -> bool:
            begin = time.monotonic() - 4.0 * WITHIN
            return sum(since(begin, source) for source in EVEN) < len(EVEN)

        def kept() -> bool:
            begin = time.monotonic() - 4.0 * WITHIN
            return all(since(begin, source) >= 3 for source in EVEN)

        try:
            await until(lambda: len({source for _, source in polls}) == SOURCES, "everybody is polled once")
            # Hours in which it is not now: nobody is polled, by any of them.
            hour = int(time.time() // 3600 + 5) % 24
            store.record([], settings={SAID: words(windows=f"{hour:02}:00-{hour:02}:30")})
            await until(lambda: not since(time.monotonic() - 3.0), "polls end")
            quiet = time.monotonic()
            await asyncio.sleep(3.0)
            assert since(quiet) == 0
            store.record([], settings={SAID: b""})
            await until(lambda: since(quiet) > 3 * SOURCES and rare(), "who never changes is polled rarely")
            # A promise alone, which no plan of hours or budget has anything to do with.
            store.record([], settings={SAID: words(contracts=f"even: {WITHIN:g}s")})
            await until(kept, "the promise is kept")
            assert all(worker._fleet.config.contracts for worker in workers)
            store.record([], settings={SAID: b""})
            await until(lambda: not any(worker._fleet.config.contracts for worker in workers), "they hear of it")
            await until(rare, "what is promised no more is not kept")
            # Who changes all the time is polled often, until its host is spaced, at whichever worker that is.
            await until(lambda: since(time.monotonic() - 11.0, 1) > 4, "a host without spacing is polled often")
            store.record([], settings={SAID: words(hosts="0: 5s")})
            await until(
                lambda: since(time.monotonic() - 11.0, 1) in (1, 2, 3), "a host is polled as rarely as it is said"
            )
        finally:
            stop.set()
            await asyncio.gather(*tasks)
            for executor in executors:
                executor.close()

    with postgres() as server, closing(PostgresCrew(server.address())) as store:
        store.add(
            [
                Listing(f"memory:{n}", kind="memory", host=str(n), options={} if n % 2 == 0 else {"tags": ["even"]})
                for n in range(SOURCES)
            ],
            time.time(),
        )
        asyncio.run(scene(server.address(), store))
