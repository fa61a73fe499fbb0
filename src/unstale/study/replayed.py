"""What even polls of a recorded history would have held: the share of time in which the copy was stale."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number


def stale_share(times: Floats, interval: float, phases: int = 4) -> float:
    """The share of time for which a copy polled evenly would have been stale, averaged over some phases.

    In each interval a copy is stale from the first change after its poll to the next poll. Measured between the first
    and the last change; nothing is assumed of the changes, so this is what models must meet [003 Figure 9(d)].

    >>> stale_share(np.array([0.0, 1.0, 3.0, 4.0]), 1.0, phases=1)
    0.0
    >>> stale_share(np.array([0.0, 0.5, 1.5, 2.0]), 1.0, phases=1)
    0.5
    """
    step = number("interval", interval, above=0)
    shares = []
    for k in range(phases):
        polls = np.arange(times[0] + k * step / phases, times[-1] + 1e-9 * step, step)
        if len(polls) < 2:
            continue
        begin, end = polls[:-1], polls[1:]
        first = np.append(times, np.inf)[np.searchsorted(times, begin, side="right")]
        shares.append(np.maximum(end - np.maximum(first, begin), 0.0).sum() / (end[-1] - begin[0]))
    return float(np.mean(shares)) if shares else 1.0


def stale_by_gaps(gaps: Floats, interval: float) -> float:
    """The share of time for which a copy polled evenly is stale, by the law of the gaps alone.

    1 − E[U·D − D²/2 if U > D, else U²/2] / (D·E[U]), U a gap drawn from those given and D the interval: equation 42
    of 003 with an empirical law, in one pass. What gaps have to do with each other, and with the hour, is left out.
    Same as `freshness(Empirical(gaps), Constant(interval))`.

    >>> round(stale_by_gaps(np.array([1.0, 3.0]), 2.0), 6)
    0.4375
    """
    step = number("interval", interval, above=0)
    kept = np.where(gaps > step, gaps * step - 0.5 * step**2, 0.5 * gaps**2)
    return float(1.0 - kept.mean() / (step * gaps.mean()))
