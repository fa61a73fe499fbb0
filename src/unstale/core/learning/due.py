"""When a source is due, compiled: one rule for whoever decides, source by source or a whole fleet at once.

Rules of this file:
1. The bounds are promises: after jitter and back-off a due time still keeps `shortest` and `longest`.
2. Jitter is a function of source and time, not drawn: planning twice gives the same due times.
3. An interval has 26 binary digits: the last ones of exp and log differ from one processor to the next, and a poll that
   is later by one of them would learn otherwise, until two machines that saw the same no longer do the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.column_due import due_in_columns, failures_in_columns, jittered_cost_in_columns
from unstale.core.learning.columns import LearnerColumns, SharedTiming, wait
from unstale.core.learning.compiled import in_columns, pasted
from unstale.core.learning.mixture import Scratch, Shared
from unstale.core.learning.reach import BY_CHANCE, FAILURE_SPREAD, GOLDEN, MOST_DOUBLINGS, PLASTIC, SPLIT, SPREAD

Integers = NDArray[np.int64]


@pasted
def spread(number: int, at: float) -> float:
    """A number in [−1, 1) that differs from source to source and from poll to poll.

    >>> round(spread(1, 0.0), 6), round(spread(2, 0.0), 6), round(spread(1, 10.0), 6)
    (0.236068, -0.527864, -0.666379)
    """
    turn = at if math.isfinite(at) else 0.0
    return 2.0 * ((number * GOLDEN + turn * PLASTIC) % 1.0) - 1.0


@pasted
def rounded(seconds: float) -> float:
    """The first 26 binary digits: 15 nanoseconds of a second, half a second of a year.

    >>> rounded(0.1) == rounded(0.1 + 1e-14), rounded(1.0), rounded(math.inf)
    (True, 1.0, inf)
    """
    scaled = SPLIT * seconds
    return scaled - (scaled - seconds) if scaled < math.inf else seconds


@pasted
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
    jittered = rounded(wait(i, price, columns, shared, timing, at) * (1.0 + SPREAD * spread(number, last)))
    due: float = last + min(max(jittered, columns.shortest[i]), columns.longest[i]) - columns.head_start[i]
    return due


@in_columns(due_in_columns)
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


@in_columns(jittered_cost_in_columns)
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


@in_columns(failures_in_columns)
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
    """When sources that failed are tried again: the interval doubled for each failure after two, 64-fold at most.

    What is doubled is spread by half of itself. Two failures may be chance, and the copy grows older meanwhile: after
    them the next poll comes as it would after an answer. All are bounded like any other.
    """
    out = np.empty(len(which))
    for k in range(len(which)):
        i = which[k]
        doublings = min(max(failures[k] - BY_CHANCE, 0), MOST_DOUBLINGS)
        width = FAILURE_SPREAD if doublings else SPREAD
        doubled = 2.0**doublings * (1.0 + width * spread(numbers[k], polled_at[k]))
        backed_off = rounded(wait(i, price, columns, shared, timing, at) * doubled)
        out[k] = polled_at[k] + min(max(backed_off, columns.shortest[i]), columns.longest[i])
    return out
