"""Events without memory: the assumption of 000–002, and the yardstick for all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, plain
from unstale.core.processes.base import (
    Ageing,
    Process,
    Size,
    checked_rate,
    checked_residual,
    elementwise,
    of_order,
)


class Poisson(Process):
    """Gaps with P(gap > x) = e^(−rate·x); the age has the same law as the gap.

    >>> round(Poisson(2.0).survival(0.5), 6)
    0.367879
    """

    ageing = Ageing.MEMORYLESS

    def __init__(self, rate: float) -> None:
        self.rate = checked_rate(rate)

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.exp(-self.rate * x)

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        return -np.expm1(-self.rate * x)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        return -np.expm1(-self.rate * x)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        return np.exp(-self.rate * x)

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """P(2, rate·x)/rate, P(2, y) = 1 − (1+y)e^(−y)."""
        share: Floats = special.gammainc(2.0, self.rate * x)
        return share / self.rate

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        checked, age = checked_residual(x, age)
        return plain(np.asarray(self.survival(checked)) * np.ones_like(age))

    @of_order
    def moment(self, n: int) -> float:
        return float(special.factorial(n)) * np.float64(self.mean) ** n

    @property
    def variance(self) -> float:
        return self.moment(2) / 2

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return rng.exponential(self.mean, size)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return rng.gamma(2.0, self.mean, size)

    def with_rate(self, rate: float) -> Poisson:
        return Poisson(rate)
