"""What taking changes for Poisson would cost in polls, on the histories themselves."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.inverse import sync_rate_for
from unstale.core.roots.falling import falls_through
from unstale.study.fitting.gaps import Gaps


def polls_for(gaps: Gaps, freshness: float) -> Floats:
    """The sync rate at which even polls would have kept each source this fresh, from first to last change.

    With an interval D the copy is fresh for `Σ m·(gap − m/2)/(D·Σ gap)` of the time, `m = min(gap, D)`, averaged
    over the moment of the first poll: exact for the history, however its gaps follow each other. It is
    `sync_rate_for(Empirical(gaps), freshness=…)` for many sources at once. [003 Fig. 10].

    >>> polls_for(Gaps.of([1.0, 3.0]), 0.8).round(6)
    array([1.25])
    """
    target = number("freshness", freshness, above=0, most=1 - 1e-9, remedy="give a share such as 0.8")
    mean = gaps.means()
    unit = gaps.lengths / gaps.each(mean)

    def excess(u: Floats) -> tuple[Floats, Floats]:
        interval = np.exp(u)
        wide = gaps.each(interval)
        held = np.minimum(unit, wide)
        fresh = gaps.means(held * (unit - held / 2.0)) / interval
        return np.log(fresh / target), gaps.means(unit - held) / fresh - 1.0

    # fresh ≥ 1 − D/2 and fresh ≤ E[gap²]/2D, in units of the mean gap
    low = np.full_like(mean, np.log(2.0 * (1.0 - target)) - 1e-9)
    high = np.log(gaps.means(unit**2) / 2.0 / target) + 1e-9
    u = falls_through(excess, np.minimum(low, high), high, (low + high) / 2.0)
    return np.exp(-u) / mean


def overspend(gaps: Gaps, freshness: float) -> Floats:
    """How many times more polls a target seems to need if the changes of each source are taken for Poisson.

    `sync_rate_for(rate, freshness=…)/polls_for(gaps, …)`: above 1 for bursts, below 1 for steady changes, 1 for
    Poisson. The rate is one over the mean gap. [003 Fig. 10, section VI-B].

    >>> overspend(Gaps.of([1.0, 3.0], [0.1, 3.9]), 0.8).round(6)
    array([0.861674, 1.515584])
    """
    return sync_rate_for(1.0, freshness=freshness) / gaps.means() / polls_for(gaps, freshness)
