"""What a fleet would spend at a price near one that was looked at, compiled: a power of the price for every source.

Rules of this file:
1. Near a price, a source's interval is a power of it: the exponent is that of the value of a poll, turned around. What
   is remembered of a source is the interval where it was last looked at, and that exponent.
2. Who was polled or heard of since, or is asked about a price that is further off, is looked at again: nobody else.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.bursts import span
from unstale.core.learning.column_due import look_again_in_columns, outlay_in_columns
from unstale.core.learning.columns import Integers, LearnerColumns, SharedTiming, wait
from unstale.core.learning.compiled import LIGHT, in_columns
from unstale.core.learning.due import spread
from unstale.core.learning.mixture import Scratch, Shared, value
from unstale.core.learning.reach import FAR, NEAR


class Outlay(NamedTuple):
    """What is remembered of every source."""

    #: its last answer then, NaN before it was looked at: another one means that it has learned
    last: Floats
    #: the interval, the logarithm of the price at which it is that, and the exponent; 0 where the price moves nothing
    even: Floats
    at: Floats
    power: Floats
    #: the wait after its last answer, in intervals; nothing where that is one for all, as without a week's clock
    ratio: Floats


def nothing_known(sources: int, clocked: bool) -> Outlay:
    """Nobody was looked at; `clocked` says whether a week's clock is trusted."""
    even, at, power = (np.empty(sources) for _ in range(3))
    return Outlay(np.full(sources, np.nan), even, at, power, np.empty(sources if clocked else 0))


@in_columns(look_again_in_columns)
def look_again(
    which: Integers,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
    known: Outlay,
) -> int:
    """Look at those of these sources of whom too little is known at a price; how many they were."""
    looked, x = 0, math.log(price)
    for i in which:
        if known.last[i] == columns.last[i]:
            if known.power[i] == 0.0:
                continue
            off = x - math.log(columns.weight[i] / columns.cost[i]) - known.at[i]
            even = known.even[i]
            if abs(known.power[i] * off) <= NEAR:
                continue
            # Beyond its bounds a source stays where it is, however far the price is off.
            if (even >= columns.longest[i] and off > 0.0) or (even <= columns.shortest[i] and off < 0.0):
                continue
        looked += 1
        pause = wait(i, price, columns, shared, timing, at)
        even = columns.interval[i]
        scale = 1.0
        if timing.bursts.trusted and shared.harm.scale_free and math.isfinite(columns.last[i]):
            scale = timing.bursts.factor[span(timing.bursts, columns.last[i] - columns.found[i])]
        worth, slope = value(at, shared, scale * even)
        known.last[i], known.even[i] = columns.last[i], even
        if len(known.ratio):
            known.ratio[i] = pause / even
        known.at[i], known.power[i] = 0.0, 0.0
        if columns.weight[i] > 0.0 and worth > 0.0 and slope > 0.0:
            known.power[i] = worth / (slope * scale * even)
            # The price, free of weight and cost, at which a poll after just this interval pays.
            known.at[i] = math.log(worth)
            if scale != 1.0:
                known.at[i] -= (1.0 + shared.harm.degree) * math.log(scale)
    return looked


@in_columns(outlay_in_columns, LIGHT)
def outlay(
    which: Integers,
    numbers: Integers,
    jitter: float,
    price: float,
    now: float,
    until: float,
    columns: LearnerColumns,
    known: Outlay,
) -> float:
    """What these sources would spend between now and `until` at a price, by what is remembered of them.

    `numbers` are what jitter of that relative half-width tells them by.
    """
    total, x = 0.0, math.log(price)
    for k in range(len(which)):
        i = which[k]
        even, last = known.even[i], columns.last[i]
        if known.power[i] != 0.0:
            moved = known.power[i] * (x - math.log(columns.weight[i] / columns.cost[i]) - known.at[i])
            even *= math.exp(min(max(moved, -FAR), FAR))
            even = min(max(even, columns.shortest[i]), columns.longest[i])
        pause = even * (1.0 + jitter * spread(numbers[k], last))
        if len(known.ratio):
            pause = known.ratio[i] * even * (1.0 + jitter * spread(numbers[k], last))
        due = max(now, last + min(max(pause, columns.shortest[i]), columns.longest[i]) - columns.head_start[i])
        if due < until:
            # The first wait depends on the hour, those after it are about even.
            total += columns.cost[i] * (1.0 + math.floor((until - due) / even))
    return total
