"""Where something that falls as a price, or a weight, rises meets a target: one search for the whole room."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq


def falling(of: Callable[[float], float], target: float, low: float, high: float, rtol: float = 5e-4) -> float:
    """The number between `low` and `high`, both above 0, at which a falling function comes down to its target.

    Where it is below the target everywhere that is `low`, where it is above `high`. Rather too high than too low: there
    the function is at or below its target, but for `rtol`.

    >>> round(falling(lambda x: 8.0 / x, 2.0, 1e-6, 1e6), 2)
    4.0
    """

    def excess(x: float) -> float:
        return math.log(max(of(math.exp(x)), 1e-300) / target)

    begin, end = math.log(low), math.log(high)
    if excess(begin) <= 0.0:
        return low
    if excess(end) >= 0.0:
        return high
    return math.exp(float(brentq(excess, begin, end, xtol=0.5 * rtol, rtol=1e-12)) + 0.5 * rtol)
