"""Recording: outcomes go to the store in batches, in the order they came, and none is lost on the way.

Rules of this file:
1. Outcomes are recorded in batches by one task. While a batch is on its way to the disk the next one gathers.
2. A store that fails loses no outcome: they are kept and recorded once it is back.
3. Who learned from a batch that the store may not have reads everything anew before it learns again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from unstale.engine.clock import jumps_of
from unstale.engine.outcomes import Counters, PollOutcome, entries_of
from unstale.engine.store_executor import StoreExecutor, patience
from unstale.errors import StoreError, StoreLostError
from unstale.keeper.scheduler import Scheduler
from unstale.logs import Tell
from unstale.ports import Clock, Store

#: most outcomes recorded at once, and sources claimed at once
BATCH = 500
#: seconds for which a batch waits to be full while more are about to come, and between two claims at least
GATHER, BEAT = 0.2, 0.02


class Learning(Protocol):
    """Who learns from outcomes: what an engine, or a worker among others, knows of the sources that it polls."""

    @property
    def lock(self) -> asyncio.Lock:
        """Held while a batch is learned and recorded."""

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """The scheduler that learns what polls of these sources found."""

    async def relearn(self) -> None:
        """Forget what was learned and may not be in the store."""

    def recorded(self, sources: Sequence[int], late: int, beyond: float) -> None:
        """Their outcomes are in the store, but for so many whose claims were no longer held.

        `beyond` is what the polls have used besides what they were expected to.
        """

    @property
    def unit(self) -> str:
        """What the budget counts."""

    @property
    def first_rate(self) -> float:
        """First polls per second that have an allowance of their own."""


class Recorder:
    """Gathers outcomes and records them; `busy` says whether more are about to come."""

    def __init__(
        self,
        executor: StoreExecutor[Store],
        learning: Learning,
        clock: Clock,
        tell: Tell,
        busy: Callable[[], bool],
    ) -> None:
        self.counters = Counters()
        #: what is not recorded yet
        self.done: list[PollOutcome] = []
        self._executor, self._learning, self._clock, self._tell, self._busy = executor, learning, clock, tell, busy
        self._jumps = jumps_of(clock)
        #: hears the outcomes that are in the store now
        self.heard: Callable[[Sequence[PollOutcome]], Awaitable[None]] | None = None
        self._ready, self._full = asyncio.Event(), asyncio.Event()
        #: whether the scheduler has learned from outcomes that the store may not have
        self._unlearned = False

    def add(self, outcome: PollOutcome) -> None:
        """Record this with the next batch."""
        if jumped := self._jumps():
            outcome = replace(outcome, jumped=jumped)
        self.done.append(outcome)
        self._ready.set()
        if len(self.done) >= BATCH:
            self._full.set()

    async def run(self) -> None:
        """Record for ever."""
        failures = 0
        while True:
            await self._ready.wait()
            if len(self.done) < BATCH and self._busy():
                # More will have come in a moment, and go to the disk together: a batch costs as much as 50 polls.
                await self._gather()
            batch = self.done[:BATCH]
            if not batch:
                self._ready.clear()
                continue
            try:
                if failures:
                    await self._executor.reopen()
                if self._unlearned:
                    await self._learning.relearn()
                    self._unlearned = False
                async with self._learning.lock:
                    self._unlearned = True
                    await self._record(batch)
                    self._unlearned = False
                failures = 0
            except StoreLostError as error:
                self._tell("store_lost", {"reason": str(error)})
                raise
            except StoreError as error:
                failures += 1
                self._tell("store_failed", {"reason": str(error)})
                await self._clock.sleep(patience(failures))

    async def drain(self, seconds: float) -> None:
        """Wait until everything is recorded, so long at most."""
        waiting = asyncio.create_task(self._drained())
        await asyncio.wait([waiting], timeout=seconds)
        waiting.cancel()

    async def _drained(self) -> None:
        while self.done:
            await asyncio.sleep(0.005)

    async def _gather(self) -> None:
        """Wait until a batch is full, a moment at most."""
        self._full.clear()
        waits = {asyncio.ensure_future(self._clock.sleep(GATHER)), asyncio.ensure_future(self._full.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()

    async def _record(self, batch: Sequence[PollOutcome]) -> None:
        sources = [outcome.claim.source for outcome in batch]
        jumped = self._jumps()
        batch = [outcome if outcome.jumped == jumped else outcome.moved(jumped) for outcome in batch]
        scheduler = await self._learning.scheduler_for(sources)
        entries, mine, beyond = entries_of(scheduler, batch, self._learning.unit, self._learning.first_rate)
        held = await self._executor.do(lambda store: store.record(entries))
        del self.done[: len(batch)]
        late = self.counters.count(mine, held, self._tell)
        self.counters.dropped += len(batch) - len(mine)
        self._learning.recorded(sources, late, beyond)
        if self.heard is not None:
            await self.heard([outcome for outcome, one in zip(mine, held, strict=True) if one])
