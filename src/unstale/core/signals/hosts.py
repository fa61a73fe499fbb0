"""Hosts with caps in a plan with collections: what a poll must bring there besides its price.

A host that would be asked more often than it allows gets a surcharge, which polls of members and listing polls pay
alike; all hosts are searched at once, each in its own bracket, and again as long as collections with members at several
hosts move them. The bound of a plan then has surcharge·cap of every host besides price·budget.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats

#: steps until a bracket is found, halvings of it, and rounds where hosts depend on each other
_STEPS, _HALVINGS, _ROUNDS = 60, 26, 3
#: a load so little above a cap keeps it
_CLOSE = 1e-9

#: polls per unit of time at every host, at these surcharges
Loads = Callable[[Floats], Floats]


def surcharges(loads: Loads, cap: Floats, guess: float) -> tuple[Floats, Floats]:
    """The least surcharges at which no host is asked more often than its cap allows; 0 where it is not anyway.

    Beside them, those just below, at which busy hosts are asked more often: where polls jump, both share the time.
    Assumes that loads fall as surcharges rise. `guess` is of the right size, the price of a poll say.

    >>> enough, short = surcharges(lambda s: np.array([4.0, 1.0]) / (1.0 + s), np.array([2.0, 2.0]), 1.0)
    >>> enough.round(6).tolist(), short.round(6).tolist()
    ([1.0, 0.0], [1.0, 0.0])
    """
    found = short = np.zeros(len(cap))
    if not np.isfinite(cap).any():
        return found, short
    for _ in range(_ROUNDS):
        over = loads(found) > cap * (1.0 + _CLOSE)
        if not over.any():
            break
        low, high = np.where(over, found, 0.0), np.where(over, np.maximum(found, guess), found)
        for _ in range(_STEPS):
            still = over & (loads(high) > cap)
            if not still.any():
                break
            low, high = np.where(still, high, low), np.where(still, 4.0 * high, high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            more = loads(middle) > cap
            low, high = np.where(over & more, middle, low), np.where(over & ~more, middle, high)
        found, short = high, np.where(over, low, high)
    return found, short
