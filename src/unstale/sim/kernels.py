"""The history of one copy, event by event, compiled: no lists of events, no memory beyond a few numbers.

Rules of this file:
1. It loads numba, so only what simulates imports it. Without numba the same functions run as
   plain Python, give the same numbers bit for bit, and take some hundred times longer.
2. Every run of every source has its own stream of random numbers, a function of (seed, source, run): results
   do not depend on threads, blocks or the order of work.
3. Runs are stationary from the first moment. They begin at the last poll before 0, the changes of which are
   met at a random time, and are measured from 0 to the horizon [003 definition 6].
4. A law of gaps is (kind, shape, scale); a scale of inf means that no event ever comes.
5. Only the first change after a poll matters to the age. So when the last poll before 0 lies more than FORGOTTEN
   changes back, those between the first one and the last FORGOTTEN are not drawn: the expectations of freshness
   and age stay exact, missed changes are counted from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from unstale.core import processes
from unstale.core.checks import Floats
from unstale.core.compiling import kept

try:
    import numba
except ImportError:
    numba = None

F = TypeVar("F", bound=Callable[..., Any])

#: worth sharing the work; plain Python cannot run in parallel
THREADS: int = 1 if numba is None else numba.config.NUMBA_NUM_THREADS

EXPONENTIAL, CONSTANT, UNIFORM, PARETO, WEIBULL, GAMMA, LOGNORMAL, TRIANGULAR, SWEEP = range(9)
Law = tuple[int, float, float]
#: in mean gaps between changes: how far back from 0 changes are drawn at most
FORGOTTEN = 1e5

_WORD = 2**64 - 1
# SplitMix64 (Steele, Lea, Flood 2014): a counter stepped by the golden ratio, each value mixed by Stafford's 13
_STEP, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def compiled(function: F) -> F:
    """The function, compiled where numba is installed."""
    # no fast arithmetic: plain Python must give the same bits
    if numba is None:
        return function
    return kept(function, nogil=True, error_model="numpy")


if numba is None:

    def word(x: int) -> Any:
        """An integer as 64 bits."""
        return int(x) & _WORD

    def mixed(z: Any) -> Any:
        """Sixty-four bits, thoroughly mixed."""
        z = ((z ^ (z >> 30)) * _MIX1) & _WORD
        z = ((z ^ (z >> 27)) * _MIX2) & _WORD
        return z ^ (z >> 31)

    def stepped(state: Any, steps: int) -> Any:
        """The counter, some steps on."""
        return (state + _STEP * steps) & _WORD

    def share(z: Any) -> float:
        """The upper 53 bits as a number in (0, 1]."""
        return float((z >> 11) + 1) * 2.0**-53

else:
    _S, _M1, _M2 = np.uint64(_STEP), np.uint64(_MIX1), np.uint64(_MIX2)
    _30, _27, _31, _11, _1 = (np.uint64(k) for k in (30, 27, 31, 11, 1))

    def word(x: int) -> Any:
        """An integer as 64 bits."""
        return np.uint64(int(x) & _WORD)

    @compiled
    def mixed(z: Any) -> Any:
        """Sixty-four bits, thoroughly mixed."""
        z = (z ^ (z >> _30)) * _M1
        z = (z ^ (z >> _27)) * _M2
        return z ^ (z >> _31)

    @compiled
    def stepped(state: Any, steps: int) -> Any:
        """The counter, some steps on."""
        return state + _S * np.uint64(steps)

    @compiled
    def share(z: Any) -> float:
        """The upper 53 bits as a number in (0, 1]."""
        return np.float64((z >> _11) + _1) * 2.0**-53


@compiled
def stream(seed: Any, source: int, lane: int) -> Any:
    """Where the random numbers of a lane of a source begin."""
    return mixed(stepped(mixed(stepped(mixed(stepped(seed, 1)), source + 1)), lane + 1))


@compiled
def unit(state: Any) -> tuple[float, Any]:
    """A number in (0, 1], and the stream after it."""
    state = stepped(state, 1)
    return share(mixed(state)), state


@compiled
def normal(state: Any) -> tuple[float, Any]:
    """A standard normal number (Box and Muller)."""
    u, state = unit(state)
    v, state = unit(state)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v), state


@compiled
def gamma(shape: float, state: Any) -> tuple[float, Any]:
    """A Gamma(shape, 1) number (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        u, state = unit(state)
        boost = u ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, state = normal(state)
        u, state = unit(state)
        v = 1.0 + c * x
        v = v * v * v  # a power would round otherwise in Python
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v, state


@compiled
def gap(kind: int, shape: float, scale: float, state: Any) -> tuple[float, Any]:
    """The next gap of a law, mostly by inversion."""
    if kind == CONSTANT:
        return scale, state
    if kind == GAMMA:
        x, state = gamma(shape, state)
        return scale * x, state
    if kind == LOGNORMAL:
        x, state = normal(state)
        return scale * math.exp(shape * x), state
    u, state = unit(state)
    if kind == EXPONENTIAL:
        return -scale * math.log(u), state
    if kind == PARETO:
        return scale * math.expm1(-math.log(u) / shape), state
    if kind == WEIBULL:
        return scale * (-math.log(u)) ** (1.0 / shape), state
    if kind == UNIFORM:
        return scale * (shape + (1.0 - shape) * u), state
    v, state = unit(state)
    return scale * (u + v), state


@compiled
def met(kind: int, shape: float, scale: float, state: Any) -> tuple[float, float, Any]:
    """The gap in progress at a random time: how long it has lasted and how long it will; length-biased."""
    if kind == EXPONENTIAL:
        x, state = gamma(2.0, state)
    elif kind == CONSTANT:
        x = 1.0
    elif kind == UNIFORM:
        u, state = unit(state)
        x = math.sqrt(shape * shape + (1.0 - shape * shape) * u)
    elif kind == PARETO:
        x, state = gamma(2.0, state)
        y, state = gamma(shape - 1.0, state)
        x = x / y
    elif kind == WEIBULL:
        y, state = gamma(1.0 + 1.0 / shape, state)
        x = y ** (1.0 / shape)
    elif kind == GAMMA:
        x, state = gamma(shape + 1.0, state)
    elif kind == LOGNORMAL:
        y, state = normal(state)
        x = math.exp(shape * (y + shape))
    else:
        u, state = unit(state)
        v, state = unit(state)
        x = math.sqrt(u) + v
    u, state = unit(state)
    return scale * x * u, scale * x * (1.0 - u), state


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


def law_of(process: processes.Process) -> Law | None:
    """The law of a process as the kernels know it, or None if it is none of theirs.

    >>> law_of(processes.Uniform(1.0, 4.0)) == (UNIFORM, 0.25, 4.0)
    True
    """
    match process:
        case processes.Poisson():
            return EXPONENTIAL, 0.0, process.mean
        case processes.Constant():
            return CONSTANT, 0.0, process.gap
        case processes.Uniform():
            return UNIFORM, process.low / process.high, process.high
        case processes.Pareto():
            return PARETO, process.alpha, process.scale
        case processes.Weibull():
            return WEIBULL, process.shape, process.scale
        case processes.Gamma():
            return GAMMA, process.shape, process.scale
        case processes.LogNormal():
            return LOGNORMAL, process.sigma, process.median
        case processes.Triangular():
            return TRIANGULAR, 0.0, process.mean
    return None


def in_threads(work: Callable[[int, int], None], count: int, part: int, done: Callable[[float], None] | None) -> None:
    """work(first, last) for 0..count in parts, by as many threads as there are; `done` hears the share."""
    starts = range(0, count, part)
    with ThreadPoolExecutor(THREADS) as pool:
        for k, _ in enumerate(pool.map(lambda first: work(first, min(first + part, count)), starts)):
            if done is not None:
                done((k + 1) / len(starts))
