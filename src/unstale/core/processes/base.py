"""What every change and poll process answers, and how the answers follow from each other.

Rules of this file:
1. A process is described by the law of its gaps; time has no unit, rates are per that unit.
2. A member gives `rate`, `survival`, `age_cdf`, `age_partial_mean`, `moment`, `sample` and its traits;
   everything else follows here. Closed forms override what follows when they are exact or faster.
3. Functions take anything array-like and return float for a scalar, an array otherwise. `elementwise` checks
   the argument and silences overflow, so that a member is only its formula.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.errors import require

P = TypeVar("P")
Size = int | tuple[int, ...]


def elementwise(formula: Callable[[P, Floats], Any]) -> Callable[[P, ArrayLike], Floats | float]:
    """A formula on a float64 array as a method on anything array-like from 0 to inf."""

    @functools.wraps(formula)
    def method(self: P, x: ArrayLike) -> Floats | float:
        checked = numbers("x", x, least=0, infinite=True, remedy="give a time since the last event")
        # np.where evaluates both of its branches: the one not taken may overflow.
        with np.errstate(all="ignore"):
            return plain(np.asarray(formula(self, checked), dtype=np.float64))

    return method


def of_order(formula: Callable[[P, int], Any]) -> Callable[[P, int], float]:
    """A formula for E[gapⁿ] as a method that checks n and says inf where double precision overflows."""

    @functools.wraps(formula)
    def method(self: P, n: int) -> float:
        order = number("n", n, least=0, most=1000)
        require(order == int(order), "n", n, "must be a whole number", "give the order of a moment, such as 2")
        with np.errstate(all="ignore"):
            return float(formula(self, int(order)))

    return method


class Ageing(Enum):
    """How the rest of a gap compares with a new one (004, section IV-B)."""

    NBU = "new better than used"
    NWU = "new worse than used"
    MEMORYLESS = "memoryless"
    NEITHER = "neither, or not known"


class Process(ABC):
    """A stationary stream of events, known by the law of its gaps.

    The age A is the time since the last event, seen at a random time; its density is `rate·survival`
    [003 eq. 9].
    """

    #: the constructor's arguments: they make the repr, equality and the hash
    parameters: ClassVar[tuple[str, ...]] = ("rate",)
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
    #: E[gapⁿ] is finite for n below this, infinite from it on
    tail: float = np.inf

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
    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        """Independent gaps drawn with `rng`."""

    @abstractmethod
    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        """Gaps as seen from random times: density x·f(x)·rate."""

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
        return max(second - self.mean * self.mean, 0.0) if np.isfinite(second) else np.inf

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        """P(gap ≤ x)."""
        return 1.0 - np.asarray(self.survival(x))

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        """P(A > x): also the probability that nothing changes within x of a random moment."""
        return 1.0 - np.asarray(self.age_cdf(x))

    @elementwise
    def age_density(self, x: Floats) -> Floats:
        """Density of A at x, `rate·survival(x)`."""
        return self.rate * np.asarray(self.survival(x))

    @elementwise
    def age_shortfall(self, x: Floats) -> Floats:
        """E[(x − A)⁺] = ∫₀ˣ age_cdf: expected age of a copy x after its poll [000 sect. 2.2].

        age_cdf is concave, so the difference is at least half of its first term and loses one bit at most.
        """
        out = x * np.asarray(self.age_cdf(x)) - np.asarray(self.age_partial_mean(x))
        return np.where(np.isinf(x), np.inf, np.maximum(out, 0.0))

    def age_moment(self, n: int) -> float:
        """E[Aⁿ] = E[gapⁿ⁺¹]·rate/(n+1) [003 eq. 25 with w = xⁿ]."""
        return self.moment(n + 1) * self.rate / (n + 1)

    def residual_survival(self, x: ArrayLike, age: ArrayLike) -> Floats | float:
        """P(the current gap lasts another x, given that it has lasted `age`).

        NaN where no gap lasts that long, or, without a closed form, where survival(age) underflows.
        """
        x, age = checked_residual(x, age)
        with np.errstate(all="ignore"):
            return plain(np.asarray(self.survival(age + x)) / np.asarray(self.survival(age)))

    def sample_age(self, rng: np.random.Generator, size: Size) -> Floats:
        """Ages at random times; by symmetry also the wait from a random time to the next event [003 eq. 9].

        Length-biased gaps cut uniformly: a gap is met with probability in proportion to its length.
        """
        return self.sample_length_biased(rng, size) * rng.random(size)

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        """Event times in [0, horizon] of the stationary stream, ascending.

        The first wait is drawn like an age, the rest are gaps: so the count has mean rate·horizon exactly.
        """
        horizon = number("horizon", horizon, least=0)
        now = float(self.sample_age(rng, 1)[0])
        parts = [np.array([now])]
        while now <= horizon:
            expected = (horizon - now) * self.rate
            gaps = self.sample(rng, int(min(expected + 4 * expected**0.5 + 16, 1e6)))
            gaps[0] += now
            times = np.cumsum(gaps)
            parts.append(times)
            now = float(times[-1])
        path = np.concatenate(parts)
        return path[: np.searchsorted(path, horizon, side="right")]

    def _key(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.parameters)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Process) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.parameters)
        return f"{type(self).__name__}({shown})"


def checked_rate(rate: object, name: str = "rate") -> float:
    """A rate every process can have: finite and above 0."""
    return number(name, rate, above=0, remedy="give events per unit of time, for example 0.5")


def checked_residual(x: ArrayLike, age: ArrayLike) -> tuple[Floats, Floats]:
    """The arguments of `residual_survival`: any x from 0 to inf, an age that has really passed."""
    checked = numbers("x", x, least=0, infinite=True, remedy="give a time from now")
    return checked, numbers("age", age, least=0, remedy="give the time since the last event")
