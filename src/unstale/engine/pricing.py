"""Finding the price: the one plan that an engine makes of its fleet, and the elected planner of many workers' fleet.

Rules of this file:
1. Whoever plans hands in a scheduler that nobody else touches meanwhile, and writes what comes out to its store.
2. What is learned of the fleet as a whole is reviewed now and then, and kept with the plan that first uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from unstale.core.checks import Floats
from unstale.core.learning.state import kept
from unstale.engine.config import EngineConfig, next_look
from unstale.engine.lessons import teach
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.summary import summary
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import LEARNER, Lesson, Opened, Price

#: seconds after which a price is kept, with how things stand
PULSE = 60.0


@dataclass(frozen=True, slots=True)
class Pricing:
    """What a plan found: the price, the rows whose due times it moves, and the settings that it makes."""

    price: float
    rows: Integers
    due: Floats
    settings: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """What polls did and cost, in total."""

    polls: int = 0
    changed: int = 0
    failed: int = 0
    spent: float = 0.0


class Pricer:
    """Finds the price of one fleet, time and again; numbers that take a while are found in the executor's thread."""

    def __init__(self, executor: StoreExecutor[Opened]) -> None:
        self._executor = executor
        self._review_at = -math.inf
        self._told: Done | None = None

    def forget(self) -> None:
        """Another one has planned meanwhile."""
        self._review_at, self._told = -math.inf, None

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
    ) -> Pricing:
        """The price at which what falls due `until` then spends the budget and what is spare besides.

        `known` are the settings in the store. `lessons` are what others' polls taught: give them when a review comes.
        """
        learner, settings = scheduler.learner, dict[str, bytes]()
        if self.will_review(now, known):
            for lesson in lessons:
                teach(learner.timing, lesson.value)
            # Nobody is like nobody: an empty fleet has nothing to look at.
            if (math.isfinite(self._review_at) or lessons) and len(scheduler.ids):
                await self._executor.aside(learner.review)
                settings[LEARNER] = kept(learner)
            elif LEARNER not in known:
                settings[LEARNER] = kept(learner)
            self._review_at = now + max(0.5 * learner.scale, until - now)
        allowed = max(config.rate * (until - now) + spare, 0.0)
        price = await self._executor.aside(scheduler.plan, allowed, now, until)
        rows, due = await self._executor.aside(scheduler.moves, now, now + 2.0 * (until - now))
        return Pricing(price, rows, due, settings)

    async def news(self, scheduler: Scheduler, config: EngineConfig, now: float, done: Done) -> Price:
        """The price with how all stands, to be kept; and what was done since the last one."""
        seen = await self._executor.aside(summary, scheduler, now, config.budget)
        before, self._told = self._told or done, done
        return Price(
            now,
            scheduler.price,
            config.budget,
            seen.fresh,
            seen.even,
            done.polls - before.polls,
            done.changed - before.changed,
            done.failed - before.failed,
            max(done.spent - before.spent, 0.0),
        )

    def begin_from(self, done: Done) -> None:
        """What was done until now has been told."""
        self._told = done


def next_plan(scheduler: Scheduler, config: EngineConfig, now: float) -> float:
    """The time until which a plan made now looks ahead."""
    return now + next_look(scheduler, config.rate)
