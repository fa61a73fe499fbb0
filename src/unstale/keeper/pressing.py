"""Hosts whose polls pay more than the price, row by row: as if their sources weighed that much less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.keeper.host_caps import held_prices

if TYPE_CHECKING:
    from unstale.keeper.rows import FleetRows


class PressedRows:
    """The weights of a fleet's sources, without surcharges and with them."""

    learner: Learner
    price: float
    host: NDArray[np.integer[Any]]
    #: how many times the price polls at each host pay
    surcharge: Floats
    #: without surcharges; the learner's own column as long as there were none
    weight: Floats

    def press_hosts(self, now: float, until: float) -> Floats:
        """Let polls at hosts whose caps bind at today's price pay more from now on; the prices that hold them."""
        columns = self.learner.columns
        if self.weight is not columns.weight:
            columns.weight[:] = self.weight
        held = held_prices(cast("FleetRows", self), now, until)
        self.press(held)
        return held

    def press(self, held: Floats) -> None:
        """Polls at a held host pay the price at which its cap binds."""
        self.surcharge_hosts(np.maximum(held / self.price, 1.0))

    def surcharge_hosts(self, surcharge: Floats) -> None:
        """Polls at each host pay so many times the price from now on."""
        self.surcharge, columns = surcharge, self.learner.columns
        if self.weight is columns.weight and (surcharge != 1.0).any():
            self.weight = columns.weight.copy()
        if self.weight is not columns.weight:
            columns.weight[:] = self.weight / surcharge[self.host]
