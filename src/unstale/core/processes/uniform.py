"""Gaps spread evenly between two times: jittered polling."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order
from unstale.errors import require


class Uniform(Process):
    """Gaps uniform on [low, high]; NBU, for the hazard 1/(high − x) only grows.

    Up to low the age is uniform; beyond it P(A > x) = rate·(high − x)²/(2·(high − low)).

    >>> Uniform(1.0, 3.0).age_survival(1.0)
    0.5
    """

    parameters = ("low", "high")
    ageing = Ageing.NBU

    def __init__(self, low: float, high: float) -> None:
        self.low = number("low", low, least=0, remedy="give the shortest gap")
        self.high = number("high", high, above=0, remedy="give the longest gap")
        require(self.low < self.high, "low", self.low, f"must be below high {self.high}", "use Constant if equal")
        self.rate = checked_rate(1.0 / (self.low / 2 + self.high / 2), "the rate 2/(low + high)")
        self.end = self.high
        self.kinks = (self.low, self.high) if self.low > 0 else (self.high,)

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return np.clip((self.high - x) / self._width, 0.0, 1.0)

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        return np.clip((x - self.low) / self._width, 0.0, 1.0)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        x, beyond = self._split(x)
        return self.rate * (x - beyond / self._width * beyond / 2)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        x, _ = self._split(x)
        left = self.high - x
        return np.where(x < self.low, 1.0 - self.rate * x, self.rate * left * (left / self._width) / 2)

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """rate·(x² − d²·(low + 2d/3)/(high − low))/2, d = (x − low)⁺, x at most high."""
        x, beyond = self._split(x)
        later = self.rate * beyond * (beyond / self._width) * (self.low + 2 * beyond / 3)
        return (self.rate * x * x - later) / 2

    @of_order
    def moment(self, n: int) -> float:
        """(highⁿ⁺¹ − lowⁿ⁺¹)/((n+1)(high − low)), divided out."""
        return float(np.float64(self.high) ** n * np.mean((self.low / self.high) ** np.arange(n + 1)))

    @property
    def variance(self) -> float:
        return self._width * self._width / 12

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return rng.uniform(self.low, self.high, size)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return self.high * np.sqrt(rng.uniform((self.low / self.high) ** 2, 1.0, size))

    def with_rate(self, rate: float) -> Uniform:
        factor = self.rate / checked_rate(rate)
        return Uniform(self.low * factor, self.high * factor)

    @property
    def _width(self) -> float:
        return self.high - self.low

    def _split(self, x: Floats) -> tuple[Floats, Floats]:
        x = np.minimum(x, self.high)
        return x, np.maximum(x - self.low, 0.0)
