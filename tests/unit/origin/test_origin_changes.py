"""Changes follow their processes, and nobody's asking moves them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.stats import kstest

from unstale.core.processes import Constant, Poisson, Process, Weibull
from unstale.core.processes.named import named
from unstale.errors import InputError
from unstale.origin.changes import CLOSEST, Changing, spread_rates

START = 1.7e9
KINDS = ["poisson", "pareto:3", "weibull:0.7", "constant", "uniform", "gamma:2", "lognormal:1"]


def changing(shape: Process, rate: float, sources: int, seed: int = 7) -> Changing:
    return Changing([shape], np.full(sources, rate), seed=seed, start=START)


@pytest.mark.parametrize("kind", KINDS)
def test_sources_change_as_often_as_their_rate_says_from_the_first_moment_on(kind: str) -> None:
    rate, sources = 0.02, 1500
    drawn = changing(named(kind, 1.0), rate, sources)
    for seconds in (30.0, 500.0):
        counts = drawn.trace([str(i) for i in range(sources)], START + seconds).counts()
        error = max(counts.std() / np.sqrt(sources), 1e-9)
        assert abs(counts.mean() - rate * seconds) < 5 * error


def test_poisson_counts_are_poisson() -> None:
    counts = changing(Poisson(1.0), 0.05, 4000).trace([""] * 4000, START + 100.0).counts()
    # mean and variance are both 5; that of the variance is (5 + 2·25)/n
    assert abs(counts.mean() - 5.0) < 5 * np.sqrt(5 / 4000)
    assert abs(counts.var(ddof=1) - 5.0) < 5 * np.sqrt(55 / 4000)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "constant"])
def test_gaps_follow_their_law(kind: str) -> None:
    shape = named(kind, 1.0)
    drawn = changing(shape, 0.1, 200)
    gaps = np.concatenate([np.diff(drawn.times(i, START + 10_000.0)[:21]) for i in range(200)])
    assert kstest(gaps * 0.1, shape.cdf).pvalue > 1e-4


def test_first_waits_are_those_from_a_random_moment() -> None:
    shape = named("pareto:3", 1.0)
    drawn = changing(shape, 0.1, 4000)
    waits = np.array([drawn.at(i, START)[2] for i in range(4000)]) - START
    assert kstest(waits * 0.1, shape.age_cdf).pvalue > 1e-4


def test_who_asks_when_does_not_matter() -> None:
    shapes = [Weibull(0.5, 1.0), Poisson(1.0)]
    steps = Changing(shapes, [0.5, 2.0, 0.1], seed=3, start=START)
    for t in np.arange(START, START + 600.0, 0.7).tolist():
        for i in (2, 0, 1):
            steps.at(i, t)
    once = Changing(shapes, [0.5, 2.0, 0.1], seed=3, start=START)
    names = ["a", "b", "c"]
    assert np.array_equal(steps.trace(names, START + 500).times, once.trace(names, START + 500).times)
    other = Changing(shapes, [0.5, 2.0, 0.1], seed=4, start=START)
    assert not np.array_equal(other.times(1, START + 500), once.times(1, START + 500))


def test_threads_that_ask_at_the_same_time_see_the_same_changes() -> None:
    shared = changing(Poisson(1.0), 50.0, 4)
    times = np.linspace(START, START + 100.0, 200).tolist()
    threads = [threading.Thread(target=lambda: [shared.at(i, t) for t in times for i in range(4)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = changing(Poisson(1.0), 50.0, 4)
    for i in range(4):
        assert np.array_equal(shared.times(i, START + 100.0), alone.times(i, START + 100.0))


def test_a_version_counts_the_changes_up_to_and_at_its_time() -> None:
    drawn = changing(Poisson(1.0), 0.5, 3)
    times = drawn.times(1, START + 200.0)
    assert len(times) > 50
    assert drawn.at(1, START) == (0, START, times[0])
    for k in (0, 1, 20):
        assert drawn.at(1, float(times[k])) == (k + 1, times[k], times[k + 1])
        assert drawn.at(1, float(np.nextafter(times[k], 0)))[0] == k


def test_the_trace_holds_what_each_source_says() -> None:
    drawn = Changing([Poisson(1.0)], [0.5, 0.0, 0.001, 3.0], seed=5, start=START)
    trace = drawn.trace(["a", "b", "c", "d"], START + 60.0)
    for i in range(4):
        assert np.array_equal(trace.changes(i), drawn.times(i, START + 60.0))
        assert len(trace.changes(i)) == drawn.at(i, START + 60.0)[0]


def test_no_two_changes_of_a_source_are_at_the_same_time() -> None:
    # four gaps in ten of this law would be lost in the rounding of seconds since 1970
    times = changing(Weibull.from_rate(0.2, 1.0), 1000.0, 1).times(0, START + 5.0)
    assert len(times) > 1000
    assert np.diff(times).min() > 0.5 * CLOSEST


def test_a_source_of_rate_0_never_changes() -> None:
    assert Changing([Constant(1.0)], [0.0], seed=1, start=START).at(0, START + 1e12) == (0, START, np.inf)


def test_spread_rates_have_their_mean_and_spread() -> None:
    rates = spread_rates(200_000, 0.5, 1.0, seed=2)
    # the variance of a lognormal with mean m and spread s is m²(e^(s²) − 1)
    assert abs(rates.mean() - 0.5) < 5 * 0.5 * np.sqrt((np.e - 1) / 200_000)
    assert abs(np.log(rates).std() - 1.0) < 5 / np.sqrt(2 * 200_000)


@pytest.mark.parametrize(
    ("sources", "mean", "spread", "words"),
    [
        (0, 1.0, 0.0, "sources 0"),
        (1.5, 1.0, 0.0, "whole number"),
        (5, -1.0, 0.0, "change_rate -1"),
        (5, 1.0, float("nan"), "spread nan"),
    ],
)
def test_what_cannot_be_is_refused(sources: int, mean: float, spread: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        spread_rates(sources, mean, spread, 1)


def test_rates_beyond_what_times_can_tell_apart_are_refused() -> None:
    with pytest.raises(InputError, match=r"change_rate\[1\] 1000000"):
        Changing([Poisson(1.0)], [1.0, 1e6], seed=1, start=START)
    with pytest.raises(InputError, match="must name a process"):
        Changing([], [1.0], seed=1, start=START)
