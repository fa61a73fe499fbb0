"""Where something that falls comes down to its target: many smooth curves at once, or one number by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from unstale.core.checks import Floats
from unstale.core.roots.between import between


def falls_through(
    curve: Callable[[Floats], tuple[Floats, Floats]], low: Floats, high: Floats, at: Floats, rounds: int = 80
) -> Floats:
    """Where each of many curves, positive at `low` and negative at `high`, is 0: Newton kept inside brackets.

    `curve(at)` gives the heights and slopes. A curve of one sign throughout ends at the end of its bracket.
    """
    low, high, at = low.copy(), high.copy(), at.copy()
    last = high - low
    for _ in range(rounds):
        height, slope = curve(at)
        low, high = np.where(height > 0, at, low), np.where(height > 0, high, at)
        with np.errstate(all="ignore"):
            newton = at - height / slope
        # Newton must halve its own steps, or the bracket is halved instead
        good = (newton > low) & (newton < high) & (np.abs(newton - at) <= last / 2)
        following = np.where(height == 0, at, np.where(good, newton, (low + high) / 2))
        last = np.abs(following - at)
        at = following
        if np.all(last <= 1e-13 * (1.0 + np.abs(at))):
            break
    return at


def falls_to(of: Callable[[float], float], target: float, low: float, high: float, rtol: float = 5e-4) -> float:
    """The number between `low` and `high`, both above 0, at which a falling function comes down to its target.

    Where it is below the target everywhere that is `low`, where it is above `high`. Rather too high than too low: there
    the function is at or below its target, but for `rtol`.

    >>> round(falls_to(lambda x: 8.0 / x, 2.0, 1e-6, 1e6), 2)
    4.0
    """

    # Brent's method asks for both ends again, and asking once may be all the work there is.
    @cache
    def excess(x: float) -> float:
        return math.log(max(of(math.exp(x)), 1e-300) / target)

    begin, end = math.log(low), math.log(high)
    if excess(begin) <= 0.0:
        return low
    if excess(end) >= 0.0:
        return high
    return math.exp(between(excess, begin, end, rtol=1e-12, xtol=0.5 * rtol) + 0.5 * rtol)
