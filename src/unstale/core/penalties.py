"""How much harm a stale copy does, as a function of its age.

A penalty w is 0 for negative ages. The formulas need its integrals, so each member gives them exactly:
w2(x) = ∫₀ˣ w, w3(x) = ∫₀ˣ w2 [003 eq. 24], and v(x) = x·w(x) − w2(x) = ∫₀ˣ y dw(y) without cancellation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.exponential import exp_remainder
from unstale.core.gamma2 import p2
from unstale.errors import InputError, sentence


class Penalty(ABC):
    """Harm per unit of time of a copy whose age is x; `staleness` is its long-run average [003 eqs. 2–3].

    Members are non-negative. Age-optimality of even polls and convexity in the sync rate hold for
    `nondecreasing` members only [003 theorems 8, 10].
    """

    #: w(∞)
    limit: float
    #: p if w(c·x) = cᵖ·w(x) for every c > 0, else None
    degree: float | None = None
    #: does more age never hurt less?
    nondecreasing: bool = True
    #: ages where w jumps or bends, ascending: quadrature splits there
    kinks: tuple[float, ...] = ()
    #: the age up to which w is 0: a copy that is never older does no harm
    harmless: float = 0.0

    def w(self, x: ArrayLike) -> Floats | float:
        """The penalty at age x; 0 for x < 0."""
        x = numbers("x", x, infinite=True)
        with np.errstate(over="ignore", invalid="ignore"):
            return plain(np.where(x < 0, 0.0, self._w(np.maximum(x, 0.0))))

    def w2(self, x: ArrayLike) -> Floats | float:
        """∫₀ˣ w: harm collected by a copy that has been stale for x."""
        return self._at(self._w2, x)

    def w3(self, x: ArrayLike) -> Floats | float:
        """∫₀ˣ w2: harm collected over x by a steady stream of unseen changes, per unit of change_rate."""
        return self._at(self._w3, x)

    def v(self, x: ArrayLike) -> Floats | float:
        """x·w(x) − w2(x) = ∫₀ˣ y dw(y), relative to itself accurate for every x."""
        return self._at(self._v, x)

    @staticmethod
    def _at(f: Callable[[Floats], Floats], x: ArrayLike) -> Floats | float:
        x = np.maximum(numbers("x", x, infinite=True), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            return plain(np.asarray(f(x), dtype=np.float64))

    # what a member gives, for x ≥ 0

    @abstractmethod
    def _w(self, x: Floats) -> Floats: ...

    @abstractmethod
    def _w2(self, x: Floats) -> Floats: ...

    @abstractmethod
    def _w3(self, x: Floats) -> Floats: ...

    @abstractmethod
    def _v(self, x: Floats) -> Floats: ...

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if k in self._shown)
        return f"{type(self).__name__}({shown})"

    #: the constructor's arguments: they make the repr, equality and the hash
    _shown: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Constant(Penalty):
    """w = 1: being stale is all that matters; staleness is then 1 − freshness [000 definition 1].

    >>> Constant().w2(3.0)
    3.0
    """

    limit = 1.0
    degree = 0.0

    def _w(self, x: Floats) -> Floats:
        return np.ones_like(x)

    def _w2(self, x: Floats) -> Floats:
        return x

    def _w3(self, x: Floats) -> Floats:
        return 0.5 * x * x

    def _v(self, x: Floats) -> Floats:
        return np.zeros_like(x)


class Power(Penalty):
    """w = x^exponent, exponent > 0: the longer, the worse.

    >>> Power(2).w3(2.0)
    1.3333333333333333
    """

    limit = math.inf
    _shown: tuple[str, ...] = ("exponent",)

    def __init__(self, exponent: float) -> None:
        self.exponent = number("exponent", exponent, above=0, remedy="use Constant() for an exponent of 0")

    @property
    def degree(self) -> float:  # type: ignore[override]
        return self.exponent

    def _w(self, x: Floats) -> Floats:
        return np.asarray(x**self.exponent)

    def _w2(self, x: Floats) -> Floats:
        return np.asarray(x ** (self.exponent + 1) / (self.exponent + 1))

    def _w3(self, x: Floats) -> Floats:
        return np.asarray(x ** (self.exponent + 2) / ((self.exponent + 1) * (self.exponent + 2)))

    def _v(self, x: Floats) -> Floats:
        return self.exponent * self._w2(x)


class Linear(Power):
    """w = x: staleness is then the mean age [000 definition 2].

    >>> Linear().w2(4.0)
    8.0
    """

    _shown: tuple[str, ...] = ()

    def __init__(self) -> None:
        super().__init__(1.0)


class Saturating(Penalty):
    """w = 1 − e^(−x/scale): harm grows with age until, after a few `scale`, the copy is simply wrong.

    >>> round(Saturating(2.0).w(2.0), 6)
    0.632121
    """

    limit = 1.0
    _shown: tuple[str, ...] = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = number("scale", scale, above=0, remedy="give the age at which w reaches 63 %")

    def _w(self, x: Floats) -> Floats:
        return np.asarray(-np.expm1(-x / self.scale))

    def _w2(self, x: Floats) -> Floats:
        return self.scale * exp_remainder(2, x / self.scale)

    def _w3(self, x: Floats) -> Floats:
        return self.scale**2 * exp_remainder(3, x / self.scale)

    def _v(self, x: Floats) -> Floats:
        return self.scale * p2(x / self.scale)


class Decay(Penalty):
    """w = e^(−rate·x): a change matters while it is news.

    The source penalty of a decreasing w is not convex in the sync rate, and the update penalty abandons
    sources, although [003 theorem 12] says it never does: `∫ y·w(y) dy` is finite here.

    >>> round(Decay(1.0).w2(1.0), 6)
    0.632121
    """

    limit = 0.0
    nondecreasing = False
    _shown: tuple[str, ...] = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = number("rate", rate, above=0, remedy="use Constant() for a penalty that does not fade")

    def _w(self, x: Floats) -> Floats:
        return np.exp(-self.rate * x)

    def _w2(self, x: Floats) -> Floats:
        return exp_remainder(1, self.rate * x) / self.rate

    def _w3(self, x: Floats) -> Floats:
        return exp_remainder(2, self.rate * x) / self.rate**2

    def _v(self, x: Floats) -> Floats:
        return -p2(self.rate * x) / self.rate


class Reciprocal(Penalty):
    """w = 1/(1 + x/scale): harm that fades slowly [003 eqs. 56–57, with scale = 1].

    >>> round(Reciprocal().w2(1.0), 6)
    0.693147
    """

    limit = 0.0
    nondecreasing = False
    _shown: tuple[str, ...] = ("scale",)

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = number("scale", scale, above=0, remedy="give the age at which w has halved")

    def _w(self, x: Floats) -> Floats:
        return 1.0 / (1.0 + x / self.scale)

    def _w2(self, x: Floats) -> Floats:
        return self.scale * np.log1p(x / self.scale)

    def _w3(self, x: Floats) -> Floats:
        y = x / self.scale
        return self.scale**2 * (1.0 + y) * _log_excess(y)

    def _v(self, x: Floats) -> Floats:
        return -self.scale * _log_excess(x / self.scale)


class Deadline(Penalty):
    """w = 1 from age tau on, 0 before: staleness is then 1 − consistency(tau) [003 eq. 41].

    >>> Deadline(2.0).w([1.9, 2.0]).tolist()
    [0.0, 1.0]
    """

    limit = 1.0
    _shown: tuple[str, ...] = ("tau",)

    def __init__(self, tau: float) -> None:
        self.tau = number("tau", tau, above=0, remedy="use Constant() when any age is too old")
        self.kinks = (self.tau,)
        self.harmless = self.tau

    def _w(self, x: Floats) -> Floats:
        return np.where(x >= self.tau, 1.0, 0.0)

    def _w2(self, x: Floats) -> Floats:
        return np.maximum(x - self.tau, 0.0)

    def _w3(self, x: Floats) -> Floats:
        return 0.5 * np.maximum(x - self.tau, 0.0) ** 2

    def _v(self, x: Floats) -> Floats:
        return np.where(x >= self.tau, self.tau, 0.0)


def require_nondecreasing(penalty: Penalty, what: str) -> None:
    """Refuse a penalty that falls with age where the result rests on its growth [003 theorems 8, 10]."""
    if not penalty.nondecreasing:
        remedy = "use a non-decreasing penalty such as Constant(), Linear() or Deadline(tau)"
        raise InputError(sentence("penalty", penalty, f"must not decrease with age for {what}", remedy))


def _log_excess(y: Floats) -> Floats:
    """log(1+y) − y/(1+y) ≥ 0, a power series in z = y/(1+y) with positive terms where y is small."""
    z = np.where(np.isinf(y), 1.0, y / (1.0 + y))
    small = np.minimum(z, 0.2)
    series = small**2 * np.polynomial.polynomial.polyval(small, _LOG_SERIES)
    return np.where(z < 0.2, series, np.log1p(y) - z)


_LOG_SERIES = 1.0 / np.arange(2.0, 27.0)
