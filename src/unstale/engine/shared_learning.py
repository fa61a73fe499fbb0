"""Learning of a worker among others: it holds no fleet, only the shared state that the planner has published.

Rules of this file:
1. Beliefs are read when outcomes are recorded: who holds a claim is the only one who changes them.
2. What polls teach of the fleet as a whole is gathered, and passed on as a lesson; nothing is taught twice.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import SharedTiming
from unstale.core.learning.mixture import Shared
from unstale.core.learning.state import WIDTH
from unstale.engine.config import BURST_SECONDS, EngineConfig, scheduler_of
from unstale.engine.contracts import NOTHING, bounded, promised
from unstale.engine.host_limits import HostLimits
from unstale.engine.lessons import tallied
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import packed, standing_of
from unstale.keeper.costs import POLLS
from unstale.keeper.scheduler import Scheduler
from unstale.ports import LEARNER, Clock, FleetColumns, SharedStore

#: seconds after which contracts are read again
PROMISES = 60.0
#: batches of which a worker remembers how sources stood, until it can tell: parts are read anew in any case
MOST_TALLIES = 100


@dataclass(frozen=True, slots=True, eq=False)
class PublishedPlan:
    """What a planner tells of the fleet as a whole: its mean interval, its price, and what its dearest poll costs.

    `burst` is what the settings let be spent at once after a pause, in seconds of the budget, 0 where they say nothing.

    >>> PublishedPlan(1.0, 1.0, 1.0, burst=3.0).burst_of(4.0), PublishedPlan(1.0, 1.0, 1.0).burst_of(0.1)
    (12.0, 2.0)
    """

    #: zero until a planner has told
    scale: float = 0.0
    price: float = 0.0
    dearest: float = 1.0
    burst: float = 0.0
    #: what is polled for, where it is told
    objective: str = ""
    #: whether the fleet is planned in parts, whose sketches go by what is told of polls
    in_parts: bool = False
    #: what the budget counts
    cost_in: str = POLLS

    def burst_of(self, share: float) -> float:
        """What a worker with a share of the budget may spend at once: together they have one burst, each has a poll."""
        if self.burst:
            return max(self.burst * share, self.dearest)
        return max(BURST_SECONDS * share, 2.0 * self.dearest)


class SharedLearning:
    """Makes a scheduler of the few sources of a batch; keeps `Learning`. `paid` hears what a poll cost after all."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        host_limits: HostLimits,
        paid: Callable[[float], None],
    ) -> None:
        self.lock, self.plan = asyncio.Lock(), PublishedPlan()
        self._executor, self._config, self._clock, self._host_limits, self._paid = (
            executor,
            config,
            clock,
            host_limits,
            paid,
        )
        self._cost: dict[int, float] = {}
        self._promises, self._promised_at = NOTHING, -math.inf
        #: the learner's shared state as it was published, and as it is here; its tallies when last passed on, and what
        #: could not be passed on
        self._state = b""
        self._learned: tuple[Shared, SharedTiming] | None = None
        self._passed_on, self._unsent = np.zeros(1), np.zeros(1)
        #: the scheduler of a batch with how its sources stood before it, and what is to be told of batches
        self._batch: tuple[Scheduler, Floats] | None = None
        self._tallies: list[bytes] = []

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """A scheduler of these sources as they stand."""
        await self._hear_promises()
        standing = await self._executor.do(lambda store: store.columns_of(sources, WIDTH))
        standing = bounded(standing, self._promises)
        self._cost = dict(zip(standing.source.tolist(), standing.cost.tolist(), strict=True))
        scheduler, self._batch = self._scheduler_of(standing), None
        if self.plan.in_parts:
            self._batch = scheduler, standing_of(scheduler, np.arange(len(scheduler.ids)))
        return scheduler

    async def look_at(self, sources: Sequence[int]) -> Scheduler:
        """A scheduler of these sources that nothing is taught."""
        async with self.lock:
            standing = await self._executor.do(lambda store: store.columns_of(sources, WIDTH))
            return self._scheduler_of(bounded(standing, self._promises))

    async def _hear_promises(self) -> None:
        """Contracts are read anew now and then: a new one counts after its source's next poll at the latest."""
        if (now := self._clock.now()) - self._promised_at >= PROMISES:
            self._promises = await self._executor.do(lambda store: promised(store, self._config.contracts))
            self._promised_at = now

    async def relearn(self) -> None:
        """There is no fleet here that could be wrong."""

    @property
    def unit(self) -> str:
        """What the budget counts, as the planner tells."""
        return self.plan.cost_in

    @property
    def first_rate(self) -> float:
        """First polls per second that have an allowance of their own."""
        return self._config.first_rate

    def recorded(self, sources: Sequence[int], late: int, beyond: float) -> None:
        """Each was paid for as if it were the dearest; what they used besides is paid now."""
        self._paid(beyond)
        for source in sources:
            self._paid(self._cost.get(source, self.plan.dearest) - self.plan.dearest)
        if self._batch is not None and not late and len(self._tallies) < MOST_TALLIES:
            scheduler, before = self._batch
            rows = np.arange(len(scheduler.ids))
            self._tallies.append(packed(scheduler.ids, self._clock.now(), before, standing_of(scheduler, rows)))

    def tally(self) -> bytes:
        """How sources stood before and after the polls that were recorded since this was asked last."""
        told, self._tallies = b"".join(self._tallies), []
        return told

    def lesson(self) -> Floats | None:
        """What polls have taught of the fleet as a whole since this was asked last; None if there is no state yet."""
        if self._learned is None:
            return None
        counters = tallied(self._learned[1])
        lesson: Floats = counters - self._passed_on + self._unsent
        self._passed_on, self._unsent = counters, np.zeros(1)
        return lesson

    def keep(self, lesson: Floats) -> None:
        """This could not be passed on yet."""
        self._unsent = self._unsent + lesson

    def _scheduler_of(self, standing: FleetColumns) -> Scheduler:
        """The scheduler of a few sources of a fleet, whose mean interval and shared learning are given."""
        state, few = standing.settings.get(LEARNER, b""), float(standing.cost[~standing.paused].sum())
        config = replace(
            self._config,
            budget=few / self.plan.scale if few > 0.0 else 1.0,
            objective=self.plan.objective or self._config.objective,
        )
        known = self._learned if state == self._state else None
        if known is not None:
            standing = replace(standing, settings={})
        scheduler, _ = scheduler_of(standing, config, self._clock.now(), self._host_limits)
        scheduler.price = self.plan.price
        if known is not None:
            scheduler.learner.shared, scheduler.learner.timing = known
            return scheduler
        if (lesson := self.lesson()) is not None:
            self._unsent = lesson
        self._state, self._learned = state, (scheduler.learner.shared, scheduler.learner.timing)
        self._passed_on = tallied(scheduler.learner.timing)
        return scheduler
