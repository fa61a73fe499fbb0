"""When polls are allowed, and what confining them costs [000 Figure 5].

Rules of this file:
1. A moment is seconds on the wall clock; `Windows` keeps the open spans [start, stop) and runs a second
   clock that stands still while polls are forbidden. Polls spread evenly on that clock are as even as the
   windows let them be.
2. One source is known by its gaps: which instants of the day it is polled at does not matter for its average
   freshness, only how uneven the gaps are. When people read matters too: see `read_freshness`.
3. Changes are Poisson with `change_rate`; patterns of polls repeat every `cycle`, say a day.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.exponential import exp_mean
from unstale.errors import InputError, require, sentence

Pattern = Literal["together", "mostly-together", "even"]


class Windows:
    """The spans in which polls are allowed, and the clock that runs only in them.

    `open_time` maps the wall clock to seconds of open time since the first span's start, `wall_time` maps
    back: into the span, never into the forbidden time after it. Both are non-decreasing, and
    `open_time(wall_time(u)) == u` up to rounding. Overlapping and adjoining spans are joined.

    >>> nights = Windows([22, 46], [30, 54])
    >>> nights.open_time([23, 35, 47]), nights.wall_time([1, 8, 9])
    (array([1., 8., 9.]), array([23., 46., 47.]))
    """

    def __init__(self, start: ArrayLike, stop: ArrayLike) -> None:
        starts, stops = np.atleast_1d(numbers("start", start)), np.atleast_1d(numbers("stop", stop))
        require(
            starts.ndim == 1 and starts.shape == stops.shape,
            "start",
            f"of shape {starts.shape}",
            f"must match stop of shape {stops.shape}",
            "give one of each per span",
        )
        if len(backward := np.flatnonzero(stops < starts)) > 0:
            i = int(backward[0])
            raise InputError(sentence(f"stop[{i}]", stops[i], f"must not be before start {starts[i]}", "swap them"))
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]
        reach = np.maximum.accumulate(stops)
        first = np.ones(len(starts), bool)
        first[1:] = starts[1:] > reach[:-1]
        last = np.append(first[1:], True) if len(first) else first
        whole = starts[first] < reach[last]
        self.start: Floats = starts[first][whole]
        self.stop: Floats = reach[last][whole]
        self._before = np.concatenate([[0.0], np.cumsum(self.stop - self.start)])

    @property
    def total(self) -> float:
        """Open time of all spans together."""
        return float(self._before[-1])

    def is_open(self, time: ArrayLike) -> NDArray[np.bool_]:
        """Whether a poll is allowed at this time."""
        t = numbers("time", time)
        span = np.searchsorted(self.start, t, side="right") - 1
        return np.asarray((span >= 0) & (t < np.append(self.stop, -np.inf)[span]))

    def open_time(self, time: ArrayLike) -> Floats | float:
        """Open seconds before `time`; stands still outside the spans."""
        t = numbers("time", time)
        span = np.searchsorted(self.start, t, side="right") - 1
        starts, stops = np.append(self.start, np.inf), np.append(self.stop, np.inf)
        inside = np.minimum(t, stops[span]) - np.minimum(starts[span], t)
        return plain(np.where(span < 0, 0.0, self._before[span] + inside))

    def wall_time(self, open_time: ArrayLike) -> Floats | float:
        """The wall clock when the open clock shows `open_time`, in [0, total)."""
        u = numbers("open_time", open_time, least=0)
        beyond = f"must be below {self.total:g}, the open time of these windows"
        require(
            np.all(u < self.total),
            "open_time",
            np.max(u, initial=0.0),
            beyond,
            "give windows that reach further",
        )
        span = np.searchsorted(self._before, u, side="right") - 1
        # Rounding may carry a sum to the end of its span, where polls are forbidden already.
        return plain(np.minimum(self.start[span] + (u - self._before[span]), np.nextafter(self.stop[span], -np.inf)))

    def confine(self, times: ArrayLike, start: float, stop: float) -> Floats:
        """Poll times in [start, stop) moved into the windows by a change of clock: as many, in their order.

        start + x·(stop − start) becomes the wall time at which the share x of all open time has passed, so
        polls that were even are even in open time, and a fleet spread evenly stays so while the windows are
        open.

        >>> Windows([22], [30]).confine([0, 6, 12, 18], 0, 24)
        array([22., 24., 26., 28.])
        """
        first = number("start", start)
        length = number("stop", stop, above=first) - first
        t = numbers("times", times, least=first, most=stop)
        require(self.total > 0, "windows", "none", "must leave some time for polls", "allow some hours")
        share = np.minimum((t - first) / length, np.nextafter(1.0, 0.0))
        return np.asarray(self.wall_time(share * self.total))


def pattern_times(pattern: Pattern, count: int, cycle: float = 1.0) -> Floats:
    """The polls of one cycle by the three options of [000 Figure 5], sorted.

    together: all at the beginning (midnight); mostly-together: one in five spread over the rest of the
    cycle, the others at the beginning; even: uniformly over the cycle. 000 assumes the last. The paper does
    not say how many "some" are: one in five, at least one of two or more, is this library's choice.

    >>> pattern_times("mostly-together", 10, cycle=24.0)
    array([ 0.,  0.,  0.,  0.,  0.,  0.,  0.,  0.,  8., 16.])
    """
    n = int(number("count", count, least=1))
    length = number("cycle", cycle, above=0)
    if pattern == "even":
        return length * (np.arange(n) / n)
    require(
        pattern in ("together", "mostly-together"),
        "pattern",
        repr(pattern),
        "is unknown",
        "take together, mostly-together or even",
    )
    spread = 0 if pattern == "together" or n == 1 else max(1, n // 5)
    return np.concatenate([np.zeros(n - spread), length * (np.arange(1, spread + 1) / (spread + 1))])


def gaps_of(times: ArrayLike, cycle: float) -> Floats:
    """Gaps between successive polls of a pattern that repeats every `cycle`; they add up to it.

    >>> gaps_of([1, 2, 10], cycle=24)
    array([ 1.,  8., 15.])
    """
    at, length = _polls(times, cycle)
    return np.diff(at, append=at[0] + length)


def gap_freshness(change_rate: ArrayLike, gaps: ArrayLike) -> Floats | float:
    """Share of time a copy is fresh when the gaps between its polls are `gaps`, repeated forever.

    Σ(1 − e^(−change_rate·gap)) / (change_rate·Σgap) over the gaps. At most the freshness of even gaps, by
    concavity: polls that crowd together are wasted, two at once count as one. For one poll per cycle it
    depends on the cycle alone, at whatever hour: confining a fleet in which each source is polled once a
    day to one hour costs nothing on average [000 Figure 5 a, c].

    >>> round(gap_freshness(1.0, [1.0]), 4), round(gap_freshness(1.0, [0.25, 0.75]), 4)
    (0.6321, 0.7488)
    """
    rate, gap = numbers("change_rate", change_rate, least=0), _gaps(gaps)
    return plain(np.asarray((exp_mean(1, rate[..., None] * gap) * gap).sum(-1) / gap.sum()))


def window_freshness(change_rate: ArrayLike, polls: int, pattern: Pattern, cycle: float = 1.0) -> Floats | float:
    """Freshness of one source polled `polls` times per cycle by one of the patterns of [000 Figure 5].

    >>> [round(window_freshness(3.0, 10, p), 4) for p in ("together", "mostly-together", "even")]
    [0.3167, 0.6321, 0.8639]
    """
    return gap_freshness(change_rate, gaps_of(pattern_times(pattern, polls, cycle), cycle))


def gap_age(change_rate: ArrayLike, gaps: ArrayLike) -> Floats | float:
    """Mean age of a copy (0 while fresh) when the gaps between its polls are `gaps`, repeated forever.

    Σ(gap²/2 − gap/change_rate + (1 − e^(−change_rate·gap))/change_rate²) / Σgap. At least that of even
    gaps, and at most Σgap²/(2·Σgap), reached by sources that always change.

    >>> round(gap_age(1.0, [1.0]), 6)
    0.132121
    """
    rate, gap = numbers("change_rate", change_rate, least=0), _gaps(gaps)
    x = rate[..., None] * gap
    return plain(np.asarray((x * exp_mean(3, x) / 6.0 * gap * gap).sum(-1) / gap.sum()))


def freshness_at(time: ArrayLike, times: ArrayLike, cycle: float, change_rate: float) -> Floats | float:
    """Probability that a copy polled at `times` of every cycle is fresh at `time`, say an hour of the day.

    e^(−change_rate·(time since the last poll)): 1 right after a poll, lowest right before the next one. For a
    fleet, average over its sources: polled all at midnight it is freshest then and decays together over the
    day; polled evenly over the day it is the same at every hour.

    >>> round(freshness_at(7.0, [0.0], cycle=24.0, change_rate=0.1), 4)
    0.4966
    """
    t = numbers("time", time)
    at, length = _polls(times, cycle)
    into = np.mod(t, length)
    since = into - at[np.searchsorted(at, into, side="right") - 1]
    return plain(np.exp(-number("change_rate", change_rate, least=0) * np.where(since < 0, since + length, since)))


def read_freshness(times: ArrayLike, cycle: float, change_rate: float, reads: ArrayLike) -> float:
    """Freshness as readers meet it: the mean of `freshness_at` weighted by how much is read when.

    `reads` splits the cycle into equal parts (24 numbers for the hours of a day) and says how much is read
    in each. Even reads give `gap_freshness`. Uneven ones may favour polls crowded right before the busy
    hours.

    >>> busy = [0] * 8 + [1] * 2 + [0] * 14
    >>> round(read_freshness([0.0], 24.0, 0.1, busy), 4), round(read_freshness([8.0], 24.0, 0.1, busy), 4)
    (0.4072, 0.9063)
    """
    at, length = _polls(times, cycle)
    rate = number("change_rate", change_rate, least=0)
    amount = np.atleast_1d(numbers("reads", reads, least=0))
    require(amount.sum() > 0, "reads", "all 0", "must have a number above 0", "give how much is read in each part")
    edges = length * (np.arange(len(amount) + 1) / len(amount))
    cuts = np.unique(np.concatenate([edges, at]))
    left, width = cuts[:-1], np.diff(cuts)
    part = np.searchsorted(edges, left, side="right") - 1
    # Within a piece no poll falls: freshness decays from its value at the left end.
    fresh = np.asarray(freshness_at(left, at, length, rate)) * exp_mean(1, rate * width)
    return float(np.sum(amount[part] * width * fresh) / np.sum(amount[part] * width))


def confined_gaps(windows: Windows, count: int, start: float, cycle: float) -> Floats:
    """Gaps of `count` polls per cycle spread evenly over the open time of the cycle that begins at `start`.

    Compare `gap_freshness` and `gap_age` of these with those of the even gaps cycle/count: that is the cost
    of the windows for one source. It is 0 for one poll per cycle; with ever more polls freshness cannot
    exceed (open + (1 − e^(−change_rate·closed))/change_rate)/cycle for one closed stretch per cycle.

    >>> confined_gaps(Windows([22], [30]), 4, start=12, cycle=24)
    array([ 2.,  2.,  2., 18.])
    """
    first, length = number("start", start), number("cycle", cycle, above=0)
    inside = Windows(np.clip(windows.start, first, first + length), np.clip(windows.stop, first, first + length))
    even = first + pattern_times("even", count, length)
    return gaps_of(inside.confine(even, first, first + length) - first, length)


def _polls(times: ArrayLike, cycle: float) -> tuple[Floats, float]:
    length = number("cycle", cycle, above=0)
    at = np.atleast_1d(numbers("times", times))
    require(
        at.ndim == 1 and len(at) > 0,
        "times",
        at,
        "must hold at least one poll",
        "give the polls of one cycle",
    )
    return np.sort(np.mod(at, length)), length


def _gaps(gaps: ArrayLike) -> Floats:
    gap = np.atleast_1d(numbers("gaps", gaps, least=0))
    require(
        gap.ndim == 1 and gap.sum() > 0,
        "gaps",
        gap,
        "must hold a gap above 0",
        "give the times between successive polls",
    )
    return gap
