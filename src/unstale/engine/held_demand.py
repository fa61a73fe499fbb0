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

    def of(self, scheduler: Scheduler, taken: NDArray[np.bool_], now: float) -> float:
        """What they should cost, for those that wait too; asked once with every sign of life."""
        columns, awake = scheduler.learner.columns, scheduler.awake() & (scheduler.learner.columns.interval > 0.0)
        steady = float((columns.cost[awake] / columns.interval[awake]).sum())
        found = steady + waiting(scheduler, taken, now) / BACKLOG
        self._lately += (SMOOTH if self._lately > 0.0 else 1.0) * (found - self._lately)
        return self._lately


def waiting(scheduler: Scheduler, taken: NDArray[np.bool_], now: float) -> float:
    """What polls of those cost that are due and were not begun."""
    late = (scheduler.due_at <= now) & ~scheduler.paused & ~taken
    return float(scheduler.learner.columns.cost[late].sum())
