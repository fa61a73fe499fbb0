"""Values that depend on the changes through their rate alone: the square-root and the cube-root law."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.values.base import RateValue
from unstale.core.values.order import gap_moment


class MissedChanges(RateValue):
    """Value when every change not yet copied counts 1: staleness is the mean number of unseen changes.

    φ(t) = change_rate·t²·E[X²]/2, X the order's gap (E[X²] = 1, 7/6, 2). At a price the sync rate goes with
    the square root of weight·change_rate. No source is ever abandoned. Holds for every change process with
    that rate, Poisson or not. The update penalty with w = 1 [003 eq. 71].

    >>> MissedChanges([0.5, 2.0]).interval(4.0)
    array([4., 2.])
    """

    def _value(self, rate: Floats, t: Floats) -> Floats:
        return (rate * t) * t * (gap_moment(self.order, 2) / 2)

    def _slope(self, rate: Floats, t: Floats) -> Floats:
        return rate * t * gap_moment(self.order, 2)

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        return np.sqrt(v / (gap_moment(self.order, 2) / 2)) / np.sqrt(rate)

    def _limit(self, rate: Floats) -> Floats:
        return np.full_like(rate, np.inf)

    def _staleness(self, rate: Floats, t: Floats) -> Floats:
        return rate * t * (gap_moment(self.order, 2) / 2)


class SummedLag(RateValue):
    """Value when every unseen change counts its lag: staleness is the mean sum of the lags of unseen changes.

    φ(t) = change_rate·t³·E[X³]/3, X the order's gap (E[X³] = 1, 3/2, 6). At a price the sync rate goes with
    the cube root of weight·change_rate. No source is ever abandoned. Holds for every change process with that
    rate. The update penalty with w = x [003 eq. 71].

    >>> SummedLag([3.0]).value(2.0)
    array([8.])
    """

    def _value(self, rate: Floats, t: Floats) -> Floats:
        return (rate * t) * t * t * (gap_moment(self.order, 3) / 3)

    def _slope(self, rate: Floats, t: Floats) -> Floats:
        return (rate * t) * t * gap_moment(self.order, 3)

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        return np.cbrt(v / (gap_moment(self.order, 3) / 3)) / np.cbrt(rate)

    def _limit(self, rate: Floats) -> Floats:
        return np.full_like(rate, np.inf)

    def _staleness(self, rate: Floats, t: Floats) -> Floats:
        return (rate * t) * t * (gap_moment(self.order, 3) / 6)
