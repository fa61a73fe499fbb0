"""Finding the price: the one plan that an engine makes of its fleet, and the elected planner of many workers' fleet.

Rules of this file:
1. Whoever plans hands in a scheduler that nobody else touches meanwhile, and writes what comes out to its store.
2. What is learned of the fleet as a whole is reviewed now and then, and kept with the plan that first uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.state import kept
from unstale.engine.config import EngineConfig, next_look
from unstale.engine.lessons import teach
from unstale.engine.pulse import Done
from unstale.engine.summary import summary
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import LEARNER, Lesson, Opened, Price

if TYPE_CHECKING:
    from unstale.engine.store_executor import StoreExecutor

#: seconds after which a price is kept, with how things stand
PULSE = 60.0
#: a surcharge below this is none worth telling, and so many hosts are told of at most
DEARER, TOLD = 1.01, 1000


@dataclass(frozen=True, slots=True)
class FoundPrice:
    """What a plan found: the price, the rows whose due times it moves, and the settings that it makes."""

    price: float
    rows: Integers
    due: Floats
    settings: dict[str, bytes] = field(default_factory=dict)


class Pricer:
    """Finds the price of one fleet, time and again; numbers that take a while are found in the executor's thread."""

    def __init__(self, executor: StoreExecutor[Opened]) -> None:
        self._executor = executor
        self._review_at = -math.inf

    def forget(self) -> None:
        """Another one has planned meanwhile, or the clock was set."""
        self._review_at = -math.inf

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._review_at += by

    def will_review(self, now: float, known: Mapping[str, bytes]) -> bool:
        """Whether the next plan looks at what is learned of the fleet as a whole."""
        return now >= self._review_at or LEARNER not in known

    async def find(
        self,
        scheduler: Scheduler,
        config: EngineConfig,
        *,
        now: float,
        until: float,
        spare: float,
        known: Mapping[str, bytes],
        lessons: Sequence[Lesson] = (),
    ) -> FoundPrice:
        """The price at which what falls due `until` then spends the budget and what is spare besides.

        `known` are the settings in the store. `lessons` are what others' polls taught: give them when a review comes.
        """
        learner, settings = scheduler.learner, dict[str, bytes]()
        if self.will_review(now, known):
            for lesson in lessons:
                teach(learner.timing, lesson.value)
            # Nobody is like nobody: an empty fleet has nothing to look at.
            if (math.isfinite(self._review_at) or lessons) and len(scheduler.ids):
                await self._executor.aside(scheduler.review)
                settings[LEARNER] = kept(learner)
            elif LEARNER not in known:
                settings[LEARNER] = kept(learner)
            self._review_at = now + max(0.5 * learner.scale, until - now)
        end = scheduler.horizon(now, until)
        allowed = max(config.rate * (end - now) + spare, 0.0)
        price = await self._executor.aside(scheduler.plan, allowed, now, end)
        rows, due = await self._executor.aside(scheduler.moves, now, now + 2.0 * (until - now))
        return FoundPrice(price, rows, due, settings)

    async def news(self, scheduler: Scheduler, config: EngineConfig, now: float, since: Done) -> Price:
        """The price with how all stands, to be kept; and what was done since the last one."""
        seen = await self._executor.aside(summary, scheduler, now, config.budget)
        return Price(
            now,
            scheduler.price,
            config.budget,
            seen.fresh,
            seen.even,
            since.polls,
            since.changed,
            since.failed,
            since.spent,
        )


def next_plan(scheduler: Scheduler, config: EngineConfig, now: float) -> float:
    """The time until which a plan made now looks ahead."""
    return now + next_look(scheduler, config.rate)


def surcharges_of(scheduler: Scheduler, hosts: Sequence[str]) -> dict[str, float]:
    """How many times as dear a poll is at each host whose cap binds, the dearest first; as a plan left it."""
    factor = scheduler.surcharge[: len(hosts)]
    dearest = sorted(np.flatnonzero(factor > DEARER).tolist(), key=lambda i: -float(factor[i]))[:TOLD]
    return {hosts[i]: round(float(factor[i]), 6) for i in dearest}
