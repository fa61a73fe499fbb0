"""One root of a function that rises where it matters: bracketed by doubling, then Brent's method."""

from __future__ import annotations

from collections.abc import Callable

from unstale.errors import ConvergenceError

#: doublings from the first guess before the search gives up
_FURTHEST = 1000


def rising_root(function: Callable[[float], float], guess: float) -> float:
    """The largest x > 0 where a function that is negative near 0 and then rises through 0 meets it.

    >>> round(rising_root(lambda x: x * x - 2.0, 1.0), 12)
    1.414213562373
    """
    from scipy.optimize import brentq  # half a second to import, and few need it

    low = high = guess
    for _ in range(_FURTHEST):
        if function(high) > 0.0:
            break
        low, high = high, 2.0 * high
    else:
        raise ConvergenceError(f"no root below {high:g}: the function stays below 0 up to there", estimate=high)
    for _ in range(_FURTHEST):
        if low < high and function(low) <= 0.0:
            break
        low /= 2.0
    else:
        raise ConvergenceError(f"no root above {low:g}: the function stays above 0 down to there", estimate=low)
    return float(brentq(function, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))
