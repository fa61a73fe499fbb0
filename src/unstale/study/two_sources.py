"""The smallest fleet that shows why busy sources are not worth most of the budget [000 sect. 5.2]."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.poisson_orders import order_freshness
from unstale.errors import require


def poll_benefit(changes: int, polls: int) -> Fraction:
    """Share of a day that polls keep a source fresh which changes once in each of `changes` parts of it.

    Each part has one change at a random time; k polls, evenly spaced, gain `k/(2(k+1))` of it. The polls are
    spread over the parts as evenly as they can be, so the first gains 1/(4·changes) and later ones less:
    one poll of a source that changes once a day gains nine times that of one that changes nine times.
    [000 Table 4].

    >>> poll_benefit(9, 2) + poll_benefit(1, 3)
    Fraction(31, 72)
    """
    for name, value, least in (("changes", changes, 1), ("polls", polls, 0)):
        whole = value == int(value) and value >= least
        require(whole, name, value, f"must be a whole number of at least {least}", "count per day")
    low, extra = divmod(int(polls), int(changes))
    gain = (int(changes) - extra) * Fraction(low, 2 * (low + 1)) + extra * Fraction(low + 1, 2 * (low + 2))
    return gain / int(changes)


def best_split(change_counts: tuple[int, int], polls: int) -> tuple[int, int]:
    """The split of `polls` between two sources with the largest sum of poll_benefit [000 Table 4].

    >>> best_split((9, 1), 10)
    (7, 3)
    """
    one, other = change_counts
    return max(
        ((k, polls - k) for k in range(polls + 1)),
        key=lambda split: poll_benefit(one, split[0]) + poll_benefit(other, split[1]),
    )


def split_freshness(share: ArrayLike, budget: float, change_rate: tuple[float, float] = (9.0, 1.0)) -> Floats | float:
    """Freshness of two Poisson sources when the second gets `share` of the budget, relative to equal shares.

    `(F(rate₁, (1−share)·budget) + F(rate₂, share·budget))/(the same at share 1/2)`, F for even polls.
    Concave in share: 1 at 1/2, below 1 at the proportional share, largest at a share that goes to 1 for a
    small budget: with rates 9 and 1 the busy source is abandoned up to a budget of 1.764.
    [000 Figure 9, where panels (a) and (b) are both said to peak at 1].

    >>> round(split_freshness(0.1, 10.0), 12)
    0.922757210713
    """
    x = numbers("share", share, least=0, most=1, remedy="give the part of the budget for the second source")
    total = number("budget", budget, above=0)
    one, other = numbers("change_rate", change_rate, above=0)

    def both(x: Floats) -> Floats:
        busy = np.asarray(order_freshness(one, (1.0 - x) * total))
        return np.asarray(busy + np.asarray(order_freshness(other, x * total)))

    return plain(both(x) / both(np.asarray(0.5)))
