"""Gaps as they were observed, or any law on finitely many lengths."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order
from unstale.core.processes.lattice import common_span
from unstale.errors import require


class Empirical(Process):
    """Each of `gaps` occurs with probability in proportion to its weight (all equal unless given).

    Everything is exact: the age survival is piecewise linear, from sorted sums. `span` is the lattice of
    the gaps, if they have one (see `common_span`): timestamps in whole seconds make one of a second. Zero
    gaps are refused: events at one instant are one event to a poll.

    >>> Empirical([1.0, 3.0]).age_survival([0.0, 1.0, 2.0])
    array([1.  , 0.5 , 0.25])
    """

    parameters = ("gaps", "weights")

    def __init__(self, gaps: ArrayLike, weights: ArrayLike | None = None) -> None:
        seen = np.atleast_1d(numbers("gaps", gaps, above=0, remedy="merge events that happen at one instant"))
        require(seen.ndim == 1 and seen.size > 0, "gaps", f"of shape {seen.shape}", "must be a list", "give gaps")
        mass: Floats = np.ones(seen.shape)
        if weights is not None:
            mass = np.atleast_1d(numbers("weights", weights, least=0, remedy="give how often each gap occurs"))
            rule, remedy = f"must match gaps {seen.shape} and not all be 0", "give one weight for each gap"
            require(mass.shape == seen.shape and mass.sum() > 0, "weights", f"of shape {mass.shape}", rule, remedy)
        values, place = np.unique(seen, return_inverse=True)
        mass = np.asarray(np.bincount(place, mass), dtype=np.float64)
        #: the distinct gaps, ascending, and their probabilities
        self.gaps, self.weights = values[mass > 0], mass[mass > 0] / mass.sum()
        self.rate = checked_rate(1.0 / float(self.gaps @ self.weights), "the rate 1/mean")
        self.end = float(self.gaps[-1])
        self.kinks = tuple(self.gaps.tolist())
        self.span = common_span(self.gaps)
        self.ageing = Ageing.NBU if len(self.gaps) == 1 else Ageing.NEITHER
        self._tabulate()

    def _tabulate(self) -> None:
        """Sums up to and beyond each gap; entry i is for x in [gap i−1, gap i)."""
        self._beyond = np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)
        self._beyond[0] = 1.0
        self._first = np.append(0.0, np.cumsum(self.weights * self.gaps))
        self._second = np.append(0.0, np.cumsum(self.weights * self.gaps * (self.gaps * self.rate)))
        steps = self._beyond[1:-1] * np.diff(self.gaps)
        # ∫ survival from gap i on: summed from the far end, so that the tail does not cancel.
        self._left = np.append(np.cumsum(steps[::-1])[::-1], [0.0, 0.0])

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.asarray(self._beyond[self._place(x)])

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        i, x = self._place(x), np.minimum(x, self.end)
        return np.asarray(np.minimum(self.rate * (self._first[i] + x * self._beyond[i]), 1.0))

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        i, x = self._place(x), np.minimum(x, self.end)
        ahead = np.append(self.gaps, self.end)[i] - x
        return np.asarray(np.minimum(self.rate * (self._left[i] + self._beyond[i] * ahead), 1.0))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """(rate/2)·(Σ gap² up to x + x²·survival)."""
        i, x = self._place(x), np.minimum(x, self.end)
        return np.asarray(self._second[i] + x * self.rate * x * self._beyond[i]) / 2

    @of_order
    def moment(self, n: int) -> float:
        return float(self.weights @ self.gaps**n)

    @property
    def variance(self) -> float:
        with np.errstate(over="ignore"):
            return float(self.weights @ (self.gaps - self.mean) ** 2)

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._draw(rng, size, np.cumsum(self.weights))

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._draw(rng, size, self._first[1:])

    def with_rate(self, rate: float) -> Empirical:
        return Empirical(self.gaps * (self.rate / checked_rate(rate)), self.weights)

    def _place(self, x: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        return np.asarray(np.searchsorted(self.gaps, x, side="right"))

    def _draw(self, rng: np.random.Generator, size: Size, sums: Floats) -> Floats:
        return np.asarray(self.gaps[np.searchsorted(sums[:-1], rng.random(size) * sums[-1], side="right")])

    def __repr__(self) -> str:
        return f"Empirical(<{len(self.gaps)} gaps from {self.gaps[0]:g} to {self.end:g}>, rate={self.rate:g})"

    def _key(self) -> tuple[object, ...]:
        return self.gaps.tobytes(), self.weights.tobytes()
