"""When exactly to poll: rates and intervals turned into times [000 Algorithms B.1–B.3].

Rules of this file:
1. The whole-fleet functions poll one of n sources per slot, cycle after cycle; `poll_times` gives every
   source its own interval. All return (times, source), both sorted by time.
2. Times lie in [start, stop); the j-th one is computed from j, so nothing drifts.
3. Random orders draw from the generator they are given.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers
from unstale.core.poisson_orders import Order
from unstale.errors import InputError, require, sentence

Rows = NDArray[np.intp]
#: draws `size` independent gaps whose means are `interval`, which broadcasts against `size`
Gap = Callable[[np.random.Generator, Floats, tuple[int, ...]], Floats]

#: 1/golden ratio: its multiples, modulo 1, fill the circle more evenly than those of any other number
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


def fixed_order(n: int, cycle: float, start: float = 0.0, cycles: int = 1) -> tuple[Floats, Rows]:
    """Every source once per cycle, always in the same order: each is polled at a fixed interval.

    [000 Algorithm B.1]; the freshest of the three orders, freshness (1 − e^(−r))/r at r changes per cycle.

    >>> fixed_order(2, cycle=10.0, cycles=2)
    (array([ 0.,  5., 10., 15.]), array([0, 1, 0, 1]))
    """
    times = _slots(n, cycle, start, cycles)
    return times, np.tile(np.arange(n), cycles)


def random_order(
    rng: np.random.Generator, n: int, cycle: float, start: float = 0.0, cycles: int = 1
) -> tuple[Floats, Rows]:
    """Every source once per cycle, in a new random order each time: gaps are triangular on [0, 2·cycle].

    [000 Algorithm B.2, Lemma 2]. Successive gaps of a source depend on each other; averages do not mind.

    >>> random_order(np.random.default_rng(2), 3, cycle=3.0)
    (array([0., 1., 2.]), array([2, 0, 1]))
    """
    times = _slots(n, cycle, start, cycles)
    order = np.broadcast_to(np.arange(n), (cycles, n))
    return times, rng.permuted(order, axis=1).ravel()


def purely_random(
    rng: np.random.Generator, n: int, cycle: float, start: float = 0.0, cycles: int = 1
) -> tuple[Floats, Rows]:
    """Any source in any slot: gaps are geometric, exponential for many sources.

    [000 Algorithm B.3]; also what polling on demand amounts to. [000 Table 2] gives the limit of many
    sources.

    >>> purely_random(np.random.default_rng(1), 3, cycle=3.0)
    (array([0., 1., 2.]), array([1, 1, 2]))
    """
    times = _slots(n, cycle, start, cycles)
    return times, rng.integers(n, size=n * cycles)


def phases(interval: ArrayLike) -> Floats:
    """Where in its interval each source is polled first, so that polls come evenly from the first moment on.

    Multiples of the golden ratio modulo 1, dealt out by length of interval: any run of sources with similar
    intervals fills [0, 1) evenly, so a start or restart makes no burst, and the polls made up to any moment
    are those that Σ1/interval promises, several times closer than with random phases.

    >>> phases([60.0, 60.0, 60.0, 60.0]).round(3)
    array([0.309, 0.927, 0.545, 0.163])
    """
    every = np.atleast_1d(numbers("interval", interval, above=0, infinite=True))
    out = np.empty(len(every))
    out[np.argsort(every, kind="stable")] = ((np.arange(len(every)) + 0.5) * _GOLDEN) % 1.0
    return out


def even_times(interval: float, start: float, stop: float, phase: float = 0.0) -> Floats:
    """Poll times of one source in [start, stop): start + (phase + j)·interval, j = 0, 1, …

    Even polls are the best open-loop choice against every change process [003 Theorem 10].

    >>> even_times(15.0, start=100.0, stop=150.0, phase=0.5)
    array([107.5, 122.5, 137.5])
    """
    every = number("interval", interval, above=0, infinite=True)
    return poll_times([every], start, stop, phase=[number("phase", phase, least=0)])[0]


def poll_times(
    interval: ArrayLike,
    start: float,
    stop: float,
    order: Order = "fixed",
    *,
    phase: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    gap: Gap | None = None,
) -> tuple[Floats, Rows]:
    """All polls of a plan in [start, stop), sorted: (times, source).

    fixed: every `interval` from start + phase·interval on. random: once in each such interval, at a random
    point of it (gaps triangular, as in `random_order`). purely-random: Poisson with rate 1/interval. With
    `gap`, polls follow each other at independent gaps that it draws: jittered ones cannot lock into a
    source's own rhythm. `phase` in [0, 1), by default `phases(interval)`.
    Abandoned sources (interval inf) get no polls.

    >>> times, source = poll_times([10.0, 20.0, np.inf], 0.0, 40.0)
    >>> times.round(2), source
    (array([ 3.09, 13.09, 18.54, 23.09, 33.09, 38.54]), array([0, 0, 1, 0, 0, 1]))
    """
    every = np.atleast_1d(numbers("interval", interval, above=0, infinite=True))
    start, stop = _range(start, stop)
    require(
        order in ("fixed", "random", "purely-random"),
        "order",
        repr(order),
        "is unknown",
        "take fixed, random or purely-random",
    )
    offset = phases(every) if phase is None else np.broadcast_to(numbers("phase", phase, least=0), every.shape)
    source = np.flatnonzero(np.isfinite(every))
    every, offset = every[source], offset[source]
    if gap is not None:
        times, row = _renewals(_drawn(rng), gap, every, start + offset * every, stop)
    elif order == "purely-random":
        count = _drawn(rng).poisson((stop - start) / every)
        row = np.repeat(np.arange(len(every)), count)
        times = _drawn(rng).uniform(start, stop, len(row))
    else:
        # In random order the phase is where intervals begin, not where polls fall: the first one is partial.
        first = np.zeros(len(every)) if order == "fixed" else -np.ceil(offset)
        count = np.maximum(np.ceil((stop - start) / every - offset - first), 0.0).astype(np.intp)
        row = np.repeat(np.arange(len(every)), count)
        turn = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
        if order == "random":
            turn = turn + _drawn(rng).random(len(row))
        times = start + (offset[row] + turn) * every[row]
    inside = (times >= start) & (times < stop)
    if not inside.all():
        times, row = times[inside], row[inside]
    sorting = np.argsort(times, kind="stable")
    return times[sorting], source[row[sorting]]


def _renewals(rng: np.random.Generator, gap: Gap, every: Floats, first: Floats, stop: float) -> tuple[Floats, Rows]:
    """Sums of drawn gaps, first poll at `first`, until all have passed `stop`; unsorted, may overshoot."""
    times, rows = [first], [np.arange(len(every))]
    last, row = first, rows[0]
    while len(row := row[last < stop]) > 0:
        last = last[last < stop]
        # Rows of similar length together: at most twice the draws needed, and sums run within one source.
        width = 2 ** np.ceil(np.log2((stop - last) / every[row] + 1.0)).astype(np.int64)
        ends = np.empty(len(row))
        for size in np.unique(width):
            of_size = width == size
            some = row[of_size]
            drawn = gap(rng, every[some][:, None], (len(some), int(size)))
            passed = last[of_size][:, None] + np.cumsum(drawn, axis=1)
            times.append(passed.ravel())
            rows.append(np.repeat(some, size))
            ends[of_size] = passed[:, -1]
        last = ends
    return np.concatenate(times), np.concatenate(rows)


def _slots(n: int, cycle: float, start: float, cycles: int) -> Floats:
    number("n", n, least=1, remedy="give the number of sources")
    number("cycles", cycles, least=0, remedy="give the number of cycles to lay out")
    length = number("cycle", cycle, above=0, remedy="give the time in which all sources have their turn")
    return number("start", start) + length * (np.arange(n * cycles) / n)


def _range(start: float, stop: float) -> tuple[float, float]:
    first = number("start", start)
    return first, number("stop", stop, least=first, remedy="give the end of the time to fill, after start")


def _drawn(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise InputError(
            sentence("rng", None, "must be a generator where times are drawn", "pass numpy.random.default_rng(seed)")
        )
    return rng
