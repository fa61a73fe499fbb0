"""A chain of replicas of which each polls right after the one above it has looked, as the engine's brain does.

A replica says when it looks next, in whole seconds as HTTP dates them, and whoever follows asks a moment after that. So
the ages of the polls do not add up along the chain, as they do where each polls at its own times (`cascade`): only the
moments do.
"""

from __future__ import annotations

import math

from unstale.core.checks import number
from unstale.core.replication.redundancy import whole


def followed_levels(change_rate: float, sync_rate: float, delay: float, depth: int) -> list[float]:
    """Freshness of every replica of a chain in step, from the first below the source to the last.

    `(1 − e^(−x))/x`, x = change_rate/sync_rate, for even polls of the source; times `(1 − e^(−d))/d`, d =
    change_rate·delay, for the first that follows, anything up to `delay` later, as dates are cut to their second; times
    e^(−d) for each further one, which waits for a date that has been cut already. Without delay depth costs nothing.
    Poisson changes. [after 004 sect. V, where polls are independent of each other].

    >>> [round(level, 4) for level in followed_levels(0.1, 0.2, 1.0, 3)]
    [0.7869, 0.7489, 0.6776]
    >>> [round(level, 4) for level in followed_levels(0.1, 0.2, 0.0, 2)]
    [0.7869, 0.7869]
    """
    rate = number("change_rate", change_rate, least=0)
    x, d = rate / number("sync_rate", sync_rate, above=0), rate * number("delay", delay, least=0)
    levels = [_cut(x), _cut(x) * _cut(d)]
    while len(levels) < whole("depth", depth):
        levels.append(levels[-1] * math.exp(-d))
    return levels[:depth]


def _cut(x: float) -> float:
    return -math.expm1(-x) / x if x > 0 else 1.0
