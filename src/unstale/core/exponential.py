"""One kernel behind every Poisson formula: averages of e^(−y·T), free of cancellation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats

#: terms of the series used below y = 1; the first one left out is under 1e-17
_TERMS = 18


def exp_mean(n: int, y: ArrayLike) -> Floats:
    """E[e^(−y·T)] with T ~ Beta(1, n): what is left when e^(−y) is integrated n times, scaled to 1 at y = 0.

    `exp_mean(n, y) = n!·∫₀¹ (1−t)^(n−1)/(n−1)!·e^(−y·t) dt`, so `exp_mean(1, y) = (1 − e^(−y))/y`
    is the freshness of even polls at y changes per interval, and
    `1 − exp_mean(n, y) = y·exp_mean(n+1, y)/(n+1)` turns every difference that would cancel into a product.
    Decreasing in y; about n/y for large y. y must be 0 or more (inf allowed); the relative error
    stays below 3e-15. The series is that of 1F1(1; n+1; −y).

    >>> round(float(exp_mean(1, 1.0)), 12)
    0.632120558829
    """
    y = np.asarray(y, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # the recurrence divides 1 − mean, which is far from 0 once y ≥ 1
        direct = np.where(y > 0, -np.expm1(-y) / y, 1.0)
        if n > 1:
            for k in range(2, n + 1):
                direct = k * (1.0 - direct) / y
            small = np.minimum(y, 1.0)
            direct = np.where(y < 1.0, np.polynomial.polynomial.polyval(small, _SERIES[n]), direct)
    return np.where(np.isinf(y), 0.0, direct)


def exp_remainder(n: int, y: ArrayLike) -> Floats:
    """∫₀^y (y−t)^(n−1)/(n−1)!·e^(−t) dt, the n-fold integral of e^(−y): 1 − e^(−y) for n = 1.

    `exp_remainder(n+1, y) = yⁿ/n! − exp_remainder(n, y)`, evaluated without that subtraction.

    >>> round(float(exp_remainder(2, 1.0)), 12)
    0.367879441171
    """
    y = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        out = np.where(np.isinf(y), float(n), y * exp_mean(n, y)) / math.factorial(n)
        for _ in range(n - 1):
            out = out * y
    return out


_SERIES = {
    n: np.array([(-1.0) ** k * math.factorial(n) / math.factorial(n + k) for k in range(_TERMS)]) for n in range(2, 5)
}
