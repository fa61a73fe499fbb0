"""P(2, x) = 1 − (1+x)·e^(−x) and its inverse: the one special function behind Poisson freshness.

P(2, x) is the chance that two changes or more fall into x mean gaps. Every price, interval and abandonment
under freshness goes through its inverse, so it has no iteration: one logarithm, one root, one polynomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats

#: the polynomial's variable is SCALE·t/(t+4) − 1, which maps t in [0, 8.8] into [−1, 1]
SCALE = 32.0 / 11.0
#: coefficients of the inverse from power 0, fitted to 40 digits; t ≤ 8.58 for every double below 1
COEFFICIENTS: tuple[float, ...] = (
    0.8750067226793597,
    -0.040915943957213194,
    0.06910705655894661,
    -0.011236396735523166,
    0.0027313453215769504,
    -0.0006987433396551115,
    0.0002416923760158292,
    -4.42567185739807e-05,
    1.3980640483188919e-05,
    -2.4082834696285577e-06,
    1.257956525434755e-06,
    -9.075155133163753e-08,
    1.0167334269129221e-07,
    1.1773659439282027e-08,
    1.5343817720132856e-08,
    -2.475048132937155e-10,
    1.8210430266295645e-10,
    2.001169641368311e-09,
    1.0091668631852118e-09,
)
#: elements per pass, so that temporaries stay in cache and a column of 1e8 needs no second column
BLOCK = 16_384

_SERIES = tuple(1.0 / math.factorial(k + 2) for k in range(18))
_UNDERFLOWS = 745.0


def p2(x: ArrayLike) -> Floats:
    """The chance that two changes or more fall into x mean gaps, P(2, x) = 1 − (1+x)·e^(−x).

    P(2, x)/change_rate is the value of polling after x/change_rate under Poisson freshness. It rises from
    x²/2 to 1. Below 1 it is summed as x²·e^(−x)·Σ xᵏ/(k+2)!, all terms positive, so nothing cancels.
    Any x ≥ 0, inf included; relative error below 1e-15. [000 footnote 10].

    >>> round(float(p2(1.0)), 12)
    0.264241117657
    """
    return by_blocks(_p2, x)


def p2_inverse(s: ArrayLike) -> Floats:
    """The x with P(2, x) = s: how many mean gaps to wait until a poll is worth s of its limit.

    y = −log(1−s), t = √(2y), x = (t + y)·polynomial(SCALE·t/(t+4) − 1).
    x is √(2s) for small s and grows only like log(1/(1−s)) near 1: a source about to be abandoned is
    still polled every 40 mean gaps, and no double s < 1 gives an interval beyond that. s ≥ 1 gives inf.
    Relative error below 4e-15 for every double s in [0, 1), without iteration. [000 footnote 10] says it
    has no closed form; it has one, −1 − W₋₁(−(1−s)/e), but that form loses all digits for small s.

    >>> round(float(p2_inverse(0.5)), 12)
    1.678346990017
    """
    return by_blocks(_p2_inverse, s)


def by_blocks(function: Callable[..., Floats], *columns: ArrayLike) -> Floats:
    """`function` of the columns, element by element, in blocks so that its temporaries stay small.

    Columns broadcast against each other. `function` gets blocks of equal length and returns a new array.
    """
    arrays = np.broadcast_arrays(*(np.asarray(c, dtype=np.float64) for c in columns))
    if arrays[0].size <= BLOCK:
        return function(*arrays)
    out = np.empty(arrays[0].shape)
    flat, into = [a.reshape(-1) for a in arrays], out.reshape(-1)
    for start in range(0, into.size, BLOCK):
        into[start : start + BLOCK] = function(*(a[start : start + BLOCK] for a in flat))
    return out


def _p2(x: Floats) -> Floats:
    # beyond 745 e^(−x) underflows, and inf·0 must not be formed
    x = np.minimum(x, _UNDERFLOWS)
    decay = np.exp(-x)
    low = np.minimum(x, 1.0)
    total = np.full_like(low, _SERIES[-1])
    for c in _SERIES[-2::-1]:
        total *= low
        total += c
    return np.where(x < 1.0, x * x * decay * total, (1.0 - decay) - x * decay)


def _p2_inverse(s: Floats) -> Floats:
    below = s < 1.0
    y = -np.log1p(-np.where(below, s, 0.5))
    t = np.sqrt(2.0 * y)
    z = SCALE * t / (t + 4.0) - 1.0
    total = np.full_like(z, COEFFICIENTS[-1])
    for c in COEFFICIENTS[-2::-1]:
        total *= z
        total += c
    return np.where(below, (t + y) * total, np.inf)
