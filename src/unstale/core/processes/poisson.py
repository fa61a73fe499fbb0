"""Events without memory: the assumption of 000–002, and the yardstick for all others."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from unstale.core.checks import Floats, numbers, plain
from unstale.core.processes.base import Ageing, Process, checked_rate


class Poisson(Process):
    """Gaps with P(gap > x) = e^(−rate·x); the age has the same law as the gap.

    >>> float(round(Poisson(2.0).survival(0.5), 6))
    0.367879
    """

    ageing = Ageing.MEMORYLESS

    def __init__(self, rate: float) -> None:
        self.rate = checked_rate(rate)

    def survival(self, x: ArrayLike) -> Floats | float:
        return plain(np.exp(-self.rate * numbers("x", x, least=0, infinite=True)))

    def cdf(self, x: ArrayLike) -> Floats | float:
        return plain(-np.expm1(-self.rate * numbers("x", x, least=0, infinite=True)))

    def age_cdf(self, x: ArrayLike) -> Floats | float:
        return self.cdf(x)

    def age_survival(self, x: ArrayLike) -> Floats | float:
        return self.survival(x)

    def age_partial_mean(self, x: ArrayLike) -> Floats | float:
        """P(2, rate·x)/rate, P(2, y) = 1 − (1+y)e^(−y)."""
        return plain(gammainc(2.0, self.rate * numbers("x", x, least=0, infinite=True)) / self.rate)

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        return plain(np.broadcast_arrays(np.asarray(self.survival(x)), np.asarray(age))[0] * 1.0)

    def moment(self, n: int) -> float:
        return math.factorial(n) / self.rate**n

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        return rng.exponential(1.0 / self.rate, size)

    def sample_length_biased(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        return rng.gamma(2.0, 1.0 / self.rate, size)

    def with_rate(self, rate: float) -> Poisson:
        return Poisson(rate)
