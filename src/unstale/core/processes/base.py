"""What every change and poll process answers, and how the answers follow from each other.

Rules of this file:
1. A process is described by the law of its gaps; time has no unit, rates are per that unit.
2. A member gives `rate`, `survival`, `age_cdf`, `age_partial_mean`, `moment`, `sample` and its traits;
   everything else follows here. Closed forms override what follows when they are exact or faster.
3. Functions take anything array-like and return float for a scalar, an array otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain


class Ageing(Enum):
    """How the rest of a gap compares with a new one (004, section IV-B)."""

    NBU = "new better than used"
    NWU = "new worse than used"
    MEMORYLESS = "memoryless"
    NEITHER = "neither"


class Process(ABC):
    """A stationary stream of events, known by the law of its gaps.

    The age A is the time since the last event, seen at a random time; its density is `rate·survival`
    [003 eq. 9].
    """

    #: events per unit of time, the inverse of the mean gap
    rate: float
    #: how the rest of a gap compares with a new one
    ageing: Ageing
    #: every gap is a multiple of this, or None if there is no such number [003 footnote 2]
    span: float | None = None
    #: gaps never exceed this
    end: float = np.inf
    #: points where `survival` jumps or bends, ascending: quadrature splits there
    kinks: tuple[float, ...] = ()

    @abstractmethod
    def survival(self, x: ArrayLike) -> Floats | float:
        """P(gap > x)."""

    @abstractmethod
    def age_cdf(self, x: ArrayLike) -> Floats | float:
        """P(A ≤ x) = rate·∫₀ˣ survival [003 eq. 9], accurate relative to itself for small x."""

    @abstractmethod
    def age_partial_mean(self, x: ArrayLike) -> Floats | float:
        """E[A; A ≤ x] = (rate/2)·E[min(gap, x)²], accurate relative to itself for small x.

        It is the value φ of polling after x under freshness, and its limit decides abandonment.
        """

    @abstractmethod
    def moment(self, n: int) -> float:
        """E[gapⁿ], inf where the integral diverges."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Independent gaps drawn with `rng`."""

    @abstractmethod
    def with_rate(self, rate: float) -> Self:
        """The same shape with another rate: every gap multiplied by one constant."""

    # ---- what follows ----

    @property
    def mean(self) -> float:
        """The mean gap, 1/rate."""
        return 1.0 / self.rate

    @property
    def variance(self) -> float:
        """Variance of the gaps, inf if the second moment is."""
        second = self.moment(2)
        return second - self.mean**2 if np.isfinite(second) else np.inf

    def cdf(self, x: ArrayLike) -> Floats | float:
        """P(gap ≤ x)."""
        return plain(1.0 - np.asarray(self.survival(x)))

    def age_survival(self, x: ArrayLike) -> Floats | float:
        """P(A > x): also the probability that nothing changes within x of a random moment."""
        return plain(1.0 - np.asarray(self.age_cdf(x)))

    def age_density(self, x: ArrayLike) -> Floats | float:
        """Density of A at x, `rate·survival(x)`."""
        return plain(self.rate * np.asarray(self.survival(x)))

    def age_shortfall(self, x: ArrayLike) -> Floats | float:
        """E[(x − A)⁺] = ∫₀ˣ age_cdf: expected age of a copy x after its poll [000 sect. 2.2]."""
        x = numbers("x", x, least=0, infinite=True)
        with np.errstate(invalid="ignore"):
            out = x * np.asarray(self.age_cdf(x)) - np.asarray(self.age_partial_mean(x))
        return plain(np.where(np.isinf(x), np.inf, np.maximum(out, 0.0)))

    def age_moment(self, n: int) -> float:
        """E[Aⁿ] = E[gapⁿ⁺¹]·rate/(n+1) [003 eq. 25 with w = xⁿ]."""
        return self.moment(n + 1) * self.rate / (n + 1)

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        """P(the current gap lasts another x, given that it has lasted `age`); NaN beyond the longest gap."""
        x, a = np.asarray(x, float), np.asarray(age, float)
        with np.errstate(invalid="ignore", divide="ignore"):
            return plain(np.asarray(self.survival(a + x)) / np.asarray(self.survival(a)))

    def sample_age(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Ages at random times; by symmetry also the wait from a random time to the next event [003 eq. 9].

        Length-biased gaps cut uniformly: a gap is met with probability in proportion to its length.
        """
        return self.sample_length_biased(rng, size) * rng.random(size)

    @abstractmethod
    def sample_length_biased(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Gaps as seen from random times: density x·f(x)·rate."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({shown})"


def checked_rate(rate: object, name: str = "rate") -> float:
    """A rate every process can have: finite and above 0."""
    return number(name, rate, above=0, remedy="give events per unit of time, for example 0.5")
