"""Frame of the values known only for even polls: order and inverse are added numerically."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats
from unstale.core.roots.rising import Rows, root
from unstale.core.values.base import RateValue
from unstale.core.values.curve import Curve
from unstale.core.values.order import gap_mean
from unstale.frozen import dataclass

#: curves are used for unit intervals between these, beyond them powers could leave the doubles
_NEAR, _FAR = 1e-40, 1e40

Even = Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Scaling:
    """How sources follow from one: value = factor·value₀(x), slope and staleness = level·(…)₀(x)."""

    factor: Floats
    level: Floats
    x: Floats


class NumericValue(RateValue):
    """Members give value, slope and staleness of even polls for finite intervals, and the limits.

    Another order averages them over its gaps (some hundred evaluations per source), and the interval is found
    by bracketing on log(interval) (about ten evaluations of the value). If sources differ in scale only
    (`_scaling`), the work is done once, for a curve that all of them read.
    """

    #: change rate of the source that the curves describe, and the power of t with which its value begins
    _unit_rate = 1.0
    _unit_power = 2.0

    def __init__(self, change_rate: ArrayLike, order: str = "fixed") -> None:
        super().__init__(change_rate, order)
        self._curves: dict[str, Curve] = {}

    @abstractmethod
    def _even_value(self, rate: Floats, t: Floats) -> Floats: ...

    @abstractmethod
    def _even_slope(self, rate: Floats, t: Floats) -> Floats: ...

    @abstractmethod
    def _even_staleness(self, rate: Floats, t: Floats) -> Floats: ...

    @abstractmethod
    def _ends(self, rate: Floats) -> tuple[Floats, Floats]:
        """Slope and staleness without polls."""

    @abstractmethod
    def _bends(self, rate: Floats) -> Floats:
        """Intervals (sources × any) where the value bends or changes its character."""

    @abstractmethod
    def _scaling(self, rate: Floats, t: Floats) -> Scaling | None:
        """How these sources follow from one of rate `_unit_rate`, or None if each is different."""

    def _value(self, rate: Floats, t: Floats) -> Floats:
        def read(s: Scaling) -> Floats:
            return s.factor * self._curve("value", self._even_value, 0).value(s.x)

        return self._answer(self._even_value, read, self._limit(rate), rate, t, 0)

    def _slope(self, rate: Floats, t: Floats) -> Floats:
        def read(s: Scaling) -> Floats:
            return s.level * self._curve("value", self._even_value, 0).slope(s.x)

        return self._answer(self._even_slope, read, self._ends(rate)[0], rate, t, 1)

    def _staleness(self, rate: Floats, t: Floats) -> Floats:
        def read(s: Scaling) -> Floats:
            return s.level * self._curve("staleness", self._even_staleness, 1).value(s.x)

        return self._answer(self._even_staleness, read, self._ends(rate)[1], rate, t, 1)

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        rate, v = np.broadcast_arrays(np.atleast_1d(rate), np.atleast_1d(v))
        usable = np.isfinite(v) & (v > 0)

        def residual(row: Rows, u: Floats) -> Floats:
            ratio = self._value(rate[row], np.exp(u)) / v[row]
            return np.where(usable[row], np.clip(np.log(ratio), -1e3, 1e3), u)

        return np.exp(root(residual, -np.log(rate)))

    def _answer(
        self, even: Even, read: Callable[[Scaling], Floats], end: Floats, rate: Floats, t: Floats, power: int
    ) -> Floats:
        rate, t, end = np.broadcast_arrays(*np.atleast_1d(rate, t, end))
        out = np.where(np.isinf(t), end, 0.0)
        rows = np.flatnonzero((t > 0) & ~np.isinf(t))
        scaling = self._scaling(rate[rows], t[rows])
        if scaling is not None:
            near = (scaling.x > _NEAR) & (scaling.x < _FAR)
            out[rows[near]] = read(Scaling(scaling.factor[near], scaling.level[near], scaling.x[near]))
            rows = rows[~near]
        if len(rows):
            out[rows] = self._ordered(even, rate[rows], t[rows], power)
        return out

    def _curve(self, name: str, even: Even, power: int) -> Curve:
        """The answer for the unit source; in other orders averaged over the curve of even polls."""
        if name not in self._curves:
            bends = self._bends(np.array([self._unit_rate]))[0]
            first = Curve(lambda x: even(np.full_like(x, self._unit_rate), x), self._unit_power - power, bends)

            def mean(x: Floats) -> Floats:
                unit = np.full_like(x, self._unit_rate)
                return self._ordered(lambda rate, t: first.value(t), unit, x, power)

            # the longest gap of random order is 2, so half a bend bends too
            later = Curve(mean, self._unit_power - power, [*bends, *(bends / 2)])
            self._curves[name] = first if self.order == "fixed" else later
        return self._curves[name]

    def _ordered(self, even: Even, rate: Floats, t: Floats, power: int) -> Floats:
        """E[X^power·even(X·t)]."""
        if self.order == "fixed":
            return even(rate, t)

        def of_gap(row: Rows, x: Floats) -> Floats:
            return x**power * even(rate[row], t[row] * x)

        return gap_mean(self.order, of_gap, self._bends(rate) / t[:, None])
