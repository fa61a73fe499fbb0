"""Value when every unseen change is penalised by its own lag: the update penalty of 003, with any w ≥ 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats
from unstale.core.penalties import Deadline, Penalty
from unstale.core.values.numeric import NumericValue, Scaling
from unstale.core.values.order import LONGEST, gap_moment
from unstale.core.values.quadrature import integrate

_DECADES = 10.0 ** np.arange(-160.0, 161.0)


class UpdateValue(NumericValue):
    """Value of a poll when each unseen change counts w(its lag); w = 1 is `MissedChanges`, w = x `SummedLag`.

    φ(t) = change_rate·∫₀ᵗ y·w(y) dy. It never falls for any w ≥ 0, growing or not, and depends on the change
    process through its rate alone. [003 Theorem 12] says that no source is ever abandoned; that is so only if
    ∫₀^∞ y·w(y) dy is infinite. With w = e^(−x) the limit is change_rate, and a source is abandoned
    when weight·change_rate ≤ price·cost: its changes are forgotten before a poll pays.
    Powers are closed forms; otherwise one curve serves all sources (1e-12).

    >>> from unstale.core.penalties import Decay
    >>> UpdateValue([3.0], Decay(1.0)).limit().round(9)
    array([3.])
    """

    def __init__(self, change_rate: ArrayLike, penalty: Penalty, order: str = "fixed") -> None:
        super().__init__(change_rate, order)
        self.penalty = penalty
        self._total = self._end()
        self._harmless = penalty.harmless / LONGEST[order]

    def _end(self) -> float:
        if self.penalty.degree is not None:
            return np.inf
        with np.errstate(all="ignore"):
            near, far = self._moment(np.array([1e150, 1e160]))
        # still growing after 150 decades means without end
        return float(far) if far <= near * (1 + 1e-9) else np.inf

    def _limit(self, rate: Floats) -> Floats:
        return rate * self._total

    def _ends(self, rate: Floats) -> tuple[Floats, Floats]:
        # t·w(t) far out: a number, or so large that it has no end
        slope = 1e150 * float(self.penalty.w(1e150))
        return rate * (slope if slope < 1e100 else np.inf), rate * float(self.penalty.w2(np.inf))

    def _scaling(self, rate: Floats, t: Floats) -> Scaling | None:
        # a curve is one of logarithms, which a value of 0 has not
        return None if self.penalty.harmless > 0 else Scaling(rate, rate, t)

    def _bends(self, rate: Floats) -> Floats:
        kinks = np.asarray(self.penalty.kinks)
        return np.broadcast_to(kinks, (len(rate), len(kinks)))

    def _value(self, rate: Floats, t: Floats) -> Floats:
        if self.penalty.degree is None:
            return super()._value(rate, t)
        # all orders at once: w(c·x) = cᵖ·w(x)
        p = self.penalty.degree + 2
        return rate * (float(self.penalty.w(1.0)) * gap_moment(self.order, p) / p) * np.power(t, p)

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        if self.penalty.degree is None:
            return super()._interval(rate, v)
        p = self.penalty.degree + 2
        unit = float(self.penalty.w(1.0)) * gap_moment(self.order, p) / p
        return np.power(v / unit, 1 / p) / np.power(rate, 1 / p)

    def _even_value(self, rate: Floats, t: Floats) -> Floats:
        return rate * self._moment(t)

    def _even_slope(self, rate: Floats, t: Floats) -> Floats:
        return np.asarray(rate * t * self.penalty.w(t))

    def _even_staleness(self, rate: Floats, t: Floats) -> Floats:
        return np.asarray(rate * self.penalty.w3(t) / t)

    def _moment(self, t: Floats) -> Floats:
        """∫₀ᵗ y·w(y) dy, summed over the sorted t, so that each stretch is integrated once."""
        if isinstance(self.penalty, Deadline):
            late = np.maximum(t - self.penalty.tau, 0.0)
            return late * (self.penalty.tau + 0.5 * late)
        ends = np.unique(np.concatenate([_DECADES, self.penalty.kinks, t]))
        ends = ends[(ends > 0) & (ends <= t.max(initial=0.0))]
        if not len(ends):
            return np.zeros_like(t)
        pieces = np.column_stack([np.concatenate([[0.0], ends[:-1]]), ends])
        sums = np.cumsum(integrate(lambda row, y: y * np.asarray(self.penalty.w(y)), pieces))
        return np.concatenate([[0.0], sums])[np.searchsorted(ends, t, side="right")]
