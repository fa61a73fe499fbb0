"""Events at an even pace: the best way to poll, and the worst change process to poll in step with."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order


class Constant(Process):
    """Every gap is `gap`; seen at a random time the age is uniform on [0, gap].

    It dominates every process of the same rate [003 Theorem 10]. It is a lattice process: formulas that
    average over the phase between changes and polls do not hold if the other process is a lattice of a
    commensurable span too [003 footnote 2].

    >>> Constant(4.0).age_cdf(1.0)
    0.25
    """

    parameters = ("gap",)
    ageing = Ageing.NBU

    def __init__(self, gap: float) -> None:
        self.gap = number("gap", gap, above=0, remedy="give the time between two events")
        self.rate = checked_rate(1.0 / self.gap, "the rate 1/gap")
        self.span = self.end = self.gap
        self.kinks = (self.gap,)

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.where(x < self.gap, 1.0, 0.0)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        return np.minimum(x, self.gap) / self.gap

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        return np.maximum(self.gap - x, 0.0) / self.gap

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """min(x, gap)²/(2·gap)."""
        seen = np.minimum(x, self.gap)
        return 0.5 * seen * (seen / self.gap)

    @of_order
    def moment(self, n: int) -> float:
        return np.float64(self.gap) ** n

    @property
    def mean(self) -> float:
        return self.gap

    @property
    def variance(self) -> float:
        return 0.0

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return np.full(size, self.gap)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return np.full(size, self.gap)

    def with_rate(self, rate: float) -> Constant:
        return Constant(1.0 / checked_rate(rate))
