"""Heavy-tailed gaps: bursts of changes, then long silence. Also a Poisson source of uncertain rate."""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

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

_NODES, _WEIGHTS = leggauss(12)


class Pareto(Process):
    """Gaps with P(gap > x) = (1 + x/scale)^(−alpha), alpha > 1; the age is Pareto with alpha − 1.

    The smaller alpha, the heavier the tail: the variance of gaps is infinite for alpha ≤ 2, and then so is
    the mean age, and polling such a source always pays in the end. It is the gap law of a Poisson source
    whose rate is Gamma(alpha, exposure = scale) distributed. NWU: the longer the silence, the longer it
    will last.

    >>> round(Pareto(3.0, 2.0).survival(2.0), 6), Pareto(3.0, 2.0).rate
    (0.125, 1.0)
    """

    parameters = ("alpha", "scale")
    ageing = Ageing.NWU

    def __init__(self, alpha: float, scale: float) -> None:
        remedy = "the mean gap is infinite otherwise, give a larger alpha"
        self.alpha = number("alpha", alpha, above=1, remedy=remedy)
        self.scale = number("scale", scale, above=0, remedy="give the time at which survival is 2^-alpha")
        self.rate = checked_rate((self.alpha - 1.0) / self.scale, "the rate (alpha - 1)/scale")
        self.tail = self.alpha

    @classmethod
    def from_rate(cls, alpha: float, rate: float) -> Pareto:
        """The process with this tail and this many events per unit of time."""
        alpha = number("alpha", alpha, above=1, remedy="the mean gap is infinite otherwise, give a larger alpha")
        return cls(alpha, (alpha - 1.0) / checked_rate(rate))

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.exp(-self.alpha * self._log(x))

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        return -np.expm1(-self.alpha * self._log(x))

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        return -np.expm1(-(self.alpha - 1.0) * self._log(x))

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        return np.exp(-(self.alpha - 1.0) * self._log(x))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """scale·(1 − (1 + βz)(1+z)^(−β))/(β − 1), z = x/scale, β = alpha − 1; its limit at β = 1.

        Written as −expm1(−d)/(β−1) it holds through β = 1; for small z the two terms of d cancel, and a Gauss
        rule for the same integral, ∫₀^log(1+z) e^(−βt)(eᵗ−1) dt, takes over.
        """
        beta, log = self.alpha - 1.0, self._log(x)
        z, b = x / self.scale, beta - 1.0
        share = np.where(np.isinf(z), 1.0, z / (1.0 + z))
        if b == 0.0:
            out = self.scale * (log - share)
        elif beta < 0.5:
            d = beta * log - np.where(np.isinf(z), np.log(beta) + log, np.log1p(beta * z))
            # exp(−d) may overflow where scale·exp(−d) does not.
            grown = np.where(d < -700.0, np.exp(np.log(self.scale) - d), self.scale * np.expm1(-d))
            out = np.where(np.isinf(x), np.inf, grown / -b)
        else:
            out = self.scale * -np.expm1(np.log1p(b * share) - b * log) / b
        small = (beta + 1.0) * log < 1.0
        if np.any(small):
            t = log[small][..., None] * (_NODES + 1.0) / 2
            rule = np.sum(_WEIGHTS * np.exp(-beta * t) * np.expm1(t), axis=-1) * log[small] / 2
            out = np.asarray(out)
            out[small] = self.scale * beta * rule
        return out

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        """(1 + x/(scale + age))^(−alpha): what has lasted longer will last longer."""
        checked, age = checked_residual(x, age)
        with np.errstate(all="ignore"):
            return plain(np.exp(-self.alpha * np.log1p(checked / (self.scale + age))))

    @of_order
    def moment(self, n: int) -> float:
        if n >= self.alpha:
            return np.inf
        orders = np.arange(1, n + 1)
        return float(np.prod(orders * self.scale / (self.alpha - orders)))

    @property
    def variance(self) -> float:
        """mean²·alpha/(alpha − 2), inf for alpha ≤ 2."""
        factor = self.alpha / (self.alpha - 2.0) if self.alpha > 2.0 else np.inf
        return factor * self.mean * self.mean

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        with np.errstate(over="ignore"):
            return self.scale * np.expm1(rng.standard_exponential(size) / self.alpha)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        with np.errstate(over="ignore", divide="ignore"):
            return self.scale * rng.gamma(2.0, 1.0, size) / rng.gamma(self.alpha - 1.0, 1.0, size)

    def sample_age(self, rng: np.random.Generator, size: Size) -> Floats:
        with np.errstate(over="ignore"):
            return self.scale * np.expm1(rng.standard_exponential(size) / (self.alpha - 1.0))

    def with_rate(self, rate: float) -> Pareto:
        return Pareto.from_rate(self.alpha, rate)

    def _log(self, x: Floats) -> Floats:
        """log(1 + x/scale), also where x/scale overflows."""
        z = x / self.scale
        return np.where(np.isinf(z), np.log(x) - np.log(self.scale), np.log1p(z))
