"""Poisson values and staleness without a unit: functions of x = change_rate·interval, for each order.

Freshness is worth ratio(x)·interval, age is worth age_ratio(x)·interval²; both ratios rise like x and
fall like 1/x or level off, so no power of x over- or underflows. Below 1 each form is e^(−k·x)
times a power series whose terms are all positive, above 1 the textbook form: nothing cancels anywhere.
The forms are E[·(X·x)] of the fixed ones, X the order's gap [000 Table 2].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from unstale.core.checks import Floats
from unstale.core.gamma2 import p2_inverse
from unstale.frozen import dataclass

Form = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Forms:
    """The forms of one order: φ = interval·ratio(x) under freshness, interval²·age_ratio(x) under age."""

    ratio: Form
    slope: Form
    staleness: Form
    inverse: Form
    age_ratio: Form
    #: age: dφ/d(interval) = interval·age_slope(x)
    age_slope: Form
    #: age: staleness = interval·age_staleness(x)
    age_staleness: Form
    #: freshness begins like square·x², age like cube·x³
    square: float
    cube: float

    def age_inverse(self, s: Floats) -> Floats:
        """The x with x²·age_ratio(x) = s, by Newton's method on logarithms, 1e-60 < s < 1e60.

        There the slope lies between 2 and 3, so the start (a lower bound within 1/2) needs four steps.
        """
        x = np.maximum(np.cbrt(s / self.cube), np.sqrt(s / self.square))
        for _ in range(5):
            ratio = self.age_ratio(x)
            x = x * np.exp(-np.log(x * x * ratio / s) * ratio / self.age_slope(x))
        return x


def _joined(far: Form, k: int, power: int, first: int, coefficient: Callable[[int], int | Fraction]) -> Form:
    """`far` above 1; below, xᵖᵒʷᵉʳ·e^(−k·x)·Σ coefficient(n)·xⁿ⁻ᶠⁱʳˢᵗ/n!, n from `first`."""
    terms = 20 if k == 1 else 28
    series = [float(Fraction(coefficient(n)) / math.factorial(n)) for n in range(first, first + terms)]

    def form(x: Floats) -> Floats:
        low = np.minimum(x, 1.0)
        total = np.full_like(low, series[-1])
        for c in series[-2::-1]:
            total *= low
            total += c
        return np.where(x < 1.0, low**power * np.exp(-k * low) * total, far(np.maximum(x, 1.0)))

    return form


def _q(x: Floats) -> Floats:
    return -np.expm1(-x) / x


def _fixed() -> Forms:
    def ratio(x: Floats) -> Floats:
        return _q(x) - np.exp(-x)

    return Forms(
        ratio=_joined(ratio, 1, 1, 2, lambda n: 1),
        slope=lambda x: np.minimum(x, 745.0) * np.exp(-x),
        staleness=_joined(lambda x: 1.0 - _q(x), 1, 1, 2, lambda n: n - 1),
        inverse=p2_inverse,
        age_ratio=_joined(lambda x: 0.5 - ratio(x) / x, 1, 1, 3, lambda n: (n - 2) * (n + 1) // 2),
        age_slope=lambda x: -np.expm1(-x),
        age_staleness=_joined(lambda x: 0.5 - (1.0 - _q(x)) / x, 1, 1, 3, lambda n: (n - 1) * (n - 2) // 2),
        square=1 / 2,
        cube=1 / 3,
    )


def _random() -> Forms:
    """Each form times a power of x and e^(2x) is a polynomial in x, e^x: hence the integer coefficients."""

    def whole(x: Floats) -> Floats:
        q, u = _q(x), np.exp(-x)
        return 1.0 - q * (3.0 * q - 2.0 * u)

    def far_slope(x: Floats) -> Floats:
        q, u = _q(x), np.exp(-x)
        return (q - u) * (6.0 * q - 2.0 * u) / x - 2.0 * q * u

    def stale(x: Floats) -> Floats:
        return 1.0 - (1.0 - _q(x) ** 2) / x

    def c_value(n: int) -> int:
        return math.perm(n, 2) * (1 << n) // 4 - 3 * (1 << n) + 6 + 2 * n

    def c_slope(n: int) -> int:
        return 6 * (1 << n) - 12 - 8 * n - 2 * math.perm(n, 2)

    def c_stale(n: int) -> int:
        return math.perm(n, 3) * (1 << n) // 8 - math.perm(n, 2) * (1 << n) // 4 + (1 << n) - 2

    def age(m: Fraction, of: Callable[[int], int]) -> Callable[[int], Fraction]:
        return lambda n: m * math.perm(n, 4) * (1 << n) / 16 - of(n)

    ratio = _joined(lambda x: whole(x) / x, 2, 1, 4, c_value)
    slope = _joined(far_slope, 2, 1, 4, c_slope)
    half, one = Fraction(7, 12), Fraction(7, 6)

    def inverse(s: Floats) -> Floats:
        # the log-odds of s are nearly 2·log(x): four Newton steps from a start within 15 %
        odds = s / (1.0 - s)
        x = np.sqrt(odds * (12.0 + 9.0 * s) / 7.0)
        for _ in range(5):
            q, u, p = _q(x), np.exp(-x), x * ratio(x)
            rest = q * (3.0 * q - 2.0 * u)
            x = x * np.exp(-np.log(p / rest / odds) * p * rest / (x * slope(x)))
        return np.where(s < 1.0, x, np.inf)

    return Forms(
        ratio=ratio,
        slope=slope,
        staleness=_joined(stale, 2, 1, 4, c_stale),
        inverse=inverse,
        age_ratio=_joined(lambda x: 7 / 12 - whole(x) / x / x, 2, 1, 5, age(half, c_value)),
        age_slope=_joined(lambda x: 7 / 6 - far_slope(x) / x, 2, 1, 5, age(one, c_slope)),
        age_staleness=_joined(lambda x: 7 / 12 - stale(x) / x, 2, 1, 5, age(half, c_stale)),
        square=7 / 12,
        cube=1 / 2,
    )


def _purely_random() -> Forms:
    def stale(x: Floats) -> Floats:
        return x / (1.0 + x)

    return Forms(
        ratio=lambda x: stale(x) / (1.0 + x),
        slope=lambda x: 2.0 * stale(x) / (1.0 + x) / (1.0 + x),
        staleness=stale,
        inverse=lambda s: np.where(s < 1.0, (np.sqrt(s) + s) / (1.0 - s), np.inf),
        age_ratio=lambda x: stale(x) * (1.0 + 1.0 / (1.0 + x)),
        age_slope=lambda x: 2.0 * stale(x) * (1.0 + (1.0 + 1.0 / (1.0 + x)) / (1.0 + x)),
        age_staleness=stale,
        square=1.0,
        cube=2.0,
    )


FORMS = {"fixed": _fixed(), "random": _random(), "purely-random": _purely_random()}
