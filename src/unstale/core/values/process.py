"""Values of sources with any law of gaps between changes and any penalty that grows with age."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats
from unstale.core.penalties import Penalty, require_nondecreasing
from unstale.core.processes.base import Process
from unstale.core.values.numeric import NumericValue, Scaling
from unstale.core.values.order import LONGEST
from unstale.core.values.quadrature import Rows, integrate

#: first cuts of [0, t]: in mean gaps from the poll, and as shares of t from its end
_LEFT = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
_RIGHT = 1.0 - np.array([1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10])
#: seven-point central difference: weights of the three steps either side
_STEP = 4e-3
_DIFFERENCE = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


class ProcessValue(NumericValue):
    """Value of a poll when every source has gaps of the shape of `process`, scaled to its own change rate.

    φ(t) = ∫₀ᵗ g(a)·[a·w(t−a) + v(t−a)] da, g the density of the change process's age, v(s) = ∫₀ˢ y dw(y): the
    penalty w(t−a) is saved for the a that the copy was fresh. φ never falls, for every process and every
    non-decreasing penalty, which is why one price plans any fleet; other penalties are refused.
    With w = 1 it is E[A; A ≤ t] = (rate/2)·E[min(gap, t)²], taken from the process; its limit is
    E[gap²]/(2·E[gap]), infinite for heavy tails: such sources are never abandoned. Otherwise it is an
    adaptive integral to about 1e-11: once per shape if w is a power of the age, else for each source (some
    300 evaluations), and its slope a difference of values (1e-8, not across bends). [003 eq. 49].

    >>> from unstale.core.processes.constant import Constant as Even
    >>> from unstale.core.penalties import Constant
    >>> ProcessValue(Even(1.0), [0.5], Constant()).value(1.0)
    array([0.25])
    """

    def __init__(self, process: Process, change_rate: ArrayLike, penalty: Penalty, order: str = "fixed") -> None:
        super().__init__(change_rate, order)
        require_nondecreasing(penalty, "the value of a poll")
        self.process, self.penalty = process, penalty
        self._unit_rate, self._unit_power = process.rate, 2.0 + (penalty.degree or 0.0)
        # the process's own numbers, once: E[A] and ∫ y dw(y)
        self._mean_age = process.age_moment(1)
        self._reach = _reach(penalty)
        self._harmless = penalty.harmless / LONGEST[order]

    @property
    def _plain(self) -> bool:
        return self.penalty.degree == 0

    def _scale(self, rate: Floats) -> Floats:
        """A source's time per unit of the process's time."""
        return self.process.rate / rate

    def _limit(self, rate: Floats) -> Floats:
        return np.asarray(self.penalty.limit * self._mean_age * self._scale(rate) + self._reach)

    def _ends(self, rate: Floats) -> tuple[Floats, Floats]:
        bounded = np.isfinite(self.penalty.limit)
        return np.full_like(rate, 0.0 if bounded else np.inf), np.full_like(rate, self.penalty.limit)

    def _scaling(self, rate: Floats, t: Floats) -> Scaling | None:
        degree = self.penalty.degree
        # w = 1 and even polls are a closed form already
        if degree is None or (self._plain and self.order == "fixed"):
            return None
        c = self._scale(rate)
        level = np.power(c, degree)
        return Scaling(c * level, level, t / c)

    def _bends(self, rate: Floats) -> Floats:
        own = np.array([1.0 / self.process.rate, 10.0 / self.process.rate, *self.process.kinks])
        kinks = np.broadcast_to(np.asarray(self.penalty.kinks), (len(rate), len(self.penalty.kinks)))
        return np.hstack([self._scale(rate)[:, None] * own, kinks])

    def _even_value(self, rate: Floats, t: Floats) -> Floats:
        c = self._scale(rate)
        if self._plain:
            return np.asarray(c * self.process.age_partial_mean(t / c))

        def saved(fresh: Floats, stale: Floats) -> Floats:
            return np.asarray(fresh * self.penalty.w(stale) + self.penalty.v(stale))

        return self._over_age(c, t, saved)

    def _even_slope(self, rate: Floats, t: Floats) -> Floats:
        if self._plain:
            x = t / self._scale(rate)
            return np.asarray(x * self.process.age_density(x))
        change = np.zeros_like(t)
        for k, weight in _DIFFERENCE:
            up, down = t * (1 + k * _STEP), t * (1 - k * _STEP)
            change += weight * (self._even_value(rate, up) - self._even_value(rate, down))
        return change / (_STEP * t)

    def _even_staleness(self, rate: Floats, t: Floats) -> Floats:
        c = self._scale(rate)
        if self._plain:
            return np.asarray(self.process.age_shortfall(t / c) / (t / c))
        return self._over_age(c, t, lambda fresh, stale: np.asarray(self.penalty.w2(stale))) / t

    def _over_age(self, c: Floats, t: Floats, function: Callable[[Floats, Floats], Floats]) -> Floats:
        """∫ g(a)·function(a, t−a) da over ages a up to t, a in the source's time, per source."""
        x = (t / c)[:, None]
        kinks = np.array([*self.process.kinks, *((self.process.end,) if np.isfinite(self.process.end) else ())])
        left = np.concatenate([[0.0], _LEFT / self.process.rate, kinks])
        right = np.hstack([x * _RIGHT, x - np.asarray(self.penalty.kinks) / c[:, None], x])
        edges = np.clip(np.hstack([np.broadcast_to(left, (len(t), len(left))), right]), 0.0, x)

        def integrand(row: Rows, a: Floats) -> Floats:
            fresh, stale = c[row] * a, c[row] * (x[row, 0] - a)
            return np.asarray(self.process.age_density(a)) * function(fresh, stale)

        return integrate(integrand, np.sort(edges, axis=1))


def _reach(penalty: Penalty) -> float:
    """∫₀^∞ y dw(y), what a bounded penalty adds to every limit; inf if the penalty has no limit."""
    if np.isinf(penalty.limit):
        return np.inf
    exact = float(np.asarray(penalty.v(np.inf)))
    if np.isfinite(exact):
        return exact
    # a numerically integrated penalty says inf for want of knowing: look whether it still grows
    near, far = (float(np.asarray(penalty.v(x))) for x in (1e8, 1e9))
    return far if far <= near * (1 + 1e-6) else np.inf
