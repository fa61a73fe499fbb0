"""How long polls may be apart so that a contract of freshness is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers

#: steps of a search that halves an error of many orders of magnitude
_STEPS = 80


def longest_wait(change_rate: ArrayLike, within: ArrayLike, target: ArrayLike) -> Floats:
    """The longest even interval at which a copy lacks no change older than `within` for `target` of the time.

    The D at which `(within + (1 − e^(−change_rate·(D − within)))/change_rate)/D = target`: until `within` after a poll
    the contract cannot be broken, and later only if the source changed early. With target 1 it is `within` whatever the
    rate; with within 0 it is the interval for that freshness. It falls as rate and target grow. Poisson changes;
    infinite where a source that never changes keeps it by itself. The left side is `consistency(within, …)` of even
    polls [003 eq. 41].

    >>> longest_wait(1 / 3600, [3600.0, 0.0, 3600.0], [1.0, 0.95, 0.95]).round(1).tolist()
    [3600.0, 372.5, 5035.9]
    """
    rate, within, target = np.broadcast_arrays(
        numbers("change_rate", change_rate, least=0),
        numbers("within", within, least=0),
        numbers("target", target, above=0, most=1),
    )
    # In units of the mean time between changes.
    free, free_of = rate > 0.0, np.where(rate > 0.0, rate, 1.0)
    delay = within * free_of
    # At D = (delay + 1)/target even a copy that is always stale after the delay would be worse than the target.
    low, high = delay.astype(np.float64), (delay + 1.0) / target
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        keeps = delay - np.expm1(-(middle - delay)) >= target * middle
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    found: Floats = np.where(free, low / free_of, np.where(target < 1.0, np.inf, within))
    return np.where(target < 1.0, found, within).astype(np.float64)
