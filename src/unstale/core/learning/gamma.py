"""A Gamma(shape, exposure) belief about one change rate, in scalars that can be compiled.

Rules of this file:
1. Arguments are trusted: shape and exposure above 0, elapsed 0 or more, elapsed/exposure below 1e150.
2. z = elapsed/exposure, L = log(1 + z); E(c) = (e^(c·L) − 1)/c is the integral of e^(c·l) over [0, L]. Short
   intervals use series whose terms are all positive, longer ones a form that loses at most four digits.
"""

from __future__ import annotations

import math

from unstale.core.belief import posterior
from unstale.core.learning.compiled import pasted
from unstale.core.learning.exactly import for_numbers

after_change = pasted(posterior, for_numbers(posterior))

#: intervals with max(1, shape)·L below these are short
SHORT, SHORT_FOR_AGE = 0.02, 0.03


@pasted
def survival(shape: float, exposure: float, elapsed: float) -> float:
    """The probability of no change within `elapsed`, which is that of a copy to be still fresh.

    (1 + elapsed/exposure)^−shape: e^(−change_rate·elapsed) averaged over the belief. It falls more slowly than
    any exponential, because a source that kept still so long is likely to be a slow one. Poisson changes. The
    tail of Pareto gaps [003 section III]. Relative error below 1e-15·(1 + shape·L).

    >>> round(survival(2.0, 1.0, 1.0), 12)
    0.25
    """
    return math.exp(-shape * math.log1p(elapsed / exposure))


@pasted
def freshness_value(shape: float, exposure: float, elapsed: float) -> tuple[float, float]:
    """The value of polling after `elapsed` under freshness, and its slope in `elapsed`.

    φ = exposure·∫₀ᴸ shape·e^(−shape·l)·(e^l − 1) dl, that is exposure·(E(1−shape) − z·(1+z)^−shape), and
    φ' = shape·z·(1+z)^(−shape−1): the Poisson value P(2, λt)/λ averaged over the belief. It rises to
    exposure/(shape−1), and without end for shape ≤ 1: a source we know little of may be a slow one. One source;
    `BeliefFreshness` answers for columns. [003 eq. 49] for Pareto gaps. Relative error below 1e-12.

    >>> [round(x, 12) for x in freshness_value(3.0, 2.0, 2.0)]
    [0.5, 0.1875]
    """
    z = elapsed / exposure
    span = math.log1p(z)
    still = math.exp(-shape * span)
    slope = shape * (elapsed / (exposure + elapsed)) * still
    if max(1.0, shape) * span < SHORT:
        # (1+z)^−shape·Σ L^n/n!·(shape + … + shape^(n−1)), n from 2
        a, x = shape * span, span
        p3 = x + a
        p4 = x * x + a * p3
        p5 = x * x * x + a * p4
        p6 = x * x * x * x + a * p5
        p7 = x * x * x * x * x + a * p6
        series = 0.5 + p3 / 6.0 + p4 / 24.0 + p5 / 120.0 + p6 / 720.0 + p7 / 5040.0
        return elapsed * (span / z if z > 0.0 else 1.0) * a * still * series, slope
    whole = _integral(1.0 - shape, span, (1.0 + z) * still)
    return exposure * (shape * whole + math.expm1(-shape * span) if shape <= 1.0 else whole - z * still), slope


@pasted
def age_value(shape: float, exposure: float, elapsed: float) -> tuple[float, float]:
    """The value of polling after `elapsed` under age, and its slope in `elapsed`.

    φ = exposure²·∫₀ᶻ v·(1 − (1+v)^−shape) dv = exposure²·(z²/2 − E(2−shape) + E(1−shape)) and
    φ' = elapsed·(1 − (1+z)^−shape): the Poisson value ((λt)²/2 − P(2, λt))/λ² averaged over the belief. It
    grows without end, so nothing is abandoned; for long intervals it is elapsed²/2 whatever the belief. One
    source. [000 Table 2] for a known rate. Relative error below 1e-11.

    >>> [round(x, 12) for x in age_value(3.0, 1.0, 1.0)]
    [0.375, 0.875]
    """
    z = elapsed / exposure
    span = math.log1p(z)
    change = -math.expm1(-shape * span)
    slope = elapsed * change
    a, x = shape * span, span
    if max(1.0, shape) * span < SHORT_FOR_AGE:
        # z²/2·change − shape/2·R, R = ∫ v²·(1+v)^(−shape−1) dv = (1+z)^−shape·Σ L^n/n!·w_n, n from 3
        w3 = 2.0
        w4 = a * w3 + 6.0 * x
        w5 = a * w4 + 14.0 * x * x
        w6 = a * w5 + 30.0 * x * x * x
        w7 = a * w6 + 62.0 * x * x * x * x
        w8 = a * w7 + 126.0 * x * x * x * x * x
        w9 = a * w8 + 254.0 * x * x * x * x * x * x
        series = w3 / 6.0 + w4 / 24.0 + w5 / 120.0 + w6 / 720.0 + w7 / 5040.0 + w8 / 40320.0 + w9 / 362880.0
        ratio = span / z if z > 0.0 else 1.0
        return 0.5 * elapsed * elapsed * (change - a * (1.0 - change) * ratio * ratio * series), slope
    still = 1.0 - change
    two = _integral(2.0 - shape, span, (1.0 + z) * (1.0 + z) * still)
    if shape > 2.0:
        return exposure * exposure * (0.5 * z * z - (two - z * (1.0 + z) * still) / (shape - 1.0)), slope
    one = _integral(1.0 - shape, span, (1.0 + z) * still)
    return 0.5 * exposure * exposure * (z * z * change - (shape * (two - 2.0 * one) + change)), slope


@pasted
def _integral(rate: float, span: float, end: float) -> float:
    """E(rate), `end` being e^(rate·span) up to rounding."""
    power = rate * span
    if abs(power) > 0.5:
        return (end - 1.0) / rate
    return span * math.expm1(power) / power if power != 0.0 else span
