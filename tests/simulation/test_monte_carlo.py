"""Every family of formulas against time averages of simulated changes and polls, within five standard errors.

Two event sequences are drawn gap by gap, the copy's history follows from merging them, and time averages come
from exact integration (w2) of each interval between polls.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Deadline, Decay, Linear, Penalty, Power, Reciprocal, Saturating
from unstale.core.phase import jittered
from unstale.core.poisson_orders import order_age, order_freshness
from unstale.core.processes import (
    Constant,
    Gamma,
    LogNormal,
    Pareto,
    Poisson,
    Process,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.core.staleness import age, consistency, freshness, missed_changes, staleness, update_staleness
from unstale.study.on_periods import mean_duration

BATCHES, POLLS = 100, 3000
Average = Callable[[np.ndarray, np.ndarray, np.ndarray], float]

CHANGES = [
    Poisson(1.3),
    Pareto(3.5, 2.0),
    Constant(0.83),
    Uniform(0.2, 1.5),
    Weibull(0.7, 1.0),
    Gamma(0.5, 2.0),
    LogNormal.from_rate(0.8, 1.0),
]
POLLING = [
    Poisson(0.9),
    jittered(1.1, 0.3),
    Triangular(0.7),
    Uniform(0.1, 1.9),
    Gamma(2.0, 0.5),
    Constant(math.sqrt(1.3)),
]


def batch(changes: Process, polls: Process, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poll times, and for each poll the wait to the next change; then all change times."""
    d = np.concatenate([polls.sample_age(rng, 1), polls.sample(rng, POLLS)]).cumsum()
    gaps = [changes.sample_age(rng, 1)]
    while sum(float(g.sum()) for g in gaps) <= d[-1]:
        gaps.append(changes.sample(rng, int(1.2 * (d[-1] - d[0]) * changes.rate) + 50))
    u = np.concatenate(gaps).cumsum()
    wait = u[np.searchsorted(u, d[:-1], side="right")] - d[:-1]
    return d, wait, u


def close(name: str, samples: list[float], want: float) -> None:
    mean, error = float(np.mean(samples)), float(np.std(samples, ddof=1)) / math.sqrt(len(samples))
    assert abs(mean - want) <= 5 * error + 1e-12, f"{name}: {mean:.6g} ± {error:.2g}, formula {want:.6g}"


def averages(changes: Process, polls: Process, seed: int, *wanted: Average) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    drawn = [batch(changes, polls, rng) for _ in range(BATCHES)]
    return [[f(*each) for each in drawn] for f in wanted]


def source_penalty(penalty: Penalty) -> Average:
    """Time average of w(age): within an interval it is w2(what is left of it after the first change)."""

    def average(d: np.ndarray, wait: np.ndarray, u: np.ndarray) -> float:
        stale = np.maximum(np.diff(d) - wait, 0.0)
        return float(np.sum(penalty.w2(stale)) / (d[-1] - d[0]))

    return average


def update_penalty(penalty: Penalty) -> Average:
    """Time average of the sum of w(lag) over unseen changes: each change collects w2 until the next poll."""

    def average(d: np.ndarray, wait: np.ndarray, u: np.ndarray) -> float:
        inside = u[(u > d[0]) & (u < d[-1])]
        left = d[np.searchsorted(d, inside, side="right")] - inside
        return float(np.sum(penalty.w2(left)) / (d[-1] - d[0]))

    return average


PAIRS = [(u, POLLING[(i + k) % len(POLLING)]) for i, u in enumerate(CHANGES) for k in (0, 2)]


@pytest.mark.parametrize(("changes", "polls"), PAIRS, ids=repr)
def test_one_copy(changes: Process, polls: Process) -> None:
    penalties = [Indicator(), Linear(), Saturating(0.5), Deadline(0.4), Reciprocal(), Decay(2.0)]
    if isinstance(polls, Constant) or isinstance(changes, Poisson):
        penalties.append(Power(1.5))
    got = averages(changes, polls, 1, *(source_penalty(w) for w in penalties))
    for penalty, samples in zip(penalties, got, strict=True):
        close(f"{penalty}", samples, staleness(changes, polls, penalty))
    close("freshness", [1 - s for s in got[0]], freshness(changes, polls))
    close("age", got[1], age(changes, polls))
    close("consistency", [1 - s for s in got[3]], consistency(0.4, changes, polls))


@pytest.mark.parametrize(("changes", "polls"), PAIRS[::3], ids=repr)
def test_all_unseen_changes(changes: Process, polls: Process) -> None:
    penalties = [Indicator(), Linear(), Reciprocal(), Decay(2.0)]
    got = averages(changes, polls, 2, *(update_penalty(w) for w in penalties))
    for penalty, samples in zip(penalties, got, strict=True):
        close(f"{penalty}", samples, update_staleness(changes, polls, penalty))
    close("missed", got[0], missed_changes(changes, polls))


@pytest.mark.parametrize(("changes", "polls"), PAIRS[1::4], ids=repr)
def test_on_periods(changes: Process, polls: Process) -> None:
    """Fresh time divided by the number of times the copy turned stale, in one long run per batch."""
    rng = np.random.default_rng(3)
    fresh, turns = [], []
    for _ in range(BATCHES):
        d, wait, _ = batch(changes, polls, rng)
        gap = np.diff(d)
        fresh.append(float(np.minimum(gap, wait).sum()))
        turns.append(int(np.count_nonzero(wait < gap)))
    mean = mean_duration(changes, polls)
    # a ratio of sums: its residuals have mean 0
    close("ON period", [f - mean * t for f, t in zip(fresh, turns, strict=True)], 0.0)


@pytest.mark.parametrize("order", ["random", "purely-random"])
def test_orders_for_five_sources(order: str) -> None:
    """One of five sources per slot, by the algorithms of [000 figures 15, 16] themselves; Poisson changes."""
    rng = np.random.default_rng(4)
    n, rate, rounds = 5, 1.0, 4000
    fresh, old = [], []
    for _ in range(BATCHES):
        if order == "random":
            slots = rng.permuted(np.tile(np.arange(n), (rounds, 1)), axis=1).ravel()
        else:
            slots = rng.integers(0, n, n * rounds)
        gap = np.diff(np.flatnonzero(slots == 0)) / n
        wait = rng.exponential(1 / rate, gap.size)
        stale = np.maximum(gap - wait, 0.0)
        # residuals against the formula, since a ratio of sums has no simple standard error
        fresh.append(float(np.sum(np.minimum(gap, wait) - gap * order_freshness(rate, 1.0, order, sources=n))))
        old.append(float(np.sum(stale**2 / 2 - gap * order_age(rate, 1.0, order, sources=n))))
    close("freshness", fresh, 0.0)
    close("age", old, 0.0)
