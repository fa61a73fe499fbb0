"""Learning and waiting, source by source, compiled: the steps that a whole fleet, one poll or a replay repeat."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.bursts import Bursts, count_changes, span
from unstale.core.learning.clock import HOUR, LONGEST_LESSON, Clock, attribute, reading
from unstale.core.learning.compiled import compiled
from unstale.core.learning.mixture import Room, Shared, foretold, gather, interval, learn
from unstale.core.learning.timing import timed

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]


class Columns(NamedTuple):
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


class Rhythm(NamedTuple):
    """What sources have in common beyond their rates: the week's clock with the best waits on it, and bursts.

    Each has the tally it is learned from, and `credit`: the log likelihood that clock and bursts have gained.
    """

    clock: Clock
    waits: Floats
    hours: Floats
    bursts: Bursts
    silences: Floats
    credit: Floats


@compiled
def observe(
    i: int, polled_at: float, changed: bool, modified: float, columns: Columns, shared: Shared, rhythm: Rhythm, at: Room
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
    passed = reading(rhythm.clock, polled_at) - reading(rhythm.clock, last)
    place = span(rhythm.bursts, last - columns.found[i])
    factor = rhythm.bursts.factor[place]
    # Clock and bursts are judged on every poll, before they learn from it, whether they are in use or not.
    plain = foretold(at, elapsed, changed)
    rhythm.credit[0] += foretold(at, passed, changed) - plain
    rhythm.credit[1] += foretold(at, factor * elapsed, changed) - plain
    if elapsed <= LONGEST_LESSON * HOUR:
        attribute(rhythm.hours, rhythm.clock, last, polled_at, rate, changed)
    count_changes(rhythm.silences, place, rate * elapsed, factor * rate * elapsed, changed)
    if not rhythm.clock.trusted:
        passed = elapsed
    if rhythm.bursts.trusted:
        passed *= factor
    since = math.nan
    if last < modified <= polled_at:
        since = polled_at - modified
        if rhythm.clock.trusted:
            since = reading(rhythm.clock, polled_at) - reading(rhythm.clock, modified)
    learn(columns.rows[i], shared, at, elapsed, passed, changed, since)
    columns.last[i] = polled_at
    if changed:
        columns.found[i] = polled_at


@compiled
def wait(i: int, price: float, columns: Columns, shared: Shared, rhythm: Rhythm, at: Room) -> float:
    """How long after its last answer source i is due at a price."""
    shortest, longest = columns.shortest[i], columns.longest[i]
    rate = gather(columns.rows[i], shared, at)
    worth = price * columns.cost[i] / columns.weight[i] if columns.weight[i] > 0.0 else math.inf
    factor = 1.0
    # A source that has never answered has no place on the clock.
    known = math.isfinite(columns.last[i])
    if rhythm.bursts.trusted and known:
        factor = rhythm.bursts.factor[span(rhythm.bursts, columns.last[i] - columns.found[i])]
    # With changes coming `factor` times as often, the value after t is that after factor·t, in units as much shorter.
    scale = factor * factor if shared.objective == 1 else factor
    begin = factor * columns.interval[i]
    even: float = interval(at, shared, scale * worth, factor * shortest, factor * longest, begin) / factor
    columns.interval[i] = even
    if rhythm.clock.trusted and known and shared.objective == 0 and even < longest:
        moved = timed(rhythm.clock, rhythm.waits, columns.last[i], even, factor * rate)
        even = min(max(moved, shortest), longest)
    return even


@compiled
def observe_all(
    which: Integers, polled_at: Floats, changed: Bits, modified: Floats,
    columns: Columns, shared: Shared, rhythm: Rhythm, at: Room,
) -> None:  # fmt: skip
    """`observe` for many polls, in the order given."""
    for k in range(len(which)):
        observe(which[k], polled_at[k], changed[k], modified[k], columns, shared, rhythm, at)


@compiled
def all_waits(price: float, columns: Columns, shared: Shared, rhythm: Rhythm, at: Room) -> Floats:
    """`wait` for every source."""
    out = np.empty(len(columns.last))
    for i in range(len(out)):
        out[i] = wait(i, price, columns, shared, rhythm, at)
    return out


@compiled
def some_waits(which: Integers, price: float, columns: Columns, shared: Shared, rhythm: Rhythm, at: Room) -> Floats:
    """`wait` for these sources."""
    out = np.empty(len(which))
    for k in range(len(which)):
        out[k] = wait(which[k], price, columns, shared, rhythm, at)
    return out


@compiled
def expected_cost(
    which: Integers, price: float, now: float, until: float, columns: Columns, shared: Shared, rhythm: Rhythm, at: Room
) -> float:
    """What these sources would spend between now and `until` at a price."""
    total = 0.0
    for i in which:
        pause = wait(i, price, columns, shared, rhythm, at)
        due = max(now, columns.last[i] + pause - columns.head_start[i])
        if due < until:
            # The first wait depends on the hour, those after it are about even.
            total += columns.cost[i] * (1.0 + math.floor((until - due) / columns.interval[i]))
    return total


@compiled
def rates(columns: Columns, shared: Shared, at: Room) -> Floats:
    """The mean believed change rate of every source."""
    out = np.empty(len(columns.last))
    for i in range(len(out)):
        out[i] = gather(columns.rows[i], shared, at)
    return out


@compiled
def all_passed(last: Floats, found: Floats, now: float, rhythm: Rhythm) -> Floats:
    """How long ago each source answered, on the clock and at the pace that are trusted; 0 if it never did."""
    out = np.zeros(len(last))
    for i in range(len(out)):
        if math.isfinite(last[i]) and last[i] < now:
            out[i] = now - last[i]
            if rhythm.clock.trusted:
                out[i] = reading(rhythm.clock, now) - reading(rhythm.clock, last[i])
            if rhythm.bursts.trusted:
                out[i] *= rhythm.bursts.factor[span(rhythm.bursts, last[i] - found[i])]
    return out


@compiled
def weights(columns: Columns, shared: Shared, step: int, at: Room) -> Floats:
    """Each half-life's weight at every step-th source."""
    count = len(shared.half_lives)
    out = np.empty(((len(columns.last) + step - 1) // step, count))
    for j in range(len(out)):
        gather(columns.rows[j * step], shared, at)
        out[j] = at.weight
    return out
