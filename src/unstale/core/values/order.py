"""The order in which a fleet is polled, as the law of one source's gaps between polls.

Gaps are X·interval with E[X] = 1: fixed order X = 1, random order X triangular on [0, 2], purely random
X exponential [000 section 3 and Lemma 2, where W = T₁ − T₂ should read T₂ − T₁]. In any order the value
of a poll is E[φ(X·interval)], φ that of even polls, and so the limit is the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstale.core import special
from unstale.core.checks import Floats
from unstale.core.values.quadrature import Rows, integrate
from unstale.errors import require

ORDERS = ("fixed", "random", "purely-random")
#: longest gap that counts, in mean gaps: 80³·e^(−80) is nothing
LONGEST = {"fixed": 1.0, "random": 2.0, "purely-random": 80.0}
_CUTS = {
    "random": (0.01, 0.1, 0.5, 1.0, 1.5),
    "purely-random": (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0),
}


def checked_order(order: str) -> str:
    """One of the three orders, or one sentence."""
    require(order in ORDERS, "order", repr(order), f"must be one of {', '.join(ORDERS)}", "fixed is the best")
    return order


def gap_moment(order: str, n: float) -> float:
    """E[Xⁿ]: 1 in fixed order, (2ⁿ⁺² − 2)/((n+1)(n+2)) in random, Γ(n+1) in purely random order.

    >>> gap_moment("random", 3)
    1.5
    """
    if order == "fixed":
        return 1.0
    if order == "random":
        return float((2.0 ** (n + 2) - 2) / ((n + 1) * (n + 2)))
    return float(special.gamma(n + 1))


def gap_mean(order: str, function: Callable[[Rows, Floats], Floats], cuts: Floats) -> Floats:
    """E[function(row, X)] for each row, function ≥ 0; `cuts` (rows × any) are gaps where it bends or turns.

    >>> gap_mean("purely-random", lambda row, x: x**2, np.ones((1, 1))).round(10)
    array([2.])
    """
    longest = LONGEST[order]
    own = np.broadcast_to(np.array([0.0, *_CUTS[order], longest]), (len(cuts), len(_CUTS[order]) + 2))
    edges = np.sort(np.hstack([own, np.clip(cuts, 0.0, longest)]), axis=1)

    def weighted(row: Rows, x: Floats) -> Floats:
        density = np.minimum(x, 2.0 - x) if order == "random" else np.exp(-x)
        return density * function(row.reshape(-1), x.reshape(-1)).reshape(x.shape)

    return integrate(weighted, edges)
