"""Gaps that are products of many causes: human rhythms, editing sessions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, number, plain
from unstale.core.processes.base import (
    Ageing,
    Process,
    Size,
    checked_rate,
    checked_residual,
    elementwise,
    of_order,
)


class LogNormal(Process):
    """Gaps median·e^(sigma·N), N standard normal; mean = median·e^(sigma²/2).

    Neither NBU nor NWU: a young gap is likelier to end soon the older it gets, an old one less so. With
    u = log(x/median)/sigma and Φ the normal law, survival is Φ(−u) and
    P(A ≤ x) = rate·x·Φ(−u) + Φ(u − sigma). sigma is at most 18, where E[gap²] nears the largest double.

    >>> round(LogNormal(1.0, 1.0).age_cdf(1.0), 6)
    0.461921
    """

    parameters = ("median", "sigma")
    ageing = Ageing.NEITHER

    def __init__(self, median: float, sigma: float) -> None:
        self.median = number("median", median, above=0, remedy="give the gap that half of the gaps exceed")
        self.sigma = _checked_sigma(sigma)
        self.rate = checked_rate(np.exp(-(self.sigma**2) / 2) / self.median, "the rate 1/mean")

    @classmethod
    def from_rate(cls, sigma: float, rate: float) -> LogNormal:
        """The process with this spread and this many events per unit of time."""
        return cls(np.exp(-(_checked_sigma(sigma) ** 2) / 2) / checked_rate(rate), sigma)

    @elementwise
    def survival(self, x: Floats) -> Floats:
        share: Floats = special.ndtr(-self._score(x))
        return share

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        share: Floats = special.ndtr(self._score(x))
        return share

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        u = self._score(x)
        return np.minimum(self._held(x) + np.asarray(special.ndtr(u - self.sigma), dtype=np.float64), 1.0)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        """Φ(sigma − u) − rate·x·Φ(−u); in the tail φ(u−sigma)·(M(u−sigma) − M(u)), M = (1−Φ)/φ."""
        u = self._score(x)
        v = u - self.sigma
        mills = np.sqrt(np.pi / 2) * (special.erfcx(v / np.sqrt(2)) - special.erfcx(u / np.sqrt(2)))
        tail = np.where(v < 40.0, np.exp(-v * v / 2) / np.sqrt(2 * np.pi) * mills, 0.0)
        near = special.ndtr(-v) - self._held(x)
        return np.where(v > 0.0, tail, np.clip(near, 0.0, 1.0))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """rate·x²·Φ(−u)/2 + E[A]·Φ(u − 2·sigma), E[A] = rate·E[gap²]/2."""
        u, held = self._score(x), self._held(x)
        whole = self.median * np.exp(1.5 * self.sigma**2) / 2
        part: Floats = special.ndtr(u - 2.0 * self.sigma)
        return np.asarray(np.where(held > 0, x * held / 2, 0.0) + whole * part)

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        checked, age = checked_residual(x, age)
        with np.errstate(all="ignore"):
            log = special.log_ndtr(-self._score(age + checked)) - special.log_ndtr(-self._score(age))
            return plain(np.asarray(np.exp(log)))

    @of_order
    def moment(self, n: int) -> float:
        return float(np.float64(self.median) ** n * np.exp(np.float64(n * self.sigma) ** 2 / 2))

    @property
    def variance(self) -> float:
        """mean²·(e^(sigma²) − 1)."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.mean) ** 2 * np.expm1(self.sigma**2))

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return self.median * np.exp(self.sigma * rng.standard_normal(size))

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return self.median * np.exp(self.sigma * (rng.standard_normal(size) + self.sigma))

    def with_rate(self, rate: float) -> LogNormal:
        return LogNormal.from_rate(self.sigma, rate)

    def _score(self, x: Floats) -> Floats:
        """(log x − log median)/sigma, by the quotient unless that leaves the doubles."""
        ratio = x / self.median
        inside = (ratio > 1e-300) & (ratio < np.inf)
        return np.where(inside, np.log(ratio), np.log(x) - np.log(self.median)) / self.sigma

    def _held(self, x: Floats) -> Floats:
        """rate·x·survival(x): the gaps longer than x count as x."""
        share: Floats = special.ndtr(-self._score(x))
        return np.where(share > 0, self.rate * x * share, 0.0)


def _checked_sigma(sigma: object) -> float:
    return number("sigma", sigma, above=0, most=18, remedy="give the standard deviation of the log of a gap")
