"""An engine in virtual time: the real loop, keeper and store, a clock that jumps, and sources that change by chance."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

import numpy as np

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing

START = 1_700_000_000.0


class VirtualClock:
    """Time passes only while everybody sleeps: then it jumps to the first who wakes."""

    def __init__(self, end: float, stop: asyncio.Event) -> None:
        self.time, self.end, self.stop = START, end, stop
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.time + seconds, self._count, woken))
        await woken

    async def run(self) -> None:
        """Let time pass; what is in flight, and what is to be recorded, goes first."""
        while True:
            for _ in range(12):
                await asyncio.sleep(0)
            if self._sleepers:
                at, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    self.time = max(self.time, at)
                    woken.set_result(None)
                    if self.time >= self.end:
                        self.stop.set()


class World:
    """Poisson sources; a poll tells the version that it saw."""

    def __init__(self, rates: np.ndarray, end: float, seed: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.rates = rates
        counts = rng.poisson(rates * (end - START))
        self.changes = [np.sort(rng.uniform(START, end, n)) for n in counts]
        self.polls: list[list[float]] = [[] for _ in rates]

    def look(self, i: int, at: float) -> bytes:
        self.polls[i].append(at)
        return str(np.searchsorted(self.changes[i], at, side="right")).encode()

    def freshness(self, start: float, end: float) -> float:
        """The mean share of time for which copies were fresh."""
        shares = []
        for changes, polls in zip(self.changes, self.polls, strict=True):
            times = np.array([t for t in polls if t < end])
            if not len(times):
                shares.append(0.0)
                continue
            nxt = np.append(times[1:], end)
            change = np.append(changes, np.inf)[np.searchsorted(changes, times, side="right")]
            fresh = np.clip(np.minimum(np.minimum(nxt, change), end) - np.maximum(times, start), 0.0, None)
            shares.append(fresh.sum() / (end - start))
        return float(np.mean(shares))


def run_virtually(
    world: World,
    budget: float,
    seconds: float,
    *,
    listing: Callable[[int], Listing] | None = None,
    answer: Callable[[Claim, float], Fetched | None] | None = None,
    store: MemoryStore | None = None,
    config: dict[str, object] | None = None,
    host_limits: HostLimits | None = None,
) -> tuple[Engine, MemoryStore]:
    """Run an engine over a world for so many virtual seconds."""
    store = store or MemoryStore()
    make = listing or (lambda i: Listing(f"memory:{i}", kind="memory"))
    if not len(store.fleet(1).source):
        store.add([make(i) for i in range(len(world.rates))], START)

    async def main() -> Engine:
        stop = asyncio.Event()
        clock = VirtualClock(START + seconds, stop)

        async def look(claim: Claim) -> Fetched:
            now = clock.now()
            special = answer(claim, now) if answer else None
            if special is not None:
                return special
            return Fetched(Answer.CHANGED, now, body=world.look(claim.source - 1, now), status=200)

        engine = Engine(
            StoreExecutor(lambda: store, threads=False),
            EngineConfig(budget, **(config or {})),
            clock,
            look,
            host_limits=host_limits or HostLimits(lambda host: HOME),
        )
        time = asyncio.create_task(clock.run())
        await engine.run(stop)
        time.cancel()
        return engine

    return asyncio.run(main()), store
