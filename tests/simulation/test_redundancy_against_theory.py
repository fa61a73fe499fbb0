"""Redundancy, aggregation and load balancing against simulated paths, within five standard errors.

Every change and every poll of every replica is drawn; at random moments a client asks, and freshness is whether a
poll of a replica asked came after the last change. Runs are independent, so their spread is the error.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear
from unstale.core.price import plan
from unstale.core.processes import Constant, Gamma, Pareto, Poisson, Process, Uniform
from unstale.core.replication.balance import balance, independence_cost, many_to_many, round_robin
from unstale.core.replication.redundancy import freshest_freshness, merged, service_for
from unstale.core.staleness import age, freshness, missed_changes
from unstale.study.aggregation import all_fresh, any_fresh, at_least_fresh, classes, fresh_count

RUNS, HORIZON, REQUESTS = 200, 400.0, 1500


def close(name: str, samples: list[float], want: float) -> None:
    mean, error = float(np.mean(samples)), float(np.std(samples, ddof=1)) / math.sqrt(len(samples))
    assert error > 0
    assert abs(mean - want) <= 5 * error, f"{name}: {mean:.6g} ± {error:.2g}, formula {want:.6g}"


def latest(path: np.ndarray, when: np.ndarray) -> np.ndarray:
    """Time of the last event before each moment, −inf if there is none."""
    return np.append(-np.inf, path)[np.searchsorted(path, when)]


def moments(rng: np.random.Generator) -> np.ndarray:
    # late enough for every replica to have polled; the few that have not count as never
    return rng.uniform(0.4 * HORIZON, HORIZON, REQUESTS)


CASES = [
    (Poisson(1.0), Constant(5.0), 8, 3),
    (Poisson(1.0), Pareto(3.0, 6.0), 5, 5),
    (Pareto(2.8, 2.0), Uniform(0.5, 6.0), 6, 2),
    (Gamma(3.0, 0.4), Constant(math.e), 4, 4),
    (Constant(1.7), Gamma(0.5, 6.0), 7, 4),
]


@pytest.mark.parametrize(("changes", "polls", "replicas", "asked"), CASES, ids=repr)
def test_the_freshest_of_a_random_subset(changes: Process, polls: Process, replicas: int, asked: int) -> None:
    rng = np.random.default_rng(1)
    fresh, old, missed = [], [], []
    for _ in range(RUNS):
        changed, when = changes.sample_path(rng, HORIZON), moments(rng)
        seen = np.array([latest(polls.sample_path(rng, HORIZON), when) for _ in range(replicas)])
        chosen = rng.permuted(np.tile(np.arange(replicas), (REQUESTS, 1)), axis=1)[:, :asked].T
        best = np.take_along_axis(seen, chosen, axis=0).max(axis=0)
        first = np.searchsorted(changed, best)
        lacking = np.searchsorted(changed, when) - first
        since = np.where(lacking > 0, when - changed[np.minimum(first, changed.size - 1)], 0.0)
        fresh.append(float(np.mean(lacking == 0)))
        old.append(float(since.mean()))
        missed.append(float(lacking.mean()))
    close("freshness", fresh, freshest_freshness(changes, polls, asked))
    close("freshness", fresh, balance(changes, polls.rate, replicas, asked=asked, polls=polls).freshness)
    close("age", old, age(changes, merged(polls, asked)))
    close("missed", missed, missed_changes(changes, merged(polls, asked)))


@pytest.mark.parametrize(("replicas", "asked"), [(6, 1), (6, 2), (6, 5), (6, 6)])
def test_replicas_that_take_turns(replicas: int, asked: int) -> None:
    """The turns themselves: a poll every 0.5, by replica after replica, and a fresh subset for each request."""
    rng, changes, turn = np.random.default_rng(2), Pareto(2.8, 2.0), 0.5
    fresh, missed = [], []
    for _ in range(RUNS):
        changed, when = changes.sample_path(rng, HORIZON), moments(rng)
        start = rng.uniform(0.0, turn)
        seen = np.floor((when - start) / turn).astype(int)
        subset = rng.permuted(np.tile(np.arange(replicas), (REQUESTS, 1)), axis=1)[:, :asked]
        back = ((seen[:, None] - subset) % replicas).min(axis=1)
        best = start + (seen - back) * turn
        lacking = np.searchsorted(changed, when) - np.searchsorted(changed, best)
        fresh.append(float(np.mean(lacking == 0)))
        missed.append(float(lacking.mean()))
    rate = 1 / (replicas * turn)
    close("freshness", fresh, balance(changes, rate, replicas, asked=asked, coordinated=True).freshness)
    close("missed", missed, missed_changes(changes, round_robin(rate, replicas, asked)))


def test_what_independence_costs() -> None:
    """Changes lacking and their summed lag at the freshest of four even replicas, over that of taking turns."""
    rng, replicas, gap = np.random.default_rng(3), 4, 4.0
    missed, lag = [], []
    for _ in range(RUNS):
        changed, when = Poisson(2.0).sample_path(rng, HORIZON), moments(rng)
        phase = rng.uniform(0, gap, (replicas, 1))
        # replicas poll at phase + n·gap
        best = when - ((when - phase) % gap).min(axis=0)
        first, last = np.searchsorted(changed, best), np.searchsorted(changed, when)
        total = np.append(0.0, np.cumsum(changed))
        missed.append(float(np.mean(last - first)))
        lag.append(float(np.mean((last - first) * when - (total[last] - total[first]))))
    # taking turns, a poll every 1: change_rate/2 and change_rate/6
    close("missed", missed, 1.0 * independence_cost(2.0, 1 / gap, replicas, Indicator(), summed=True).staleness)
    close("lag", lag, 2 / 6 * independence_cost(2.0, 1 / gap, replicas, Linear(), summed=True).staleness)


def test_many_sources_at_some_replicas() -> None:
    changes: list[Process | float] = [Poisson(1.0), Pareto(2.8, 2.0), Uniform(0.5, 3.0), Poisson(0.3)]
    polls, replicas, asked = Gamma(2.0, 1.5), 5, 2
    rng = np.random.default_rng(4)
    counts: list[np.ndarray] = []
    for _ in range(RUNS):
        when, fresh = moments(rng), []
        for each in changes:
            assert isinstance(each, Process)
            changed = latest(each.sample_path(rng, HORIZON), when)
            # replicas are alike: the first two are a random pair
            seen = [latest(polls.sample_path(rng, HORIZON), when) for _ in range(asked)]
            fresh.append(np.max(seen, axis=0) > changed)
        counts.append(np.bincount(np.sum(fresh, axis=0), minlength=5) / REQUESTS)
    each_fresh = many_to_many(changes, polls.rate, replicas, asked=asked, polls=polls)
    for j in range(5):
        close(f"exactly {j}", [float(c[j]) for c in counts], float(fresh_count(each_fresh)[j]))
    close("any", [float(c[1:].sum()) for c in counts], any_fresh(each_fresh))
    close("all", [float(c[4]) for c in counts], all_fresh(each_fresh))
    close("three", [float(c[3:].sum()) for c in counts], at_least_fresh(each_fresh, 3))


def test_the_count_of_fresh_copies_of_a_planned_fleet() -> None:
    """Classes of 40, 30 and 20 sources under an optimal plan, polled evenly with random phases."""
    rate, sources = np.array([0.2, 1.0, 3.0]), np.array([40, 30, 20])
    made = plan(classes(rate, sources), 90.0)
    rates, sync = np.repeat(rate, sources), np.repeat(made.sync_rate, sources)
    rng, found = np.random.default_rng(5), []
    for _ in range(20_000):
        since = rng.random(90) / sync
        found.append(int(np.count_nonzero(rng.exponential(1 / rates) > since)))
    expected = fresh_count(freshness(rates, sync))
    for j in (55, 60, 65):
        close(f"at least {j}", [float(n >= j) for n in found], float(expected[j:].sum()))
    assert np.mean(found) / 90 == pytest.approx(
        1 - made.fleet_staleness, abs=5 * np.std(found) / 90 / math.sqrt(20_000)
    )


def test_service_of_a_cluster() -> None:
    """A designed cluster, simulated: clients see the target, and the source receives what it can answer."""
    made = service_for(Pareto(2.8, 2.0), 0.6, capacity=3.0, asked=2)
    rng, replicas = np.random.default_rng(6), int(made.replicas)
    fresh, received = [], []
    for _ in range(RUNS):
        changed, when = Pareto(2.8, 2.0).sample_path(rng, HORIZON), moments(rng)
        paths = [Constant(1 / made.sync_rate).sample_path(rng, HORIZON) for _ in range(replicas)]
        seen = np.max([latest(path, when) for path in paths[:2]], axis=0)
        fresh.append(float(np.mean(seen > latest(changed, when))))
        received.append(sum(path.size for path in paths) / HORIZON)
    close("freshness", fresh, made.freshness)
    close("polls", received, replicas * made.sync_rate)
