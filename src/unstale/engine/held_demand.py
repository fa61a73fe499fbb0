"""What the sources of held shards ask of the budget, by which it is shared out among workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.keeper.scheduler import Scheduler

#: seconds within which what waits should go, and what the last look counts in the demand
BACKLOG, SMOOTH = 10.0, 0.2


class HeldDemand:
    """What polls should cost per second, lately."""

    def __init__(self) -> None:
        self._lately = 0.0
        #: what members that go by signals and listings cost per second, where polls are planned by signals
        self.by_signals = 0.0

    def facts(self, scheduler: Scheduler, taken: NDArray[np.bool_], now: float) -> dict[str, float]:
        """What the planner goes by: what polls should cost, what is due, and what is put aside for listings' polls."""
        return {
            "demand": self.of(scheduler, taken, now),
            "waiting": waiting(scheduler, taken, now),
            "aside": scheduler.put_aside(now),
            "most_aside": scheduler.put_aside(),
        }

    def of(self, scheduler: Scheduler, taken: NDArray[np.bool_], now: float) -> float:
        """What they should cost, for those that wait too; asked once with every sign of life."""
        columns, awake = scheduler.learner.columns, scheduler.awake() & (scheduler.learner.columns.interval > 0.0)
        if self.by_signals > 0.0 and (collected := scheduler.collected) is not None:
            awake &= ~collected.listed() & (collected.number < 0)
        steady = float((columns.cost[awake] / columns.interval[awake]).sum()) + self.by_signals
        found = steady + waiting(scheduler, taken, now) / BACKLOG
        self._lately += (SMOOTH if self._lately > 0.0 else 1.0) * (found - self._lately)
        return self._lately


def waiting(scheduler: Scheduler, taken: NDArray[np.bool_], now: float) -> float:
    """What polls of those cost that are due and were not begun."""
    late = (scheduler.due_at <= now) & ~scheduler.paused & ~taken
    return float(scheduler.learner.columns.cost[late].sum())
