"""When a policy polled every source, and how fresh that kept the copies: exact, no sampling.

Rules of this file:
1. A policy is a function (setting, polls_per_change, seed) -> Polls. It may look at a change only through polls of
   its own that come later.
2. Every copy is fresh at `start`. A poll at time t sees all changes up to and at t.
3. Only the time from `split` to `end` is measured; a copy that is stale at `split` is as old as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstale.core import orders
from unstale.core.checks import Floats
from unstale.core.objectives import objective_of
from unstale.frozen import dataclass
from unstale.sim.backtest.setting import Setting
from unstale.units import DAY


@dataclass(frozen=True, slots=True, eq=False)
class Polls:
    """Poll times of every source over the whole window, as columns: `times[starts[i]:starts[i + 1]]`, rising."""

    starts: np.ndarray
    times: Floats

    def counted(self, setting: Setting) -> int:
        """Polls in the time that counts."""
        return int(np.count_nonzero((self.times >= setting.split) & (self.times <= setting.end)))


Policy = Callable[[Setting, float, int], Polls]


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """Share of the counted time that each copy was fresh, its mean age in seconds, and the polls this took.

    `penalty` is the mean penalty that the setting's objective counts: 1 − freshness, the age, or another.
    """

    freshness: Floats
    age: Floats
    penalty: Floats
    polls: int


def even(setting: Setting, sync_rate: Floats, seed: int) -> Polls:
    """Even polls of every source at its rate, phases spread over the fleet and turned by a random angle.

    Phases are dealt out rather than drawn, so that the polls from `split` to `end` are those that the rates promise.
    """
    with np.errstate(divide="ignore"):
        interval = 1.0 / sync_rate
    phase = (orders.phases(interval) + np.random.default_rng(seed).random()) % 1.0
    polled = np.isfinite(interval)
    first, last = np.ones(len(interval)), np.zeros(len(interval))
    first[polled] = np.ceil((setting.start - setting.split) * sync_rate[polled] - phase[polled])
    last[polled] = np.floor((setting.end - setting.split) * sync_rate[polled] - phase[polled])
    counts = np.maximum(last - first + 1.0, 0.0).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    step = np.arange(starts[-1]) - np.repeat(starts[:-1], counts) + np.repeat(first + phase, counts)
    times = setting.split + step * np.repeat(interval, counts)
    return Polls(starts, np.clip(times, setting.start, setting.end))


def measure(setting: Setting, polls: Polls) -> Played:
    """How fresh and how old the copies were from `split` to `end`.

    Between two polls a copy is stale from the first change after the earlier one, if there is one, until the later
    one. age = time since that change, 0 when fresh; both are integrated exactly, piece by piece.

    >>> from unstale.core.trace import Trace
    >>> setting = Setting.of(Trace.of(["a"] * 5, [1.0, 2.0, 5.0, 6.0, 9.0]), start=0.0, end=10.0)
    >>> played = measure(setting, Polls(np.array([0, 2]), np.array([3.0, 7.0])))
    >>> played.freshness.round(3).tolist(), played.age.round(3).tolist(), played.polls
    ([0.5], [0.417], 1)
    """
    trace, n = setting.trace, len(setting)
    counts = np.diff(polls.starts)
    # each source is polled once at the start, for nothing, and its last copy lives until the end
    begin = np.insert(polls.times, polls.starts[:-1], setting.start)
    until = np.insert(polls.times, polls.starts[1:], setting.end)
    source = np.repeat(np.arange(n), counts + 1)
    rows = polls.starts + np.arange(n + 1)
    after = np.empty(len(begin), dtype=np.int64)
    for i in range(n):
        piece = slice(rows[i], rows[i + 1])
        after[piece] = trace.starts[i] + np.searchsorted(trace.changes(i), begin[piece], side="right")
    missed = after < trace.starts[1:][source]
    change = np.where(missed, trace.times[np.where(missed, after, 0)], np.inf)
    low, high = np.maximum(change, setting.split), np.minimum(until, setting.end)
    stale = low < high
    change, low, high, source = change[stale], low[stale], high[stale], source[stale]
    length = high - low
    summed = np.bincount(source, length, n)
    aged = np.bincount(source, length * (0.5 * ((low - change) + (high - change))), n)
    fresh, age = 1.0 - summed / setting.counted, aged / setting.counted
    aim = objective_of(setting.objective, day=DAY)
    if aim.every:
        change, low, high, source = _unseen(setting, polls)
    if setting.objective in ("freshness", "age"):
        harm = 1.0 - fresh if setting.objective == "freshness" else age
    else:
        each = np.asarray(aim.penalty.w2(high - change)) - np.asarray(aim.penalty.w2(low - change))
        harm = np.bincount(source, each, n) / setting.counted
    return Played(fresh, age, harm, polls.counted(setting))


def _unseen(setting: Setting, polls: Polls) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Every change that a copy lacked for a while: when it came, from when to when it counts, and its source."""
    trace = setting.trace
    until = np.full(len(trace.times), setting.end)
    for i in range(len(setting)):
        mine = polls.times[polls.starts[i] : polls.starts[i + 1]]
        # A poll at the very moment of a change sees it.
        following = np.searchsorted(mine, trace.changes(i), side="left")
        until[trace.starts[i] : trace.starts[i + 1]] = np.append(mine, setting.end)[following]
    low, high = np.maximum(trace.times, setting.split), np.minimum(until, setting.end)
    lacked = low < high
    source = np.repeat(np.arange(len(setting)), np.diff(trace.starts))
    return trace.times[lacked], low[lacked], high[lacked], source[lacked]
