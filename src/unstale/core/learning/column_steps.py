"""Learning and waiting for many sources at once, in NumPy: twins of the steps in `columns`, equal to the last bit.

They are what a plain installation learns with, and every process that has too little to learn to load a compiler.

Rules of this file:
1. One after the other where the order tells: a source that is named twice is taken in two turns, and sums over
   sources are added in their order.
2. Some thousand sources at a time, so that what is computed of them stays in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.clock import HOUR, LONGEST_LESSON
from unstale.core.learning.column_beliefs import Gathered, foretold_of, gathered, intervals, learn_all
from unstale.core.learning.column_clock import attribute_all, changes_expected, readings, spans, timed_all
from unstale.core.learning.mixture import Scratch, Shared

if TYPE_CHECKING:
    from unstale.core.learning.columns import LearnerColumns, SharedTiming

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]

_BLOCK = 8192


def turns(which: Integers) -> Iterator[Integers]:
    """Places in `which`, some thousand at a time and none of a source twice at once, each source's in their order."""
    if len(which) > 1 and len(np.unique(which)) < len(which):
        order = np.argsort(which, kind="stable")
        ranked = which[order]
        begin = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        turn = np.empty(len(which), dtype=np.int64)
        turn[order] = np.arange(len(which)) - np.repeat(begin, np.diff(np.append(begin, len(which))))
        for k in range(int(turn.max()) + 1):
            yield from _blocks(np.flatnonzero(turn == k))
    else:
        yield from _blocks(np.arange(len(which)))


def _blocks(places: Integers) -> Iterator[Integers]:
    for begin in range(0, len(places), _BLOCK):
        yield places[begin : begin + _BLOCK]


def observe_columns(
    which: Integers,
    polled_at: Floats,
    changed: Bits,
    modified: Floats,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> None:
    """`observe_all` in NumPy."""
    count = len(which)
    #: of every poll that teaches: its last answer, what passed on the clock, the rate, the place among the bursts,
    #: and by how much the clock and the bursts foretold it better
    told = np.full((5, count), np.nan)
    places = np.zeros(count, dtype=np.int64)
    with np.errstate(all="ignore"):
        for turn in turns(which):
            _observe_distinct(
                which[turn], polled_at[turn], changed[turn], modified[turn], columns, shared, timing, told, places, turn
            )
        last, passed, rate, by_clock, by_bursts = told
        for cell, gain in enumerate((by_clock, by_bursts)):
            gains = gain[gain == gain]
            timing.credit[cell] = _added_to(timing.credit[cell], gains)
        taught = np.flatnonzero(rate == rate)
        elapsed = polled_at - last
        lesson = taught[elapsed[taught] <= LONGEST_LESSON * HOUR]
        between = last[lesson], polled_at[lesson], passed[lesson]
        attribute_all(timing.hours, timing.clock, *between, rate[lesson], changed[lesson])
        likely, factor = rate * elapsed, timing.bursts.factor[places]
        np.add.at(timing.silences[1], places[taught], likely[taught])
        found = taught[changed[taught]]
        np.add.at(timing.silences[0], places[found], changes_expected((factor * rate * elapsed)[found]))


def _added_to(total: float, numbers: Floats) -> float:
    """A sum taken one after the other."""
    return float(np.add.accumulate(np.concatenate([[total], numbers]))[-1])


def _observe_distinct(
    which: Integers,
    polled_at: Floats,
    changed: Bits,
    modified: Floats,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    told: Floats,
    places: Integers,
    turn: Integers,
) -> None:
    """Teach sources of which none is named twice, and note what all share is to learn of it."""
    columns.head_start[which] = 0.0
    last = columns.last[which]
    elapsed = polled_at - last
    columns.last[which] = polled_at
    later = np.flatnonzero(elapsed > 0.0)
    if not len(later):
        return
    which, changed, turn = which[later], changed[later], turn[later]
    polled_at, modified, last, elapsed = (x[later] for x in (polled_at, modified, last, elapsed))
    rows = np.ascontiguousarray(columns.rows[which].T)
    at = gathered(rows, shared)
    now = readings(timing.clock, polled_at)
    passed = now - readings(timing.clock, last)
    place = spans(timing.bursts, last - columns.found[which])
    factor = timing.bursts.factor[place]
    told[0, turn], told[1, turn], told[2, turn], places[turn] = last, passed, at.rate, place
    clocked, burst = passed != elapsed, factor != 1.0
    some = np.flatnonzero(clocked | burst)
    plain = np.empty(len(which))
    plain[some] = foretold_of(at.of(some), elapsed[some], changed[some])
    for row, mine, length in ((3, np.flatnonzero(clocked), passed), (4, np.flatnonzero(burst), factor * elapsed)):
        if len(mine):
            told[row, turn[mine]] = foretold_of(at.of(mine), length[mine], changed[mine]) - plain[mine]
    if not timing.clock.trusted:
        passed = elapsed
    if timing.bursts.trusted:
        passed = passed * factor
    since = np.full(len(which), np.nan)
    dated = np.flatnonzero((last < modified) & (modified <= polled_at))
    if len(dated):
        since[dated] = polled_at[dated] - modified[dated]
        if timing.clock.trusted:
            since[dated] = now[dated] - readings(timing.clock, modified[dated])
    learn_all(rows, shared, at, elapsed, passed, changed, since)
    columns.rows[which] = rows.T
    columns.found[which[changed]] = polled_at[changed]


def waits_in_turns(
    which: Integers, price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming
) -> Iterator[tuple[Integers, Floats, Gathered]]:
    """`wait` for these sources: their places in `which`, their waits, and the beliefs as the interval was found."""
    with np.errstate(all="ignore"):
        for turn in turns(which):
            yield turn, *_wait_distinct(which[turn], price, columns, shared, timing)


def _wait_distinct(
    which: Integers, price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming
) -> tuple[Floats, Gathered]:
    at = gathered(np.ascontiguousarray(columns.rows[which].T), shared)
    shortest, longest, last = columns.shortest[which], columns.longest[which], columns.last[which]
    weight, begin, harm = columns.weight[which], columns.interval[which], shared.harm
    worth = np.where(weight > 0.0, price * columns.cost[which] / weight, math.inf)
    known = np.isfinite(last)
    factor = factors(which, columns, timing)
    if harm.scale_free:
        scale = factor * powers(factor, harm.degree)
        even = intervals(at, shared, scale * worth, factor * shortest, factor * longest, factor * begin) / factor
    else:
        at = at._replace(exposure=at.exposure / factor)
        even = intervals(at, shared, worth, shortest, longest, begin)
    columns.interval[which] = even
    if timing.clock.trusted and harm.timed:
        some = np.flatnonzero(known & (even < longest))
        moved = timed_all(timing.clock, timing.waits, last[some], even[some], factor[some] * at.rate[some])
        even[some] = np.minimum(np.maximum(moved, shortest[some]), longest[some])
    return even, at


def factors(which: Integers, columns: LearnerColumns, timing: SharedTiming) -> Floats:
    """How many times as often as usual each of these changes now, as far as bursts are trusted."""
    factor = np.ones(len(which))
    if timing.bursts.trusted:
        last = columns.last[which]
        known = np.flatnonzero(np.isfinite(last))
        silence = last[known] - columns.found[which[known]]
        factor[known] = timing.bursts.factor[spans(timing.bursts, silence)]
    return factor


def powers(numbers: Floats, degree: float) -> Floats:
    """Powers of a few distinct numbers, each computed once."""
    distinct, where = np.unique(numbers, return_inverse=True)
    return np.array([x**degree for x in distinct.tolist()])[where]


def waits_in_columns(
    which: Integers, price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming, at: Scratch
) -> Floats:
    """`some_waits` in NumPy."""
    out = np.empty(len(which))
    for turn, even, _ in waits_in_turns(which, price, columns, shared, timing):
        out[turn] = even
    return out


def all_waits_in_columns(
    price: float, columns: LearnerColumns, shared: Shared, timing: SharedTiming, at: Scratch
) -> Floats:
    """`all_waits` in NumPy."""
    return waits_in_columns(np.arange(len(columns.last)), price, columns, shared, timing, at)


def expected_cost_in_columns(
    which: Integers,
    price: float,
    now: float,
    until: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> float:
    """`expected_cost` in NumPy."""
    pause = waits_in_columns(which, price, columns, shared, timing, at)
    due = np.maximum(now, columns.last[which] + pause - columns.head_start[which])
    return cost_until(which, due, until, columns.interval[which], columns)


def cost_until(which: Integers, due: Floats, until: float, even: Floats, columns: LearnerColumns) -> float:
    """What these sources spend until then, due at these times and then evenly."""
    some = np.flatnonzero(due < until)
    return _added_to(0.0, columns.cost[which[some]] * (1.0 + np.floor((until - due[some]) / even[some])))


def rates_in_columns(columns: LearnerColumns, shared: Shared, at: Scratch) -> Floats:
    """`rates` in NumPy."""
    out = np.empty(len(columns.last))
    for places in _blocks(np.arange(len(out))):
        out[places] = gathered(np.ascontiguousarray(columns.rows[places].T), shared).rate
    return out


def passed_in_columns(last: Floats, found: Floats, now: float, timing: SharedTiming) -> Floats:
    """`all_passed` in NumPy."""
    out = np.zeros(len(last))
    some = np.flatnonzero(np.isfinite(last) & (last < now))
    out[some] = now - last[some]
    with np.errstate(all="ignore"):
        if timing.clock.trusted:
            out[some] = readings(timing.clock, np.array([now])) - readings(timing.clock, last[some])
        if timing.bursts.trusted:
            out[some] *= timing.bursts.factor[spans(timing.bursts, last[some] - found[some])]
    return out


def weights_in_columns(columns: LearnerColumns, shared: Shared, step: int, at: Scratch) -> Floats:
    """`weights` in NumPy."""
    return np.ascontiguousarray(gathered(np.ascontiguousarray(columns.rows[::step].T), shared).weight.T)


def gains_in_columns(
    which: Integers,
    elapsed: Floats,
    changed: Bits,
    alone: Floats,
    told: Floats,
    pace: Floats,
    beliefs: Floats,
    shared: Shared,
    at: Scratch,
) -> Floats:
    """`gains` of siblings."""
    seen = gathered(np.ascontiguousarray(beliefs[which].T), shared)
    likely = seen.rate * elapsed
    doubt, plain = alone * likely + told, pace * likely
    gained = foretold_of(seen, doubt / seen.rate, changed) - foretold_of(seen, plain / seen.rate, changed)
    return np.stack((likely, gained))
