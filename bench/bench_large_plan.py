"""A fleet on PostgreSQL that is too large for one table: adding it, its plan in parts, claims and outcomes of a worker.

With `--add` sources are added as a list of them is, a hundred thousand to a transaction. Their beliefs are laid out in
the tables directly, as they would be after some rounds of polls.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection

import numpy as np
import psycopg

from bench_postgres import backend_seconds, server
from harness import Table, peak_memory
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.outcomes import PollOutcome, entries_of
from unstale.engine.plan_in_parts import PlanInParts
from unstale.engine.pricing import Pricer, next_plan
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import packed, standing_of
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Fetched, Listing

#: seconds between polls of a source on average; outcomes between two prices
INTERVAL, OUTCOMES = 10_000.0, 500
FEW = 512
#: what docs/howto/deploy.md asks of the server of a large fleet, on a machine with 8 GB or more
SETTINGS = {"shared_buffers": "2GB", "max_wal_size": "8GB", "checkpoint_timeout": "15min", "wal_compression": "on"}
#: sources that are added in a transaction; claims that are made at once
CHUNK, SOME = 100_000, 20


def add(dsn: str, sources: int, pipe: Connection) -> None:
    """Add sources as a list of them is added: seconds by the clock, of the processor here, and memory."""
    store, hosts = PostgresCrew(dsn), max(sources // 100, 1)
    begun, cpu = time.perf_counter(), time.process_time()
    for first in range(1, sources + 1, CHUNK):
        store.add(
            [
                Listing(f"https://host-{1 + n % hosts}.example/{n}", weight=1.0 + n % 5)
                for n in range(first, min(first + CHUNK, sources + 1))
            ],
            0.0,
        )
    pipe.send(
        {
            "s": time.perf_counter() - begun,
            "s of the processor": time.process_time() - cpu,
            "s of the processor, the server's": backend_seconds(store),
            "MB at most": peak_memory() / 1e6,
        }
    )
    store.close()


def fill(dsn: str, sources: int, *, added: bool) -> None:
    """Sources at hosts of a hundred each, polled within the last interval, with the beliefs of a few."""
    rng, learner = np.random.default_rng(1), Learner(FEW, INTERVAL)
    rates = np.exp(rng.normal(0.0, 1.0, FEW)) / INTERVAL
    for n in range(1, 9):
        learner.observe(np.arange(FEW), np.full(FEW, n * INTERVAL), rng.random(FEW) < -np.expm1(-rates * INTERVAL))
    PostgresCrew(dsn).close()
    now, hosts = time.time(), max(sources // 100, 1)
    with psycopg.connect(dsn) as db:
        db.execute("SET search_path = unstale")
        db.execute("CREATE TEMP TABLE pool(n int PRIMARY KEY, belief bytea)")
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO pool VALUES (%s, %s)", [(n, learner.columns.rows[n].tobytes()) for n in range(FEW)]
            )
        statements = [
            "CREATE TEMP TABLE sites AS SELECT source, site FROM schedule",
            "TRUNCATE beliefs, schedule",
            "INSERT INTO beliefs SELECT id, %(now)s - %(every)s * random(), 0, 0, 0, 0, belief "
            f"FROM sources JOIN pool ON pool.n = (id * 7919::bigint) %% {FEW}",
            "INSERT INTO schedule(source, site, awake, due) SELECT source, site, true, last + %(every)s "
            "FROM beliefs JOIN sites USING (source)",
        ]
        if not added:
            db.execute("INSERT INTO hosts(name) SELECT 'host-' || n FROM generate_series(1, %s) n", (hosts,))
            statements[:1] = [
                "INSERT INTO sources SELECT n, decode(md5(n::text), 'hex'), "
                "'https://host-' || 1 + n %% %(hosts)s || '/' || n, 'http', 1 + n %% 5, 1, 1 + n %% %(hosts)s, 0, "
                "'infinity', NULL, false, 0 FROM generate_series(1, %(sources)s) n",
                "CREATE TEMP TABLE sites AS SELECT id AS source, host AS site FROM sources",
                "SELECT setval('ids', %(sources)s)",
            ]
        for statement in statements:
            db.execute(statement.encode(), {"sources": sources, "hosts": hosts, "now": now, "every": INTERVAL})
        db.commit()
        db.autocommit = True
        db.execute("VACUUM ANALYZE")


def claims(dsn: str, sources: int, pipe: Connection) -> None:
    """Claims and outcomes of some sources at a time, as a worker makes them."""
    store, rng, belief = PostgresCrew(dsn), np.random.default_rng(2), bytes(8 * WIDTH)
    store.beat("bench", 0.0, 0.0, 1.0, {}, None)
    with psycopg.connect(dsn) as db:
        db.execute("UPDATE unstale.schedule SET due = 0 WHERE source %% %s = 0", (max(sources // 50_000, 1),))
    due = np.arange(1, sources + 1)[max(sources // 50_000, 1) - 1 :: max(sources // 50_000, 1)]
    due, took, recorded = rng.permutation(due), [], []
    cpu, used = time.process_time(), backend_seconds(store)
    for first in range(0, min(len(due), 40_000) - SOME, SOME):
        begun = time.perf_counter()
        held = store.take(due[first : first + SOME].tolist(), lease=600.0, owner="bench")
        took.append(time.perf_counter() - begun)
        now, begun = time.time(), time.perf_counter()
        assert all(store.record([Entry(one, Answer.UNCHANGED, now, now + INTERVAL, belief) for one in held]))
        recorded.append(time.perf_counter() - begun)
    pipe.send(
        {
            f"{name} of {SOME}, ms, {share:.0%}": 1e3 * float(np.quantile(times[20:], share))
            for name, times in (("claims", took), ("outcomes", recorded))
            for share in (0.5, 0.99)
        }
        | {
            "a claim and its outcome, µs of the processor": 1e6 * (time.process_time() - cpu) / (SOME * len(took)),
            "the same, the server's": 1e6 * (backend_seconds(store) - used) / (SOME * len(took)),
        }
    )
    store.close()


def in_parts(dsn: str, sources: int, pipe: Connection) -> None:
    """Plan, hear of outcomes, plan again: seconds, of the processor too, and the memory that it took."""

    async def play() -> dict[str, float]:
        executor, clock, config = (
            StoreExecutor(lambda: PostgresCrew(dsn)),
            SystemClock(),
            EngineConfig(sources / INTERVAL),
        )
        store, found = executor.store, dict[str, float]()
        large = PlanInParts(executor, _limits(), Pricer(executor), clock)
        started, cpu, wall = peak_memory(), time.process_time(), time.perf_counter()
        assert await large.plans(1)
        about = store.part(WIDTH, -1, 0, 1)
        plan = await large.plan(config, about, [], clock.now(), 0.0)
        store.publish(plan.settings, None, [])
        about = store.part(WIDTH, -1, 0, 1)
        found["first round, s"] = time.perf_counter() - wall
        found["first round, s of the processor"] = time.process_time() - cpu
        claims = store.claim(clock.now(), OUTCOMES, lease=600.0, owner="bench")
        few = replace(config, budget=OUTCOMES / INTERVAL)
        scheduler, _ = scheduler_of(store.columns_of([c.source for c in claims], WIDTH), few, clock.now(), _limits())
        rows = np.arange(len(scheduler.ids))
        before = standing_of(scheduler, rows)
        batch = [PollOutcome(c, Answer.UNCHANGED, Fetched(Answer.UNCHANGED, clock.now()), None) for c in claims]
        entries, *_ = entries_of(scheduler, batch)
        assert all(store.record(entries))
        tally = packed(scheduler.ids, clock.now(), before, standing_of(scheduler, rows))
        cpu, wall = time.process_time(), time.perf_counter()
        store.tally(tally)
        large._read_at = np.inf
        await large.plan(config, about, [], clock.now(), 0.0)
        found["price after outcomes, s"] = time.perf_counter() - wall
        found["price after outcomes, s of the processor"] = time.process_time() - cpu
        large._read_at = -np.inf
        cpu, wall = time.process_time(), time.perf_counter()
        await large.plan(config, about, [], clock.now(), 0.0)
        found["and with a part read anew, s"] = time.perf_counter() - wall
        found["and with a part read anew, s of the processor"] = time.process_time() - cpu
        found["parts"], found["price"] = len(large.parts.parts), large._price
        found["MB at the start"], found["MB at most"] = started / 1e6, peak_memory() / 1e6
        executor.close()
        return found

    pipe.send(asyncio.run(play()))


def whole(dsn: str, sources: int, pipe: Connection) -> None:
    """The same fleet read at once."""
    config, now = EngineConfig(sources / INTERVAL), time.time()
    cpu, wall, store = time.process_time(), time.perf_counter(), PostgresCrew(dsn)
    scheduler, _ = scheduler_of(store.fleet(WIDTH), config, now, _limits())
    until = next_plan(scheduler, config, now)
    price = scheduler.plan(config.rate * (until - now), now, until)
    scheduler.moves(now, 2.0 * until - now)
    store.close()
    pipe.send(
        {
            "read and planned, s": time.perf_counter() - wall,
            "read and planned, s of the processor": time.process_time() - cpu,
            "price": price,
            "MB at most": peak_memory() / 1e6,
        }
    )


def _limits() -> HostLimits:
    return HostLimits(lambda host: Rules(0.0, 1000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=1_000_000)
    parser.add_argument("--whole", action="store_true", help="plan the fleet at once too")
    parser.add_argument("--add", action="store_true", help="add the sources as a list is added")
    options = parser.parse_args()
    table = Table("large_plan", f"{options.sources:,} sources in PostgreSQL, planned in parts")
    bars = {
        "in parts: MB at most": "500",
        "in parts: price after outcomes, s": "5",
        "added: s": "600 for 10,000,000",
        f"polled: claims of {SOME}, ms, 99%": "20",
    }
    with server(SETTINGS) as dsn:

        def told(name: str, work: Callable[[str, int, Connection], None]) -> None:
            ours, theirs = multiprocessing.get_context("spawn").Pipe()
            job = multiprocessing.get_context("spawn").Process(target=work, args=(dsn, options.sources, theirs))
            job.start()
            for fact, value in ours.recv().items():
                table.fact(f"{name}: {fact}", f"{value:.4g}", bars.get(f"{name}: {fact}", "-"))
            job.join()
            table.fact(f"{name}: load then", f"{os.getloadavg()[0]:.1f}", "-")

        if options.add:
            told("added", add)
        fill(dsn, options.sources, added=options.add)
        with psycopg.connect(dsn) as db:
            row = db.execute("SELECT pg_database_size(current_database()) / 1e9").fetchone()
        table.fact("GB of the database", f"{row[0] if row else 0:.1f}", "-")
        told("polled", claims)
        told("in parts", in_parts)
        if options.whole:
            told("at once", whole)
    table.write()


if __name__ == "__main__":
    main()
