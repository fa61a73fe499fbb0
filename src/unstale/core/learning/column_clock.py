"""The fleet's week and its bursts for many polls at once, in NumPy: twins of `clock`, `bursts`, `timing`, to the bit.

What polls add to a tally is added in the order of the polls, number by number: sums of floats depend on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.bursts import SPANS, Bursts
from unstale.core.learning.clock import HOUR, HOURS, WEEK, WeekClock
from unstale.core.learning.exactly import exp, expm1, log, log2
from unstale.core.learning.timing import FEWEST, LENGTHS, LONGEST, MOST, RATES, SHORTEST

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]


def readings(clock: WeekClock, times: Floats) -> Floats:
    """`reading` of columns."""
    hours = times / HOUR
    weeks = np.floor(hours / WEEK) * WEEK
    rest = hours - weeks
    hour = np.minimum(rest.astype(np.int64), WEEK - 1)
    gone: Floats = weeks + clock.before[hour] + (rest - hour) * clock.intensity[hour]
    return gone * HOUR


def spans(bursts: Bursts, silence: Floats) -> Integers:
    """`span` of columns."""
    place = np.zeros(len(silence), dtype=np.int64)
    some = np.flatnonzero(~(silence <= 0.0))
    doublings = np.floor(log2(silence[some] / bursts.unit)).astype(np.int64)
    place[some] = np.minimum(np.maximum(doublings + 2, 1), SPANS - 1)
    return place


def changes_expected(likely: Floats) -> Floats:
    """How many changes a poll that found some stands for."""
    out = np.ones_like(likely)
    some = likely > 1e-9
    out[some] = likely[some] / -expm1(-likely[some])
    return out


def attribute_all(
    tally: Floats, clock: WeekClock, start: Floats, end: Floats, passed: Floats, rate: Floats, changed: Bits
) -> None:
    """`attribute` for polls in their order; `passed` is the difference of the clock's readings."""
    first, last, passed = start / HOUR, end / HOUR, passed / HOUR
    likely = rate * HOUR * passed
    changes = np.zeros_like(likely)
    changes[changed] = changes_expected(likely[changed])
    # Every poll is cut at the full hours: piece 0 begins with it, piece k at the k-th full hour after.
    begun = np.floor(first)
    pieces = np.maximum(np.ceil(last - begun), 1.0).astype(np.int64)
    pieces[~(first < last)] = 0
    poll = np.repeat(np.arange(len(first)), pieces)
    k = np.arange(len(poll)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    x = np.where(k == 0, first[poll], begun[poll] + k)
    real = x < last[poll]
    poll, x = poll[real], x[real]
    following = np.minimum(np.floor(x) + 1.0, last[poll])
    place = (np.floor(x) % WEEK).astype(np.int64)
    hour, day = place % HOURS, HOURS + place // HOURS
    watched = rate[poll] * HOUR * (following - x)
    for cells in (hour, day):
        np.add.at(tally[1], cells, watched)
    found = changed[poll]
    poll, x, following, place = poll[found], x[found], following[found], place[found]
    share = changes[poll] * clock.intensity[place] * (following - x) / passed[poll]
    for cells in (hour[found], day[found]):
        np.add.at(tally[0], cells, share)


def timed_all(clock: WeekClock, waits: Floats, last: Floats, interval: Floats, rate: Floats) -> Floats:
    """`timed` of columns."""
    hours = interval / HOUR
    length = log(hours)
    begun, changes, out = last / HOUR, rate * interval, interval.copy()
    short = np.flatnonzero(length < SHORTEST)
    middle = (np.floor(begun[short] + 0.5 * hours[short]) % WEEK).astype(np.int64)
    out[short] = _local_of(clock.intensity[middle], changes[short]) * interval[short]
    some = np.flatnonzero(~(length > LONGEST) & ~(length < SHORTEST))
    x = np.minimum(np.maximum((log(changes[some]) - FEWEST) / (MOST - FEWEST), 0.0), 0.999999) * (RATES - 1)
    y = np.minimum((length[some] - SHORTEST) / (LONGEST - SHORTEST), 0.999999) * (LENGTHS - 1)
    i, j = x.astype(np.int64), y.astype(np.int64)
    place = begun[some] % WEEK
    hour = place.astype(np.int64) % WEEK
    past, following, stretch = place - np.floor(place), (hour + 1) % WEEK, np.zeros(len(some))
    for a in range(2):
        for b in range(2):
            weight = (x - i if a else 1.0 - x + i) * (y - j if b else 1.0 - y + j)
            here, there = waits[i + a, j + b, hour], waits[i + a, j + b, following]
            stretch += weight * ((1.0 - past) * here + past * there)
    out[some] = stretch * interval[some]
    return out


def _local_of(intensity: Floats, changes: Floats) -> Floats:
    """`_local` of columns."""
    out = np.minimum(1.0 / np.sqrt(intensity), 2.0)
    some = np.flatnonzero(~(changes < 1e-3))
    busy, often = intensity[some], changes[some]
    worth = busy * (1.0 - (1.0 + often) * exp(-often))
    out[some[worth > 0.98]] = 2.0
    keep = ~(worth > 0.98)
    some, busy, often, worth = some[keep], busy[keep], often[keep], worth[keep]
    x, on = often * np.sqrt(busy), np.arange(len(some))
    for _ in range(8):
        slope = x[on] * exp(-x[on])
        on, slope = on[~(slope < 1e-12)], slope[~(slope < 1e-12)]
        y = x[on]
        x[on] = np.maximum(y - (1.0 - (1.0 + y) * exp(-y) - worth[on]) / slope, 1e-9)
    out[some] = np.minimum(x / (often * busy), 2.0)
    return out
