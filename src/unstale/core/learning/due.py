"""When a source is due, compiled: one rule for whoever decides, source by source or a whole fleet at once.

Rules of this file:
1. The bounds are promises: after jitter and back-off a due time still keeps `shortest` and `longest`.
2. Jitter is a function of source and time, not drawn: planning twice gives the same due times.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.columns import LearnerColumns, SharedTiming, wait
from unstale.core.learning.compiled import compiled
from unstale.core.learning.mixture import Scratch, Shared
from unstale.core.phase import SPREAD

Integers = NDArray[np.int64]

#: every failure in a row doubles the interval, six times at most: 64 intervals
MOST_DOUBLINGS = 6
#: relative half-width of a backed-off interval: sources that failed together do not come back together
FAILURE_SPREAD = 0.5
#: 1/golden ratio and its companion: multiples modulo 1 fill [0, 1) evenly
_GOLDEN, _PLASTIC = 0.6180339887498949, 0.7548776662466927


@compiled
def spread(number: int, at: float) -> float:
    """A number in [−1, 1) that differs from source to source and from poll to poll.

    >>> round(spread(1, 0.0), 6), round(spread(2, 0.0), 6), round(spread(1, 10.0), 6)
    (0.236068, -0.527864, -0.666379)
    """
    turn = at if math.isfinite(at) else 0.0
    return 2.0 * ((number * _GOLDEN + turn * _PLASTIC) % 1.0) - 1.0


@compiled
def due_after_answer(
    i: int,
    number: int,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> float:
    """When source i is due at a price: one jittered interval, ±5 %, after its last answer."""
    last = columns.last[i]
    jittered = wait(i, price, columns, shared, timing, at) * (1.0 + SPREAD * spread(number, last))
    due: float = last + min(max(jittered, columns.shortest[i]), columns.longest[i]) - columns.head_start[i]
    return due


@compiled
def due_after_answers(
    which: Integers,
    numbers: Integers,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """`due_after_answer` for these sources."""
    out = np.empty(len(which))
    for k in range(len(which)):
        out[k] = due_after_answer(which[k], numbers[k], price, columns, shared, timing, at)
    return out


@compiled
def jittered_cost(
    which: Integers,
    numbers: Integers,
    price: float,
    now: float,
    until: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> float:
    """What these sources would spend between now and `until` at a price, each due when its jitter says.

    Who was due before but for its jitter is not due yet: counted all the same, time and again, they would stand for
    polls that nobody makes.
    """
    total = 0.0
    for k in range(len(which)):
        i = which[k]
        due = max(now, due_after_answer(i, numbers[k], price, columns, shared, timing, at))
        if due < until:
            total += columns.cost[i] * (1.0 + math.floor((until - due) / columns.interval[i]))
    return total


@compiled
def due_after_failures(
    which: Integers,
    numbers: Integers,
    polled_at: Floats,
    failures: Integers,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """When sources that failed are tried again: the interval doubled for each failure in a row, 64-fold at most.

    It is spread by half of itself, and bounded like any other.
    """
    out = np.empty(len(which))
    for k in range(len(which)):
        i = which[k]
        doubled = 2.0 ** min(failures[k], MOST_DOUBLINGS) * (1.0 + FAILURE_SPREAD * spread(numbers[k], polled_at[k]))
        backed_off = wait(i, price, columns, shared, timing, at) * doubled
        out[k] = polled_at[k] + min(max(backed_off, columns.shortest[i]), columns.longest[i])
    return out
