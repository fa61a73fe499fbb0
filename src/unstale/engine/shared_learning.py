"""Learning of a worker among others: it holds no fleet, only the shared state that the planner has published.

Rules of this file:
1. Beliefs are read when outcomes are recorded: who holds a claim is the only one who changes them.
2. What polls teach of the fleet as a whole is gathered, and passed on as a lesson; nothing is taught twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import SharedTiming
from unstale.core.learning.mixture import Shared
from unstale.core.learning.state import WIDTH
from unstale.engine.config import BURST_SECONDS, EngineConfig, scheduler_of
from unstale.engine.host_limits import HostLimits
from unstale.engine.lessons import tallied
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.scheduler import Scheduler
from unstale.ports import LEARNER, Clock, FleetColumns, SharedStore


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
        #: the learner's shared state as it was published, and as it is here; its tallies when last passed on, and what
        #: could not be passed on
        self._state = b""
        self._learned: tuple[Shared, SharedTiming] | None = None
        self._passed_on, self._unsent = np.zeros(1), np.zeros(1)

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """A scheduler of these sources as they stand."""
        standing = await self._executor.do(lambda store: store.columns_of(sources, WIDTH))
        self._cost = dict(zip(standing.source.tolist(), standing.cost.tolist(), strict=True))
        return self._scheduler_of(standing)

    async def relearn(self) -> None:
        """There is no fleet here that could be wrong."""

    def recorded(self, sources: Sequence[int], late: int) -> None:
        """Each was paid for as if it were the dearest."""
        for source in sources:
            self._paid(self._cost.get(source, self.plan.dearest) - self.plan.dearest)

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
