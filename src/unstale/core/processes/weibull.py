"""Gaps whose hazard is a power of the age: burstier than Poisson, or steadier."""

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

# Below 1/200 the mean gap of a unit scale, Γ(1 + 1/shape), overflows; far above it already means nothing.
_LEAST_SHAPE = 0.01


class Weibull(Process):
    """Gaps with P(gap > x) = exp(−(x/scale)^shape).

    shape < 1 gives bursts and silences (NWU), 1 is Poisson, > 1 is steadier (NBU); shape → ∞ is constant.
    With y = (x/scale)^shape the age has P(A ≤ x) = P(1/shape, y), the regularised incomplete gamma.
    Accuracy falls with shape·1e-16, for y amplifies the rounding of x by the shape.

    >>> round(Weibull(2.0, 1.0).survival(1.0), 6)
    0.367879
    """

    parameters = ("shape", "scale")

    def __init__(self, shape: float, scale: float) -> None:
        self.shape = _checked_shape(shape)
        self.scale = number("scale", scale, above=0, remedy="give the time at which survival is 1/e")
        self.rate = checked_rate(1.0 / self.scale / float(special.gamma(1.0 + 1.0 / self.shape)), "the rate 1/mean")
        self.ageing = Ageing.MEMORYLESS
        if self.shape != 1.0:
            self.ageing = Ageing.NWU if self.shape < 1.0 else Ageing.NBU

    @classmethod
    def from_rate(cls, shape: float, rate: float) -> Weibull:
        """The process with this shape and this many events per unit of time."""
        return cls(shape, 1.0 / checked_rate(rate) / float(special.gamma(1.0 + 1.0 / _checked_shape(shape))))

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.exp(-self._power(x))

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        return -np.expm1(-self._power(x))

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        return _lower(1.0 / self.shape, self._power(x), self.rate * x, 1.0)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        y = self._power(x)
        return np.where(y < 0.01, 1.0 - np.asarray(self.age_cdf(x)), special.gammaincc(1.0 / self.shape, y))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """E[A]·P(2/shape, y): E[A] = rate·scale²·Γ(1 + 2/shape)/2."""
        part = 2.0 / self.shape
        whole = self.rate * self.scale * (self.scale * special.gamma(1.0 + part)) / 2
        return _lower(part, self._power(x), self.rate * x * x / 2, whole)

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        """exp(−(y(age + x) − y(age))), the difference taken without cancellation."""
        checked, age = checked_residual(x, age)
        with np.errstate(all="ignore"):
            grown = self._power(age) * np.expm1(self.shape * np.log1p(checked / age))
            return plain(np.exp(-np.where(age <= checked, self._power(age + checked) - self._power(age), grown)))

    @of_order
    def moment(self, n: int) -> float:
        return np.float64(self.scale) ** n * float(special.gamma(1.0 + n / self.shape))

    @property
    def variance(self) -> float:
        """mean²·(Γ(1+2t)/Γ(1+t)² − 1), t = 1/shape; for small t by the series of log Γ, whose ends cancel."""
        t = 1.0 / self.shape
        log = float(special.gammaln(1.0 + 2.0 * t) - 2.0 * special.gammaln(1.0 + t))
        if t < 0.1:
            n = np.arange(2, 30)
            log = float(np.sum(special.zeta(n) / n * (2.0**n - 2.0) * (-t) ** n))
        with np.errstate(over="ignore"):
            return float(np.expm1(log) * self.mean * self.mean)

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return self.scale * rng.weibull(self.shape, size)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return self.scale * rng.gamma(1.0 + 1.0 / self.shape, 1.0, size) ** (1.0 / self.shape)

    def with_rate(self, rate: float) -> Weibull:
        return Weibull.from_rate(self.shape, rate)

    def _power(self, x: Floats) -> Floats:
        return (x / self.scale) ** self.shape


def _checked_shape(shape: object) -> float:
    return number("shape", shape, least=_LEAST_SHAPE, remedy="give 1 for Poisson, less for bursts, more for even gaps")


def _lower(a: float, y: Floats, leading: Floats, whole: float) -> Floats:
    """whole·P(a, y), given its leading term at y → 0, by the series where yᵃ underflows or loses digits."""
    series = np.ones_like(y)
    for n in range(8, 0, -1):
        series = 1.0 + series * y / (a + n)
    return np.where(y < 0.01, leading * np.exp(-y) * series, whole * special.gammainc(a, y))
