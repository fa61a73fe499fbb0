"""Learning and waiting, source by source, compiled: the steps that a whole fleet, one poll or a replay repeat.

Each step over many has a twin in NumPy, `column_steps`: change both, or a test will say where they differ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.bursts import Bursts, count_changes, span
from unstale.core.learning.clock import HOUR, LONGEST_LESSON, WeekClock, attribute, reading
from unstale.core.learning.column_steps import (
    all_waits_in_columns,
    expected_cost_in_columns,
    observe_columns,
    passed_in_columns,
    rates_in_columns,
    waits_in_columns,
    weights_in_columns,
)
from unstale.core.learning.compiled import LIGHT, in_columns, pasted
from unstale.core.learning.mixture import Scratch, Shared, foretold, gather, interval, learn
from unstale.core.learning.timing import timed

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]


class LearnerColumns(NamedTuple):
    """A fleet in columns: what each source has taught, when it last answered, and what bounds its polls."""

    rows: Floats
    last: Floats
    #: when a poll last found a change
    found: Floats
    #: the interval at the last price, before the clock: the next search begins there
    interval: Floats
    #: taken off the first wait, so that a fleet does not begin all at once
    head_start: Floats
    weight: Floats
    cost: Floats
    shortest: Floats
    longest: Floats


class SharedTiming(NamedTuple):
    """What sources have in common beyond their rates: the week's clock with the best waits on it, and bursts.

    Each has the tally it is learned from, and `credit`: the log likelihood that clock and bursts have gained.
    """

    clock: WeekClock
    waits: Floats
    hours: Floats
    bursts: Bursts
    silences: Floats
    credit: Floats


@pasted
def observe(
    i: int,
    polled_at: float,
    changed: bool,
    modified: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> None:
    """Teach source i what a poll found; `modified` is when it says it last changed, or NaN."""
    columns.head_start[i] = 0.0
    last = columns.last[i]
    elapsed = polled_at - last
    if elapsed <= 0.0:
        # A clock that went back teaches nothing, and must not stop us from learning later.
        columns.last[i] = polled_at
        return
    rate = gather(columns.rows[i], shared, at)
    passed = reading(timing.clock, polled_at) - reading(timing.clock, last)
    place = span(timing.bursts, last - columns.found[i])
    factor = timing.bursts.factor[place]
    # Clock and bursts are judged on every poll, before they learn from it, whether they are in use or not.
    plain = foretold(at, elapsed, changed)
    if passed != elapsed:
        timing.credit[0] += foretold(at, passed, changed) - plain
    if factor != 1.0:
        timing.credit[1] += foretold(at, factor * elapsed, changed) - plain
    if elapsed <= LONGEST_LESSON * HOUR:
        attribute(timing.hours, timing.clock, last, polled_at, rate, changed)
    count_changes(timing.silences, place, rate * elapsed, factor * rate * elapsed, changed)
    if not timing.clock.trusted:
        passed = elapsed
    if timing.bursts.trusted:
        passed *= factor
    since = math.nan
    if last < modified <= polled_at:
        since = polled_at - modified
        if timing.clock.trusted:
            since = reading(timing.clock, polled_at) - reading(timing.clock, modified)
    learn(columns.rows[i], shared, at, elapsed, passed, changed, since)
    columns.last[i] = polled_at
    if changed:
        columns.found[i] = polled_at


@pasted
def wait(i: int, price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming, at: Scratch) -> float:
    """How long after its last answer source i is due at a price."""
    shortest, longest = columns.shortest[i], columns.longest[i]
    rate = gather(columns.rows[i], shared, at)
    worth = price * columns.cost[i] / columns.weight[i] if columns.weight[i] > 0.0 else math.inf
    factor = 1.0
    # A source that has never answered has no place on the clock.
    known = math.isfinite(columns.last[i])
    if timing.bursts.trusted and known:
        factor = timing.bursts.factor[span(timing.bursts, columns.last[i] - columns.found[i])]
    harm, begin = shared.harm, columns.interval[i]
    even = 0.0
    if harm.scale_free:
        # With changes `factor` times as often, the value after t is that after factor·t, in units as much shorter.
        scale = factor * factor**harm.degree
        even = interval(at, shared, scale * worth, factor * shortest, factor * longest, factor * begin) / factor
    else:
        for k in range(len(at.exposure)):
            at.exposure[k] /= factor
        even = interval(at, shared, worth, shortest, longest, begin)
    columns.interval[i] = even
    if timing.clock.trusted and known and harm.timed and even < longest:
        moved = timed(timing.clock, timing.waits, columns.last[i], even, factor * rate)
        even = min(max(moved, shortest), longest)
    return even


@in_columns(observe_columns)
def observe_all(
    which: Integers,
    polled_at: Floats,
    changed: Bits,
    modified: Floats,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> None:
    """`observe` for many polls, in the order given."""
    for k in range(len(which)):
        observe(which[k], polled_at[k], changed[k], modified[k], columns, shared, timing, at)


@in_columns(all_waits_in_columns)
def all_waits(price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming, at: Scratch) -> Floats:
    """`wait` for every source."""
    out = np.empty(len(columns.last))
    for i in range(len(out)):
        out[i] = wait(i, price, columns, shared, timing, at)
    return out


@in_columns(waits_in_columns)
def some_waits(
    which: Integers, price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming, at: Scratch
) -> Floats:
    """`wait` for these sources."""
    out = np.empty(len(which))
    for k in range(len(which)):
        out[k] = wait(which[k], price, columns, shared, timing, at)
    return out


@in_columns(expected_cost_in_columns)
def expected_cost(
    which: Integers,
    price: float,
    now: float,
    until: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> float:
    """What these sources would spend between now and `until` at a price."""
    total = 0.0
    for i in which:
        pause = wait(i, price, columns, shared, timing, at)
        due = max(now, columns.last[i] + pause - columns.head_start[i])
        if due < until:
            # The first wait depends on the hour, those after it are about even.
            total += columns.cost[i] * (1.0 + math.floor((until - due) / columns.interval[i]))
    return total


@in_columns(rates_in_columns, LIGHT)
def rates(columns: LearnerColumns, shared: Shared, at: Scratch) -> Floats:
    """The mean believed change rate of every source."""
    out = np.empty(len(columns.last))
    for i in range(len(out)):
        out[i] = gather(columns.rows[i], shared, at)
    return out


@in_columns(passed_in_columns, LIGHT)
def all_passed(last: Floats, found: Floats, now: float, timing: SharedTiming) -> Floats:
    """How long ago each source answered, on the clock and at the pace that are trusted; 0 if it never did."""
    out = np.zeros(len(last))
    for i in range(len(out)):
        if math.isfinite(last[i]) and last[i] < now:
            out[i] = now - last[i]
            if timing.clock.trusted:
                out[i] = reading(timing.clock, now) - reading(timing.clock, last[i])
            if timing.bursts.trusted:
                out[i] *= timing.bursts.factor[span(timing.bursts, last[i] - found[i])]
    return out


@in_columns(weights_in_columns, LIGHT)
def weights(columns: LearnerColumns, shared: Shared, step: int, at: Scratch) -> Floats:
    """Each half-life's weight at every step-th source."""
    count = len(shared.half_lives)
    out = np.empty(((len(columns.last) + step - 1) // step, count))
    for j in range(len(out)):
        gather(columns.rows[j * step], shared, at)
        out[j] = at.weight
    return out
