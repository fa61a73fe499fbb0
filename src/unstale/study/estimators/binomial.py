"""How many of n polls find a change: the law behind every estimator that counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import betaln

from unstale.core.checks import Floats


def expect(
    values: Callable[[Floats], Floats], n: int, log_changed: float, log_unchanged: float, most: int | None = None
) -> float:
    """E[values(X) | X ≤ most] for X ~ Binomial(n), given the logarithms of both probabilities of one poll.

    `Σ values(k)·C(n, k)·changed^k·unchanged^(n−k)` over the same sum without values: dividing by what the
    weights add up to, rather than by 1, takes away their common rounding, and X ≤ most may be as unlikely as
    e^(−1000). Terms further than 12 standard deviations and 60 from the middle are left out: together below 1e-30.

    >>> round(expect(lambda k: k, 10, np.log(0.3), np.log(0.7)), 12)
    3.0
    """
    last = n if most is None else most
    share = np.exp(log_changed)
    middle, reach = min(n * share, last), 12.0 * np.sqrt(n * share * np.exp(log_unchanged)) + 60.0
    k = np.arange(max(np.floor(middle - reach), 0.0), min(np.ceil(middle + reach), last) + 1.0)
    with np.errstate(invalid="ignore"):
        heads = np.where(k == 0, 0.0, k * log_changed)
        tails = np.where(k == n, 0.0, (n - k) * log_unchanged)
    logs = heads + tails - betaln(n - k + 1.0, k + 1.0)
    top = logs.max()
    if top == -np.inf:
        # Unchanged polls are impossible to double precision, and still asked for: as few as may be.
        return float(values(k[-1:])[0])
    weights = np.exp(logs - top)
    return float(np.dot(weights, values(k)) / weights.sum())
