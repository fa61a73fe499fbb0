"""What reacting gains: our polls against the best even polls that hindsight can choose, by class of source.

Rules of this file:
1. Both spend the same budget on the same changes and are measured over the same time. Ours sees what its polls show, no
   more; hindsight sees every change of that time and may choose any even interval for every source, but may not react.
2. A class is a law of changes; worlds are drawn from it with seeds, and what is quoted is the mean over worlds with its
   standard error. Recorded histories are worlds too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from unstale.core.checks import Floats
from unstale.core.processes import Poisson, WeeklyPoisson
from unstale.core.trace import Trace
from unstale.frozen import dataclass
from unstale.sim.backtest.learned import learned
from unstale.sim.backtest.oracle import oracle
from unstale.sim.backtest.polls import Polls, even, measure
from unstale.sim.backtest.setting import Setting
from unstale.sim.changes import Bursty, Changes, Drifting, change_times
from unstale.units import DAY

#: days of a world: long enough for a hundred polls of a mean source
DAYS = 120.0
SOURCES = 80
#: polls that hindsight may choose from, for each change of a source in the time that counts, and phases it tries
_CHOICES, _PHASES = np.concatenate([np.geomspace(0.05, 1.0, 9), np.geomspace(1.25, 40.0, 14)]), 3


@dataclass(frozen=True, slots=True)
class Advantage:
    """Freshness of both by weight, means over worlds, and the standard error of their difference."""

    name: str
    ours: float
    hindsight: float
    error: float
    worlds: int

    @property
    def advantage(self) -> float:
        """What reacting gained: freshness, negative if hindsight was worth more."""
        return self.ours - self.hindsight


def _office(rate: float) -> WeeklyPoisson:
    hours = np.full(168, 0.1)
    for day in range(7):
        hours[24 * day + 8 : 24 * day + 18] = 1.0
    return WeeklyPoisson(rate, hours, week=7.0)


#: how a source of a class changes, given its mean rate in changes per day; births and deaths cut what is drawn
CLASSES: dict[str, Callable[[float], Changes | WeeklyPoisson]] = {
    "steady": Poisson,
    "drift": lambda rate: Drifting(rate, 2.0, 0.35),
    "bursts": lambda rate: Bursty(0.1 * rate, 9.1 * rate, 9.0 / rate, 1.0 / rate),
    "births": Poisson,
    "deaths": Poisson,
    "daily clock": _office,
}


def world(name: str, seed: int, sources: int = SOURCES, days: float = DAYS) -> Trace:
    """Changes of sources of a class, in seconds; mean rates are lognormal around one in two days.

    >>> [int(world(name, 1, 10).counts().sum() > 100) for name in CLASSES]
    [1, 1, 1, 1, 1, 1]
    """
    rng = np.random.default_rng([seed, list(CLASSES).index(name)])
    names, times = [], []
    for i in range(sources):
        found = change_times(CLASSES[name](float(rng.lognormal(-0.7, 1.0))), rng, days)
        turn = days * rng.random()
        if name in ("births", "deaths"):
            found = found[found >= turn] if name == "births" else found[found < turn]
        names += [f"{i}"] * len(found)
        times.append(found)
    return Trace.of(names, DAY * np.concatenate(times))


def advantage_of(name: str, worlds: Iterable[tuple[Trace, int]], polls_per_change: float = 1.0) -> Advantage:
    """What reacting gains in some worlds, each with the seed of its polls."""
    pairs = []
    for trace, seed in worlds:
        setting = Setting.of(trace, start=0.0 if trace.times.min() < DAYS * DAY else None)
        ours = measure(setting, learned(setting, polls_per_change, seed))
        # The optimum for the true mean rates is even too, and does not take the luck of a phase for a rate's worth.
        rivals = [hindsight(setting, ours.polls / setting.counted, seed), oracle(setting, polls_per_change, seed)]
        mine, *best = (
            float(np.average(x.freshness, weights=setting.weight))
            for x in (ours, *(measure(setting, rival) for rival in rivals))
        )
        pairs.append([mine, max(best)])
    found = np.array(pairs)
    apart = found[:, 0] - found[:, 1]
    error = float(apart.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")
    return Advantage(name, float(found[:, 0].mean()), float(found[:, 1].mean()), error, len(found))


def advantages(seeds: Iterable[int], sources: int = SOURCES, polls_per_change: float = 1.0) -> list[Advantage]:
    """What reacting gains in each class, over worlds with these seeds."""
    each = list(seeds)
    return [
        advantage_of(name, [(world(name, seed, sources), seed) for seed in each], polls_per_change) for name in CLASSES
    ]


def hindsight(setting: Setting, budget: float, seed: int) -> Polls:
    """The best even polls for what did change in the time that counts, at so many polls per second.

    For every source the freshness that each of many intervals would have had is measured; of their upper envelope the
    steepest pieces are bought first, which no other choice among these intervals beats.
    """
    trace = setting.trace.between(setting.split, setting.end)
    counts = trace.counts()
    source, slope, cost = [], [], []
    for i in range(len(trace)):
        many = np.concatenate([[0.0], max(int(counts[i]), 1) * _CHOICES])
        fresh = np.array([_kept(trace.changes(i), setting, each) for each in many])
        x, y = _envelope(many, setting.weight[i] * fresh)
        source.append(np.full(len(x) - 1, i))
        slope.append(np.diff(y) / np.diff(x))
        cost.append(np.diff(x))
    which, steep, paid = np.concatenate(source), np.concatenate(slope), np.concatenate(cost)
    order = np.argsort(-steep, kind="stable")
    left = budget * setting.counted - np.concatenate([[0.0], np.cumsum(paid[order])[:-1]])
    bought = np.clip(left, 0.0, paid[order]) * (steep[order] > 0.0)
    polls = even(setting, np.bincount(which[order], bought, len(trace)) / setting.counted, seed)
    # Whatever happened before is copied when the time that counts begins, and costs hindsight nothing.
    rows = np.concatenate([np.arange(len(trace)), np.repeat(np.arange(len(trace)), np.diff(polls.starts))])
    times = np.concatenate([np.full(len(trace), setting.split), polls.times])
    return Polls(polls.starts + np.arange(len(trace) + 1), times[np.lexsort((times, rows))])


def _kept(changes: Floats, setting: Setting, polls: float) -> float:
    """Freshness over the counted time with so many even polls in it, fresh at its beginning; mean over phases."""
    if polls == 0.0:
        return float((changes[0] - setting.split) / setting.counted) if len(changes) else 1.0
    step, after, stale = setting.counted / polls, np.append(changes, np.inf), 0.0
    for phase in (np.arange(_PHASES) + 0.5) / _PHASES:
        polled = np.append(setting.split, np.arange(setting.split + phase * step, setting.end, step))
        first = after[np.searchsorted(changes, polled, side="right")]
        stale += float(np.maximum(np.append(polled[1:], setting.end) - np.maximum(first, polled), 0.0).sum())
    return 1.0 - stale / (_PHASES * setting.counted)


def _envelope(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The upper concave envelope of points with rising x."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and (y[kept[-1]] - y[kept[-2]]) * (x[i] - x[kept[-1]]) <= (y[i] - y[kept[-1]]) * (
            x[kept[-1]] - x[kept[-2]]
        ):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]
