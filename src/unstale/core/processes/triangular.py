"""The gaps of a random-order sweep: each round polls every source once, at a fresh random place."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order


class Triangular(Process):
    """Gaps on [0, 2·mean] with a symmetric triangular density: what is left of one round plus a uniform
    part of the next [000 Lemma 2].

    With c = x/mean: survival is 1 − c²/2 up to c = 1 and (2−c)²/2 up to c = 2. The log-concave density makes
    it NBU. Consecutive gaps of a sweep are dependent; a process drawn from here has independent ones.

    >>> Triangular(1.0).survival(1.0)
    0.5
    """

    parameters = ("mean",)
    ageing = Ageing.NBU

    def __init__(self, mean: float) -> None:
        self._mean = number("mean", mean, above=0, remedy="give the mean time between two events")
        self.rate = checked_rate(1.0 / self._mean, "the rate 1/mean")
        self.end = 2.0 * self._mean
        self.kinks = (self._mean, self.end)

    @property
    def mean(self) -> float:
        return self._mean

    @elementwise
    def survival(self, x: Floats) -> Floats:
        c, rest = self._split(x)
        return np.where(c <= 1.0, 1.0 - c * c / 2, rest * rest / 2)

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        c, rest = self._split(x)
        return np.where(c <= 1.0, c * c / 2, 1.0 - rest * rest / 2)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        c, rest = self._split(x)
        return np.where(c <= 1.0, c - c**3 / 6, 1.0 - rest**3 / 6)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        c, rest = self._split(x)
        return np.where(c <= 1.0, 1.0 - c + c**3 / 6, rest**3 / 6)

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """mean·(c²/2 − c⁴/8) up to c = 1, mean·(7/12 − r³/3 + r⁴/8), r = 2 − c, up to c = 2."""
        c, rest = self._split(x)
        near, far = c * c * (0.5 - c * c / 8), 7 / 12 - rest**3 * (1 / 3 - rest / 8)
        return self._mean * np.where(c <= 1.0, near, far)

    @of_order
    def moment(self, n: int) -> float:
        return np.float64(self._mean) ** n * (np.float64(2.0) ** (n + 2) - 2.0) / ((n + 1) * (n + 2))

    @property
    def variance(self) -> float:
        return self.moment(2) / 7

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._mean * (rng.random(size) + rng.random(size))

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        # A length-biased sum has one length-biased term, and a length-biased uniform is the root of one.
        return self._mean * (np.sqrt(rng.random(size)) + rng.random(size))

    def with_rate(self, rate: float) -> Triangular:
        return Triangular(1.0 / checked_rate(rate))

    def _split(self, x: Floats) -> tuple[Floats, Floats]:
        c = np.minimum(x / self._mean, 2.0)
        return c, 2.0 - c
