"""Virtual time for whatever is asynchronous: a clock that jumps, and sources that change meanwhile.

It knows nothing of what runs in it: an engine is handed in, with its store and everything, as a function of the clock.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from unstale.core.checks import Floats
from unstale.sim.statistics import Estimate, batch_means

T = TypeVar("T")

#: when virtual time begins, in seconds since the epoch
START = 1_700_000_000.0
#: turns of the event loop until everything that can go on without time has gone on
_TURNS = 12
#: stretches of time whose spread tells how far an average can be trusted
_STRETCHES = 16


class VirtualClock:
    """Time passes only while everybody sleeps: then it jumps to the first who wakes. `stop` is set at the end."""

    def __init__(self, end: float, stop: asyncio.Event, start: float = START) -> None:
        self.time, self.end, self.stop = start, end, stop
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Let so many virtual seconds pass."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.time + seconds, self._count, woken))
        await woken

    async def run(self) -> None:
        """Let time pass; what is in flight, and what is to be recorded, goes first."""
        while True:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            if self._sleepers:
                at, _, woken = heapq.heappop(self._sleepers)
                if not woken.done():
                    self.time = max(self.time, at)
                    woken.set_result(None)
                    if self.time >= self.end:
                        self.stop.set()


def in_virtual_time(body: Callable[[VirtualClock, asyncio.Event], Awaitable[T]], end: float, start: float = START) -> T:
    """What `body` comes to, in a time that begins at `start`; it is asked to stop once `end` is reached.

    >>> async def body(clock, stop):
    ...     while not stop.is_set():
    ...         await clock.sleep(3600.0)
    ...     return clock.now() - START
    >>> in_virtual_time(body, START + 10 * 86_400.0)
    864000.0
    """

    async def main() -> T:
        stop = asyncio.Event()
        clock = VirtualClock(end, stop, start)
        passing = asyncio.create_task(clock.run())
        try:
            return await body(clock, stop)
        finally:
            passing.cancel()

    return asyncio.run(main())


class VirtualWorld:
    """Sources that change by chance at given rates per second, or at given times; a poll tells the version it saw."""

    def __init__(
        self,
        rates: Floats,
        end: float,
        seed: int = 1,
        changes: Sequence[Floats] | None = None,
        start: float = START,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.rates = rates
        if changes is None:
            counts = rng.poisson(rates * (end - start))
            changes = [np.sort(rng.uniform(start, end, n)) for n in counts]
        self.changes = list(changes)
        self.polls: list[list[float]] = [[] for _ in rates]

    def look(self, i: int, at: float) -> bytes:
        """A poll of source i: its content at that time."""
        self.polls[i].append(at)
        return str(np.searchsorted(self.changes[i], at, side="right")).encode()

    def freshness(self, start: float, end: float) -> float:
        """The mean share of time for which copies were fresh."""
        return float(np.mean(self.shares(start, end)[0]))

    def measured(self, start: float, end: float, weight: Floats) -> tuple[Estimate, Estimate]:
        """Freshness and mean age of the fleet by weight, with errors from sixteen equal stretches of time."""
        edges = np.linspace(start, end, _STRETCHES + 1)
        each = [self.shares(a, b) for a, b in pairwise(edges.tolist())]
        fresh, age = (np.array([np.average(one[k], weights=weight) for one in each]) for k in (0, 1))
        return batch_means(fresh), batch_means(age)

    def shares(self, start: float, end: float) -> tuple[Floats, Floats]:
        """Of each source the share of time in which its copy was fresh, and its mean age; 0 and inf without a copy."""
        fresh, age = np.zeros(len(self.polls)), np.full(len(self.polls), np.inf)
        for i, (changes, polls) in enumerate(zip(self.changes, self.polls, strict=True)):
            times = np.array([t for t in polls if t < end])
            if not len(times):
                continue
            following = np.append(times[1:], end)
            change = np.append(changes, np.inf)[np.searchsorted(changes, times, side="right")]
            good = np.clip(np.minimum(np.minimum(following, change), end) - np.maximum(times, start), 0.0, None)
            fresh[i] = good.sum() / (end - start)
            begin, stale = np.maximum(change, start), np.minimum(following, end)
            late = stale > begin
            begin, stale, change = begin[late], stale[late], change[late]
            age[i] = ((stale - begin) * (0.5 * (stale + begin) - change)).sum() / (end - start)
        return fresh, age
