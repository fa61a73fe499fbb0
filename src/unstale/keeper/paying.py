"""What polls of a fleet have used: the budget pays it, and what they will use is learned from it; see `costs`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.keeper.collected import Collected
from unstale.keeper.costs import learned, moved

Bits = NDArray[np.bool_]


class PaidRows:
    """The costs of a fleet's polls, row by row."""

    learner: Learner
    paused: Bits
    #: whose costs somebody has stated
    stated: Bits
    collected: Collected | None
    #: what a poll of each cost when the fleet was made, all together
    _cost: float

    def pay(self, rows: NDArray[np.int64], used: Floats, taught: Bits) -> Floats:
        """Polls have used so much, before they are decided on: what the budget has to pay beyond what was expected.

        Those that `taught` say what polls of their sources will use; NaN: that is not known, and as expected.
        """
        columns, told = self.learner.columns, ~np.isnan(used)
        beyond: Floats = np.where(told, used - columns.cost[rows], 0.0)
        new = told & taught & ~self.stated[rows]
        mine = rows[new]
        if len(mine):
            # Beliefs begin with the second answer.
            columns.cost[mine] = learned(columns.cost[mine], used[new], (columns.rows[mine] != 0.0).any(axis=1))
            if self.collected is not None:
                self.collected.costs(mine)
        return beyond

    def costs_moved(self) -> bool:
        """Whether polls cost so much else than when the fleet was made that its mean interval is another."""
        return moved(float(self.learner.columns.cost[~self.paused].sum()), self._cost)
