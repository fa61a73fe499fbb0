"""A fleet of 10⁸ sources by simulation of its parts and shards: what a planner holds and takes, and a worker, for each.

The planner is the real one, over a store that makes parts up: so many of them are read as they would be, and stand for
all the others, each around a price of its own. A worker's cost for a shard is that of one made up in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import time
from dataclasses import replace
from typing import Any, cast

import numpy as np

from harness import Table, peak_memory
from unstale.core.learning.learner import Learner
from unstale.core.learning.part_sketch import price_of_parts
from unstale.core.learning.state import WIDTH
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import NOTHING
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.parts import PART, FleetInParts
from unstale.engine.store_executor import StoreExecutor
from unstale.ports import FleetColumns, SharedStore

#: seconds between polls of a source on average, beliefs that are made up, shards of a store, sources of a host
INTERVAL, FEW, SHARDS, OF_HOST = 10_000.0, 512, 1024, 100


class MadeUp:
    """A store whose parts are made up as they are asked for; keeps what a planner in parts asks of `SharedStore`."""

    def __init__(self, parts: int) -> None:
        rng, learner = np.random.default_rng(1), Learner(FEW, INTERVAL)
        rates = np.exp(rng.normal(0.0, 1.0, FEW)) / INTERVAL
        for n in range(1, 9):
            learner.observe(np.arange(FEW), np.full(FEW, n * INTERVAL), rng.random(FEW) < -np.expm1(-rates * INTERVAL))
        self._pool, self._parts = learner.columns.rows.copy(), parts

    def part(self, width: int, after: int, upto: int | None, most: int) -> FleetColumns:
        """The next sources, all full parts."""
        assert width == WIDTH
        return self.sources(after, most, time.time())

    def sources(self, after: int, count: int, now: float) -> FleetColumns:
        """So many sources after an id."""
        rng, ids, zero = np.random.default_rng(after), np.arange(after + 1, after + count + 1), np.zeros(count)
        last, cost = now - INTERVAL * rng.random(count), np.ones(count)
        hosts = tuple(f"host-{n}.example" for n in range(after // OF_HOST, (after + count - 1) // OF_HOST + 1))
        return FleetColumns(
            source=ids,
            weight=(1 + ids % 5).astype(np.float64),
            cost=cost,
            shortest=zero,
            longest=np.full(count, math.inf),
            host=(ids - after - 1) // OF_HOST,
            hosts=hosts,
            paused=zero.astype(bool),
            due=last + INTERVAL,
            last=last,
            found=last,
            failures=zero.astype(np.int64),
            beliefs=self._pool[ids * 7919 % FEW, :WIDTH],
            settings={},
            price=None,
            listed=cost,
        )

    def moved(self) -> int:
        """Nobody else writes."""
        return 0

    def close(self) -> None:
        """Nothing to give back."""


def _limits() -> HostLimits:
    return HostLimits(lambda host: Rules(0.0, 1000))


def planner(table: Table, really: int, wanted: list[int]) -> None:
    """Read so many parts, let them stand for more, and find the price of all."""
    store, began = MadeUp(really), peak_memory()
    executor = StoreExecutor(lambda: cast(SharedStore, store), threads=False)
    fleet, now = FleetInParts(executor, _limits()), time.time()
    config = EngineConfig(really * PART / INTERVAL)
    asyncio.run(fleet.read_next(config, NOTHING, 5000.0, now, 2000.0, INTERVAL))
    cpu = time.process_time()
    for _ in range(really):
        asyncio.run(fleet.read_next(config, NOTHING, 5000.0, now, 2000.0, INTERVAL))
    each = (time.process_time() - cpu) / really
    table.fact("a part of 50,000 sources: read and sketched, s of the processor", f"{each:.3f}", "-")
    table.fact("a part: MB at most, of all parts that were read", f"{(peak_memory() - began) / 1e6:.0f}", "500")
    sketches = [part.sketch for part in fleet.parts if part.sketch is not None]
    rng = np.random.default_rng(2)
    for count in wanted:
        many: list[Any] = []
        for n in range(count):
            one = sketches[n % len(sketches)]
            many.append(replace(one, prices=one.prices + 0.1 * rng.standard_normal(), spent=one.spent.copy()))
        whole = sum(float(one.until(now + 60.0)[len(one.prices) // 2]) for one in many)
        cpu = time.process_time()
        price = price_of_parts(many, whole, now + 60.0)
        took = time.process_time() - cpu
        size = sum(one.prices.nbytes + one.moments.nbytes + one.spent.nbytes + one.whole.nbytes for one in many)
        name = f"{count * PART:.0e} sources, {count:,} parts"
        table.fact(f"{name}: price, s of the processor", f"{took:.4f}", "5")
        table.fact(f"{name}: MB of sketches", f"{size / 1e6:.1f}", "500")
        table.fact(f"{name}: first round, h of one core", f"{each * count / 3600:.2f}", "-")
        table.fact(f"{name}: price over that of one part", f"{price / 5000.0:.4f}", "-")


def shard(table: Table, sources: int) -> None:
    """What a worker takes for one shard of a fleet: made ready, and held."""
    count, store, now = sources // SHARDS, MadeUp(1), time.time()
    standing, config = store.sources(0, count, now), EngineConfig(count / INTERVAL)
    config = replace(config, hosts=standing.hosts)
    # What is compiled is loaded by a few.
    few, _ = scheduler_of(store.sources(0, 1000, now), replace(config, hosts=standing.hosts[:10]), now, _limits())
    few.moves(now, now + 60.0)
    before, cpu = peak_memory(), time.process_time()
    scheduler, _ = scheduler_of(standing, config, now, _limits())
    scheduler.price = 5000.0
    ready = time.process_time() - cpu
    cpu = time.process_time()
    scheduler.moves(now, now + 60.0)
    follows = time.process_time() - cpu
    name = f"{sources:.0e} sources: a shard of {count:,}"
    table.fact(f"{name}: made ready by a worker, s of the processor", f"{ready:.3f}", "-")
    table.fact(f"{name}: follows a price, s of the processor", f"{follows:.3f}", "-")
    table.fact(f"{name}: MB more at most", f"{(peak_memory() - before) / 1e6:.0f}", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--really", type=int, default=20, help="parts that are made up and read")
    parser.add_argument("--parts", type=int, nargs="*", default=[200, 2_000, 20_000])
    parser.add_argument("--sources", type=int, default=100_000_000)
    options = parser.parse_args()
    table = Table("shards", "10⁸ sources by simulation: the planner's parts and a worker's shard")
    shard(table, options.sources)
    planner(table, options.really, options.parts)
    table.write()


if __name__ == "__main__":
    main()
