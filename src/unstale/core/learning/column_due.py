"""When sources are due, what they would spend, how urgent they are: many at once in NumPy, twins to the last bit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.column_beliefs import gathered, values
from unstale.core.learning.column_steps import cost_until, factors, powers, turns, waits_in_columns, waits_in_turns
from unstale.core.learning.exactly import exp, log
from unstale.core.learning.mixture import Scratch, Shared
from unstale.core.learning.reach import (
    BY_CHANCE,
    FAILURE_SPREAD,
    FAR,
    GOLDEN,
    MOST_DOUBLINGS,
    NEAR,
    PLASTIC,
    SPLIT,
    SPREAD,
)

if TYPE_CHECKING:
    from unstale.core.learning.columns import LearnerColumns, SharedTiming
    from unstale.core.learning.outlay import Outlay

Integers = NDArray[np.int64]


def spreads(numbers: Integers, at: Floats) -> Floats:
    """`spread` of columns."""
    turn = np.where(np.isfinite(at), at, 0.0)
    return 2.0 * ((numbers * GOLDEN + turn * PLASTIC) % 1.0) - 1.0


def rounded_all(seconds: Floats) -> Floats:
    """`rounded` of columns."""
    with np.errstate(all="ignore"):
        scaled = SPLIT * seconds
        return np.where(scaled < math.inf, scaled - (scaled - seconds), seconds)


def due_in_columns(
    which: Integers,
    numbers: Integers,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """`due_after_answers` in NumPy."""
    last = columns.last[which]
    jittered = waits_in_columns(which, price, columns, shared, timing, at) * (1.0 + SPREAD * spreads(numbers, last))
    bounded = np.minimum(np.maximum(rounded_all(jittered), columns.shortest[which]), columns.longest[which])
    out: Floats = last + bounded - columns.head_start[which]
    return out


def jittered_cost_in_columns(
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
    """`jittered_cost` in NumPy."""
    due = np.maximum(now, due_in_columns(which, numbers, price, columns, shared, timing, at))
    return cost_until(which, due, until, columns.interval[which], columns)


def failures_in_columns(
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
    """`due_after_failures` in NumPy."""
    doublings = np.minimum(np.maximum(failures - BY_CHANCE, 0), MOST_DOUBLINGS)
    doubled = np.exp2(doublings.astype(np.float64))
    doubled *= 1.0 + np.where(doublings > 0, FAILURE_SPREAD, SPREAD) * spreads(numbers, polled_at)
    backed_off = rounded_all(waits_in_columns(which, price, columns, shared, timing, at) * doubled)
    out: Floats = polled_at + np.minimum(np.maximum(backed_off, columns.shortest[which]), columns.longest[which])
    return out


def look_again_in_columns(
    which: Integers,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
    known: Outlay,
) -> int:
    """`look_again` in NumPy."""
    x = math.log(price)
    last, power, even = columns.last[which], known.power[which], known.even[which]
    with np.errstate(all="ignore"):
        off = x - log(columns.weight[which] / columns.cost[which]) - known.at[which]
        beyond = (even >= columns.longest[which]) & (off > 0.0) | (even <= columns.shortest[which]) & (off < 0.0)
        enough = (power == 0.0) | (np.abs(power * off) <= NEAR) | beyond
    again = np.flatnonzero(~((known.last[which] == last) & enough))
    which = which[again]
    for turn, pause, beliefs in waits_in_turns(which, price, columns, shared, timing):
        i = which[turn]
        even, weight = columns.interval[i], columns.weight[i]
        scale = factors(i, columns, timing) if shared.harm.scale_free else np.ones(len(i))
        worth, slope = values(beliefs, shared, scale * even)
        known.last[i], known.even[i] = columns.last[i], even
        if len(known.ratio):
            known.ratio[i] = pause / even
        pays = (weight > 0.0) & (worth > 0.0) & (slope > 0.0)
        known.power[i] = np.where(pays, worth / (slope * scale * even), 0.0)
        where = log(worth)
        stretched = np.flatnonzero(scale != 1.0)
        where[stretched] -= (1.0 + shared.harm.degree) * log(scale[stretched])
        known.at[i] = np.where(pays, where, 0.0)
    return len(again)


def outlay_in_columns(
    which: Integers,
    numbers: Integers,
    jitter: float,
    price: float,
    now: float,
    until: float,
    columns: LearnerColumns,
    known: Outlay,
) -> float:
    """`outlay` in NumPy."""
    even, last, power, x = known.even[which], columns.last[which], known.power[which], math.log(price)
    shortest, longest = columns.shortest[which], columns.longest[which]
    some = np.flatnonzero(power != 0.0)
    with np.errstate(all="ignore"):
        i = which[some]
        moved = power[some] * (x - log(columns.weight[i] / columns.cost[i]) - known.at[i])
        even[some] *= exp(np.minimum(np.maximum(moved, -FAR), FAR))
        even[some] = np.minimum(np.maximum(even[some], shortest[some]), longest[some])
        pause = (known.ratio[which] * even if len(known.ratio) else even) * (1.0 + jitter * spreads(numbers, last))
        bounded = np.minimum(np.maximum(pause, shortest), longest)
        due = np.maximum(now, last + bounded - columns.head_start[which])
        return cost_until(which, due, until, even, columns)


def urgencies_in_columns(
    which: Integers,
    late: Floats,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """`urgencies` in NumPy."""
    out, harm = np.empty(len(which)), shared.harm
    with np.errstate(all="ignore"):
        for turn in turns(np.arange(len(which))):
            i = which[turn]
            even = columns.interval[i]
            then, weight = even + late[turn], columns.weight[i]
            beliefs, factor = gathered(np.ascontiguousarray(columns.rows[i].T), shared), factors(i, columns, timing)
            scale = factor if harm.scale_free else np.ones(len(i))
            if not harm.scale_free:
                beliefs = beliefs._replace(exposure=beliefs.exposure / factor)
            before = values(beliefs, shared, scale * even)[0]
            # It may not be polled as soon as it pays, or nothing is known of it.
            early = (weight > 0.0) & ((even <= columns.shortest[i]) | ~np.isfinite(columns.found[i]))
            paid = price * columns.cost[i] / weight * powers(scale, 1.0 + harm.degree)
            before = np.where(early, np.minimum(before, paid), before)
            worth = np.where(before > 0.0, values(beliefs, shared, scale * then)[0] / before, then / even)
            out[turn] = worth * np.maximum(then / columns.longest[i], 1.0)
    return out
