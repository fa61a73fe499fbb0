"""Value when only a copy older than a deadline is harmful, and changes are Poisson."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number
from unstale.core.exponential import exp_remainder
from unstale.core.gamma2 import p2
from unstale.core.roots.rising import Rows, root
from unstale.core.values.numeric import NumericValue, Scaling
from unstale.core.values.order import LONGEST


class PoissonDeadline(NumericValue):
    """Value of a poll when a copy harms from age tau on and changes are Poisson.

    φ(t) = P(2, x)/change_rate + tau·(1 − e^(−x)), x = change_rate·(t − tau), and 0 up to t = tau: who is polled every
    tau is never late, so more polls gain nothing. The limit is 1/change_rate + tau. Other orders average φ over
    their gaps numerically. [003 eq. 49 with the penalty of eq. 41]. Relative error below 1e-14 in fixed order, but for
    the rounding of t − tau.

    >>> PoissonDeadline([1.0, 2.0], 1.0).value(2.0).round(6)
    array([0.896362, 1.161662])
    """

    def __init__(self, change_rate: ArrayLike, tau: float, order: str = "fixed") -> None:
        super().__init__(change_rate, order)
        self._tau = number("tau", tau, above=0)
        self._harmless = self._tau / LONGEST[order]

    def _late(self, t: Floats) -> Floats:
        return np.maximum(t - self._tau, 0.0)

    def _even_value(self, rate: Floats, t: Floats) -> Floats:
        x = rate * self._late(t)
        return p2(x) / rate - self._tau * np.expm1(-x)

    def _even_slope(self, rate: Floats, t: Floats) -> Floats:
        return np.where(t > self._tau, rate * t * np.exp(-rate * self._late(t)), 0.0)

    def _even_staleness(self, rate: Floats, t: Floats) -> Floats:
        return exp_remainder(2, rate * self._late(t)) / (rate * t)

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        if self.order != "fixed":
            return super()._interval(rate, v)
        rate, goal = np.broadcast_arrays(np.atleast_1d(rate), np.atleast_1d(rate * v))
        ratio = rate * self._tau

        def residual(row: Rows, u: Floats) -> Floats:
            x = np.exp(u)
            missed: Floats = np.clip(np.log((p2(x) - ratio[row] * np.expm1(-x)) / goal[row]), -1e3, 1e3)
            return missed

        # It begins like x²/2 + ratio·x, and ends at 1 + ratio.
        start = np.minimum(2 * goal / (ratio + np.sqrt(ratio**2 + 2 * goal)), 700.0)
        return self._tau + np.exp(root(residual, np.log(start))) / rate

    def _limit(self, rate: Floats) -> Floats:
        return 1.0 / rate + self._tau

    def _ends(self, rate: Floats) -> tuple[Floats, Floats]:
        return np.zeros_like(rate), np.ones_like(rate)

    def _bends(self, rate: Floats) -> Floats:
        return self._tau + np.array([0.0, 1.0, 10.0]) / rate[:, None]

    def _scaling(self, rate: Floats, t: Floats) -> Scaling | None:
        return None
