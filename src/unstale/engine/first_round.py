"""The first round: sources that were never polled have an allowance of their own beside the budget.

Rules of this file:
1. It is for first polls alone: whoever spends it, an engine or workers that share it, gets no more of it than there are
   such polls to make.
2. The limits of hosts hold all the same.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.engine.config import EngineConfig
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Integers, Scheduler


def never_polled(scheduler: Scheduler) -> Integers:
    """The rows of sources of which no poll has ended, but for paused ones."""
    rows: Integers = np.flatnonzero(np.isneginf(scheduler.answered) & (scheduler.failures == 0) & ~scheduler.paused)
    return rows


@dataclass(frozen=True, slots=True)
class FirstAllowance:
    """What first polls may cost per second beside the budget, and until when."""

    rate: float = 0.0
    end: float = -math.inf

    def at(self, now: float) -> float:
        """What they may cost now.

        >>> FirstAllowance(2.0, 100.0).at(99.0), FirstAllowance(2.0, 100.0).at(100.0)
        (2.0, 0.0)
        """
        return self.rate if now < self.end else 0.0


def first_allowance(scheduler: Scheduler, config: EngineConfig, now: float, least: float) -> FirstAllowance:
    """The allowance for what waits for its first poll now: as many polls as there are, at the rate that is allowed.

    It lasts `least` seconds at least, for who shares it hears of it now and then.
    """
    rows = never_polled(scheduler)
    rows = rows[scheduler.due_at[rows] <= now]
    if not len(rows) or not config.first_rate > 0.0:
        return FirstAllowance()
    cost, seconds = float(scheduler.learner.columns.cost[rows].sum()), max(len(rows) / config.first_rate, least)
    return FirstAllowance(cost / seconds, now + seconds)
