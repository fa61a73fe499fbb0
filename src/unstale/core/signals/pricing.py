"""The price at which so much will be spent, where spending may jump: a bounded search from the last price."""

from __future__ import annotations

import math
from collections.abc import Callable

#: in logarithms: the first step, and how near is near enough, in price and in spending
_FIRST, _NEAR, _CLOSE = 0.2, 0.002, 0.005
_WIDENED, _NARROWED = 6, 9


def price_near(guess: float, farthest: float, spending: Callable[[float], float], wanted: float) -> float:
    """The price at which `spending` is what is wanted, no further from the guess than `farthest` in logarithms.

    Steps are tripled until they pass it, then it is narrowed down. Spending falls as the price rises, but jumps where
    a collection comes into use: what is nearer to what is wanted is taken.

    >>> round(price_near(1.0, 5.0, lambda price: 8.0 / price, 2.0), 1)
    4.0
    """

    def excess(x: float) -> float:
        return math.log(max(spending(math.exp(x)), 1e-300) / wanted)

    middle = math.log(guess)
    x, at = middle, excess(middle)
    y = middle + math.copysign(_FIRST, at)
    there = excess(y)
    for _ in range(_WIDENED):
        if (there > 0.0) != (at > 0.0) or abs(y - middle) >= farthest:
            break
        x, at, y = y, there, min(max(y + 2.0 * (y - middle), middle - farthest), middle + farthest)
        there = excess(y)
    if (there > 0.0) == (at > 0.0):
        return math.exp(y)
    for _ in range(_NARROWED):
        if abs(y - x) < _NEAR or min(abs(at), abs(there)) < _CLOSE:
            break
        m = x - at * (y - x) / (there - at)
        m = min(max(m, min(x, y) + 0.1 * abs(y - x)), max(x, y) - 0.1 * abs(y - x))
        between = excess(m)
        if (between > 0.0) == (at > 0.0):
            x, at = m, between
        else:
            y, there = m, between
    return math.exp(x if abs(at) < abs(there) else y)
