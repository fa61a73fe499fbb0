"""A clock that is set at the worst moments: before, within and after each question to the store, while polls are out.

In virtual time, so that every moment is hit: the engine itself, with a wall clock that is set between two steps of it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualClock, in_virtual_time

T = TypeVar("T")

YEARS = 10 * 365.25 * 86_400.0
SOURCES, LONGEST, TAKES = 4, 10.0, 1.0
#: when the clock is set, in virtual seconds, and how long everything is watched after that
SET, AFTER = 15.0, 40.0


class SetClock(SystemClock):
    """A wall clock that can be set, beside a steady one that is virtual."""

    def __init__(self, virtual: VirtualClock) -> None:
        self.virtual, self.shift = virtual, 0.0
        super().__init__(lambda: virtual.now() + self.shift, virtual.now)

    async def sleep(self, seconds: float) -> None:
        await self.virtual.sleep(seconds)


class Setting(StoreExecutor[MemoryStore]):
    """Sets the clock around the `which`-th question to the store after a moment, and lets polls read it then."""

    def __init__(self, store: MemoryStore, clock: SetClock, by: float, which: int) -> None:
        super().__init__(lambda: store, threads=False)
        self._clock, self._by, self._which = clock, by, which

    async def do(self, work: Callable[[MemoryStore], T], *, long: bool = False) -> T:
        if self._clock.virtual.now() >= START + SET:
            self._which -= 1
            if self._which == 0:
                self._clock.shift += self._by
                # Others go on while the store is asked: polls that begin and end read the clock.
                await self._clock.sleep(TAKES)
        return await super().do(work, long=long)


def polls_with(by: float, which: int, spacing: float) -> dict[int, list[float]]:
    """When each source was polled, by the steady clock, if the clock is set by so much around that question."""
    polled: dict[int, list[float]] = defaultdict(list)
    store = MemoryStore()
    store.add([Listing(f"memory:{i}", kind="memory", longest=LONGEST, host="one") for i in range(SOURCES)], START)

    async def body(virtual: VirtualClock, stop: asyncio.Event) -> None:
        clock = SetClock(virtual)

        async def look(claim: Claim) -> Fetched:
            begun = clock.now()
            polled[claim.source].append(virtual.now() - START)
            await clock.sleep(TAKES)
            # Some look at the clock before they ask, and some after.
            return Fetched(Answer.CHANGED, begun if claim.source % 2 else clock.now(), body=b"%f" % virtual.now())

        limits = HostLimits(lambda host: Rules(spacing, 100))
        engine = Engine(Setting(store, clock, by, which), EngineConfig(1.0), clock, look, host_limits=limits)
        await engine.run(stop)

    in_virtual_time(body, START + SET + AFTER)
    return polled


@pytest.mark.parametrize("by", [YEARS, -YEARS, 60.0, -60.0])
def test_nobody_is_late_whenever_the_clock_is_set(by: float) -> None:
    for which in (1, 2, 3, 4, 5, 7, 9, 12):
        polled = polls_with(by, which, spacing=0.5 * (which % 2))
        for source in range(1, SOURCES + 1):
            at = [SET, *(t for t in polled[source] if t > SET), SET + AFTER]
            longest = max(b - a for a, b in pairwise(at))
            assert longest < 2.0 * LONGEST + 3 * TAKES, (which, source, at)
