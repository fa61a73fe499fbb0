"""The history of one copy, event by event, compiled: no lists of events, no memory beyond a few numbers.

Rules of this file:
1. Every run of every source has its own stream of random numbers, a function of (seed, source, run): results
   do not depend on threads, blocks or the order of work.
2. Runs are stationary from the first moment. They begin at the last poll before 0, the changes of which are
   met at a random time, and are measured from 0 to the horizon [003 definition 6].
3. Only the first change after a poll matters to the age. So when the last poll before 0 lies more than FORGOTTEN
   changes back, those between the first one and the last FORGOTTEN are not drawn: the expectations of freshness
   and age stay exact, missed changes are counted from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from unstale.core.checks import Floats
from unstale.sim.draws import CONSTANT, SWEEP, compiled, gap, met, stream, unit

try:
    import numba
except ImportError:
    numba = None

#: worth sharing the work; plain Python cannot run in parallel
THREADS: int = 1 if numba is None else numba.config.NUMBA_NUM_THREADS

#: in mean gaps between changes: how far back from 0 changes are drawn at most
FORGOTTEN = 1e5


@compiled
def history(
    seed: Any,
    source: int,
    run: int,
    change_kind: int,
    change_shape: float,
    change_scale: float,
    change_mean: float,
    poll_kind: int,
    poll_shape: float,
    poll_scale: float,
    horizon: float,
    tau: float,
) -> tuple[float, float, float, float, int, int, int]:
    """One run of one copy from 0 to the horizon: time fresh, ∫ age, ∫ number of unseen changes, time stale by
    at most tau or fresh, polls, changes, and polls that found a change.

    A SWEEP polls once in each of a row of equal rounds, at a random point of it: the gaps of the random order
    of [000 Algorithm B.2] for many sources, with their true dependence.
    """
    c, p = stream(seed, source, 2 * run), stream(seed, source, 2 * run + 1)
    turn = 2.0
    if poll_kind == SWEEP:
        u, p = unit(p)
        origin = -u * poll_scale
        u, p = unit(p)
        v, p = unit(p)
        last, due = origin + u * poll_scale, origin + (1.0 + v) * poll_scale
        if last > 0.0:
            last, due, turn = origin + (v - 1.0) * poll_scale, last, 1.0
    else:
        since, left, p = met(poll_kind, poll_shape, poll_scale, p)
        origin = last = -since
        due = left
    change = math.inf
    if change_scale < math.inf:
        _, left, c = met(change_kind, change_shape, change_scale, c)
        change = last + left
    first = change
    if change < -FORGOTTEN * change_mean:
        _, left, c = met(change_kind, change_shape, change_scale, c)
        change = left - FORGOTTEN * change_mean
    fresh, age, missed, within = 0.0, 0.0, 0.0, 0.0
    polls, changes, found = 0, 0, 0
    while True:
        stop = min(due, horizon)
        while change < stop:
            missed += stop - max(change, 0.0)
            changes += change >= 0.0
            x, c = gap(change_kind, change_shape, change_scale, c)
            change += x
        # stale from the first change on; what lies before 0 does not count
        stale = min(max(first, 0.0), stop)
        fresh += stale - max(last, 0.0)
        if first < stop:
            high, low = stop - first, stale - first
            age += 0.5 * (high - low) * (high + low)
            within += min(high, tau) - min(low, tau)
        if due >= horizon:
            return fresh, age, missed, fresh + within, polls, changes, found
        polls += 1
        found += first < due
        first = change
        last = due
        if poll_kind == SWEEP:
            u, p = unit(p)
            due = origin + (turn + u) * poll_scale
        elif poll_kind == CONSTANT:
            due = origin + turn * poll_scale
        else:
            x, p = gap(poll_kind, poll_shape, poll_scale, p)
            due += x
        turn += 1.0


@compiled
def copy_runs(
    seed: Any,
    first: int,
    last: int,
    change_kind: int,
    change_shape: float,
    change_scale: float,
    change_mean: float,
    poll_kind: int,
    poll_shape: float,
    poll_scale: float,
    horizon: float,
    tau: float,
    out: Floats,
) -> None:
    """Rows first..last of `out`: what `history` gives for as many runs of one copy."""
    for run in range(first, last):
        row = out[run]
        row[0], row[1], row[2], row[3], row[4], row[5], row[6] = history(
            seed,
            0,
            run,
            change_kind,
            change_shape,
            change_scale,
            change_mean,
            poll_kind,
            poll_shape,
            poll_scale,
            horizon,
            tau,
        )


@compiled
def fleet_runs(
    seed: Any,
    first: int,
    last: int,
    runs: int,
    change_kind: Any,
    change_shape: Floats,
    change_scale: Floats,
    change_mean: Floats,
    poll_kind: int,
    poll_shape: float,
    poll_scale: Floats,
    horizon: float,
    out: Floats,
) -> None:
    """Columns of `out` for sources first..last: means over the runs of freshness and age, the sums of their
    squared deviations, and polls, changes and polls that found a change, added up."""
    for i in range(first, last):
        fresh_mean, fresh_spread, age_mean, age_spread = 0.0, 0.0, 0.0, 0.0
        polls, changes, found = 0, 0, 0
        for run in range(runs):
            if poll_scale[i] < math.inf:
                fresh, age, _, _, polled, changed, useful = history(
                    seed,
                    i,
                    run,
                    change_kind[i],
                    change_shape[i],
                    change_scale[i],
                    change_mean[i],
                    poll_kind,
                    poll_shape,
                    poll_scale[i],
                    horizon,
                    0.0,
                )
                polls, changes, found = polls + polled, changes + changed, found + useful
            elif change_scale[i] < math.inf:
                fresh, age = 0.0, math.inf
            else:
                fresh, age = horizon, 0.0
            # Welford's means: no cancellation, whatever the number of runs
            step = fresh / horizon - fresh_mean
            fresh_mean += step / (run + 1)
            fresh_spread += step * (fresh / horizon - fresh_mean)
            if age < math.inf:
                step = age / horizon - age_mean
                age_mean += step / (run + 1)
                age_spread += step * (age / horizon - age_mean)
            else:
                age_mean = math.inf
        out[0, i], out[1, i], out[2, i], out[3, i] = fresh_mean, fresh_spread, age_mean, age_spread
        out[4, i], out[5, i], out[6, i] = polls, changes, found


def in_threads(work: Callable[[int, int], None], count: int, part: int, done: Callable[[float], None] | None) -> None:
    """work(first, last) for 0..count in parts, by as many threads as there are; `done` hears the share."""
    starts = range(0, count, part)
    with ThreadPoolExecutor(THREADS) as pool:
        for k, _ in enumerate(pool.map(lambda first: work(first, min(first + part, count)), starts)):
            if done is not None:
                done((k + 1) / len(starts))
