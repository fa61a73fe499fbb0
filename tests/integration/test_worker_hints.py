"""What others make due is polled by the worker that holds it, within a second: it is told which sources they are."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import closing

from click.testing import CliRunner

from support.patience import BUSY
from support.postgres import Postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_link import HASTENED
from unstale.adapters.postgres_store import PostgresStore
from unstale.cli.poll import poll
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.service.hints import hasten, push

DAY, SOURCES = 86_400.0, 6


def pushed(store: PostgresStore, sources: list[int], now: float) -> None:
    push(store, sources, "hint", now)


def test_a_hint_is_polled_at_once_by_whoever_holds_its_source(server: Postgres, store: PostgresCrew) -> None:
    store.add([Listing(f"memory:{n}", kind="memory", host=str(n), shortest=DAY) for n in range(SOURCES)], time.time())
    polls: list[int] = []

    async def look(claim: Claim) -> Fetched:
        polls.append(claim.source)
        return Fetched(Answer.CHANGED, time.time(), b"%d" % claim.token)

    async def scene() -> None:
        stop, planned, clock = asyncio.Event(), asyncio.Event(), SystemClock()
        config = EngineConfig(20.0, owner="a", first_rate=100.0, grace=2.0)
        executors = [StoreExecutor(lambda: PostgresCrew(server.address())) for _ in range(3)]
        planner = Planner(executors[2], config, clock, HostLimits(lambda host: Rules(0.0, 1000)), lambda *_: None)
        worker = Worker(executors[0], executors[1], config, clock, look)
        tasks = [asyncio.create_task(worker.run(stop))]
        planning = asyncio.create_task(planner.run(planned))

        async def until(what: Callable[[], bool], why: str, seconds: float = 60.0) -> None:
            end = time.monotonic() + BUSY * seconds
            while not what():
                assert time.monotonic() < end, why
                assert not any(task.done() for task in tasks)
                await asyncio.sleep(0.05)

        try:
            await until(lambda: sorted(polls) == list(range(1, SOURCES + 1)), "everybody is polled once, and not again")
            await until(lambda: store.counters().get("recorded", 0) == SOURCES, "all is recorded")
            # Nor does anybody publish a price, which everybody would hear.
            planned.set()
            await planning
            await asyncio.sleep(1.5)
            with closing(PostgresStore(server.address())) as other:
                for n, say in enumerate((hasten, pushed), 1):
                    say(other, [n], other.server_time())
                    await until(lambda n=n: polls[SOURCES:].count(n) == 1, f"{n} is polled again", 5.0)
            assert sorted(polls[SOURCES:]) == [1, 2]
        finally:
            stop.set()
            planned.set()
            await asyncio.gather(*tasks, planning)
            for executor in executors:
                executor.close()

    asyncio.run(scene())


def test_who_shares_a_store_is_told_which_sources_others_have_made_due(server: Postgres, store: PostgresCrew) -> None:
    ids = store.add([Listing(f"s{n}") for n in range(HASTENED + 10)], 0.0)
    soon = store.server_time()
    store.set_due(ids, [soon + DAY] * len(ids))
    # Whoever begins to listen may have missed something.
    store.moved()
    assert store.hastened() is None
    assert store.hastened() == []

    said = store.moved()

    def heard(notices: int = 1) -> list[int] | None:
        nonlocal said
        said += notices
        end = time.monotonic() + BUSY * 10.0
        while store.moved() != said:
            assert time.monotonic() < end, "it was not heard"
            time.sleep(0.01)
        return store.hastened()

    with closing(PostgresStore(server.address())) as other, closing(PostgresCrew(server.address())) as holder:
        hasten(other, ids[:3], soon)
        assert heard() == ids[:3]
        # A price moves due times too, and who holds the sources knows; of what is due later nobody need be told.
        holder.set_due(ids[9:11], [soon] * 2, was=[soon + DAY] * 2)
        other.set_due(ids[3:5], [soon + 60.0] * 2, was=[soon + DAY] * 2)
        store.set_due(ids[5:7], [soon] * 2)
        other.set_due(ids[7:9], [soon] * 2, was=[soon + DAY, 1.0])
        assert heard() == ids[7:8]
        # Whom a worker makes due whatever they were may be another's.
        holder.set_due(ids[9:11], [soon] * 2)
        assert heard() == ids[9:11]
        other.add([Listing("s0")], 1.0, duplicates="replace")
        assert heard() == []
        # Who was made due before is told with the next ones; of too many it is said that there were some.
        other.set_due(ids[:2], [1.0] * 2)
        other.set_due(ids[2:3], [1.0])
        assert heard(2) == ids[:3]
        other.set_due(ids, [2.0] * len(ids))
        assert heard() is None
        other.set_due(ids[:1], [3.0])
        assert heard() == ids[:1]
    # What was said while nobody listened may have been about anybody.
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unstale'")
    store.server_time()
    for _ in range(2):
        store.moved()
    assert store.hastened() is None


def test_who_asks_for_a_poll_is_told_at_once_that_nobody_polls(server: Postgres, store: PostgresCrew) -> None:
    store.add([Listing("https://a.example/")], 0.0)
    answer = CliRunner().invoke(poll, ["1", "--wait", "1h", "--store", server.address()])
    assert answer.exit_code == 1
    assert "not polled yet, nothing polls from this store: start" in answer.output
    # It is due all the same.
    assert store.heads([1])[0].due <= store.server_time()
