"""The values of signals in scalars that can be compiled: what a brain asks for one member at a time.

Rules of this file:
1. Arguments are trusted: rate above 0, silence = 1 − recall in [0, 1), precision in (0, 1].
2. The columns of `noisy` and `exact` answer the same questions for arrays, to more digits; a test compares them.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import compiled

#: a sum over so many signals is enough: precisions below 0.05 are taken as 0.05
MOST_SIGNALS, LEAST_PRECISION = 60, 0.05
#: doubts beyond it are certainty
CERTAIN = 60.0
_HALVINGS = 30
_CLOSE = 1e-3


@compiled
def poisson_tail(n: int, x: float) -> float:
    """P(n+1, x), the probability of more than n events where x are expected.

    1 − e^(−x)·Σ x^k/k! over k ≤ n, and the first term of its series where that would cancel.

    >>> round(poisson_tail(1, 1.0), 9)
    0.264241118
    """
    if x > 700.0:
        return 1.0
    if n == 0:
        return -math.expm1(-x)
    if x < 1e-3:
        return float(x ** (n + 1) / math.gamma(n + 2.0))
    term = math.exp(-x)
    total = term
    for k in range(1, n + 1):
        term *= x / k
        total += term
    return max(1.0 - total, 0.0)


@compiled
def pushed(rate: float, silence: float, precision: float, doubt: float) -> tuple[float, float]:
    """The value of a poll at a doubt, and the mean time that a fresh copy takes to reach that doubt.

    V(S) of `noisy.value`, and M(S) = Σ P(n+1, γτ)/γ, its second part: V' = e^(−S)·M, so a member polled at S is
    polled once every M. Signals pushed, or listings frequent.

    >>> [round(x, 9) for x in pushed(1.0, 0.2, 0.7, 1.0)]
    [0.422944476, 0.872113807]
    """
    quiet = silence * rate
    signals = (1.0 - silence) * rate / precision
    lies = signals * (1.0 - precision)
    level = math.exp(-doubt)
    if signals <= 1e-12 * rate:
        return (1.0 - (1.0 + doubt) * level) / rate, doubt / rate
    each = -math.log1p(-precision) if precision < 1.0 else math.inf
    area, time, n, weight = 0.0, 0.0, 0, 1.0 / (rate + lies)
    left = doubt
    while n < MOST_SIGNALS and left > 0.0:
        until = left / quiet if quiet > 0.0 else math.inf
        area += weight * poisson_tail(n, (rate + lies) * until)
        time += poisson_tail(n, signals * until) / signals
        weight *= lies / (rate + lies)
        n += 1
        left -= each
    return area - level * time, time


@compiled
def paying(rate: float, silence: float, precision: float, due: float, guess: float) -> float:
    """The doubt at which a poll is worth `due`, to a thousandth; inf for an abandoned member. `guess` may be any.

    >>> round(paying(1.0, 0.2, 0.7, 0.3, 1.0), 3)
    0.674
    """
    if due * rate >= 1.0:
        return math.inf
    low, high = 0.0, math.inf
    s = guess if 0.0 < guess < CERTAIN else 0.5
    for _ in range(_HALVINGS):
        worth, time = pushed(rate, silence, precision, s)
        if worth >= due:
            high = s
        else:
            low = s
        slope = math.exp(-s) * time
        following = s + (due - worth) / slope if slope > 0.0 else math.inf
        if not low < following < high:
            following = 2.0 * s if high == math.inf else 0.5 * (low + high)
        if following >= CERTAIN:
            return CERTAIN
        if abs(following - s) <= _CLOSE * s:
            return following
        s = following
    return high


@compiled
def window_value(rate: float, fresh: float, plain: float, due: float, span: float) -> tuple[float, int, float]:
    """What a member brings between two listings, per unit of weight, with how many blind polls at which distance.

    `fresh` is the level it is kept above, 1 − rate·due for exact signals; `plain` its plain interval in mean gaps.
    As `exact.window`; blind polls are tried only where the window is longer than the plain interval.

    >>> value, blind, spacing = window_value(1.0, 0.9, 0.5318116, 0.1, 3.0)
    >>> round(value, 6), blind, round(spacing, 6)
    (1.824163, 5, 0.51756)
    """
    best, blind, spacing = fresh / rate * -math.expm1(-rate * span), 0, span
    if rate * span > plain and fresh > 0.0:
        short = math.log(fresh) / rate
        most = (rate * span - math.log(fresh)) / plain
        for n in range(max(int(most) - 1, 1), int(most) + 2):
            s = (span - short) / (n + 1)
            if s + short <= 0.0:
                break
            value = n * (-math.expm1(-rate * s) / rate - due) + fresh / rate * -math.expm1(-rate * (s + short))
            if value > best:
                best, blind, spacing = value, n, s
    return best, blind, spacing


#: y and P(2, y): its inverse by interpolation, good to 1e-6, is what a search for a price asks most
_Y = np.concatenate([[0.0], np.geomspace(1e-6, 45.0, 6000)])
_P = np.where(_Y < 1e-3, 0.5 * _Y * _Y, -np.expm1(-_Y) - _Y * np.exp(-_Y))


def plain_table() -> Floats:
    """Two rows: P(2, y) and y, for `plain_gaps`."""
    return np.stack([_P, _Y])


@compiled
def plain_gaps(share: float, table: Floats) -> float:
    """The plain interval in mean gaps, y with P(2, y) = share; inf from 1 on.

    >>> round(plain_gaps(0.1, plain_table()), 4)
    0.5318
    """
    if share >= table[0, -1]:
        return math.inf
    return float(np.interp(share, table[0], table[1]))
