"""One root between two ends, to the last digit."""

from __future__ import annotations

from collections.abc import Callable


def between(
    function: Callable[[float], float], low: float, high: float, *, rtol: float = 1e-14, xtol: float = 1e-300
) -> float:
    """Where a function of different signs at `low` and `high` is 0: Brent's method, by scipy.

    >>> round(between(lambda x: x * x - 2.0, 0.0, 2.0), 12)
    1.414213562373
    """
    from scipy.optimize import brentq  # half a second to import, and few need it

    return float(brentq(function, low, high, xtol=xtol, rtol=rtol, maxiter=1000))
