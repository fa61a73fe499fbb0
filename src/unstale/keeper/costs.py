"""What a poll costs in its owner's units, learned from what polls have used: the one place of that rule.

Rules of this file:
1. A cost that somebody has stated for a source, any but 1, is what its polls cost; it is never learned.
2. Otherwise the cost is the mean of what recent polls have used. A first copy brings everything and says what a poll
   can cost at most; the second poll is the first that says what one usually does, and takes its place.
3. A poll counts for one unit at least: what looks and finds nothing has asked too.
4. The budget pays what was used. What polls are expected to use is only for the plan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats

#: what a budget can count, and in words
UNITS = {
    "polls": "polls, each as its source says",
    "calls": "calls: requests to web sites and APIs, statements to databases",
    "rows": "rows of tables and records of APIs that were read",
    "bytes": "bytes that were received, with 500 for each call",
}
#: the unit of who has not chosen any: costs are as stated, and nothing is learned
POLLS = "polls"
#: what the last poll counts in the mean, and the bytes of a request and of what comes before its answer, about
SMOOTH, HEAD = 0.125, 500.0
#: a plan counts in mean intervals of the fleet, which are found anew when its polls cost so many times as much, or less
MOVED = 1.25


def used(unit: str, calls: int, rows: int, received: int) -> float:
    """What a poll has used, in a unit that is learned.

    >>> used("rows", 4, 0, 900), used("calls", 4, 0, 900), used("bytes", 4, 0, 900)
    (1.0, 4.0, 2900.0)
    """
    told = {"calls": float(calls), "rows": float(rows), "bytes": received + HEAD * calls}[unit]
    return max(told, 1.0)


def learned(cost: Floats, used: Floats, known: NDArray[np.bool_]) -> Floats:
    """What polls are expected to cost after these; `known` are sources whose polls had told what they usually do.

    >>> learned(np.array([100.0, 100.0]), np.array([20.0, 20.0]), np.array([True, False])).tolist()
    [90.0, 20.0]
    """
    return np.where(known, cost + SMOOTH * (used - cost), used)


def stated(cost: Floats) -> NDArray[np.bool_]:
    """Which of these costs somebody has stated."""
    found: NDArray[np.bool_] = np.asarray(cost) != 1.0
    return found


def moved(cost: float, before: float) -> bool:
    """Whether polls of a fleet cost so much more than before, or less, that its mean interval is another.

    >>> moved(120.0, 100.0), moved(130.0, 100.0), moved(70.0, 100.0)
    (False, True, True)
    """
    return not before / MOVED <= cost <= before * MOVED
