"""How many of many copies are fresh, against exact fractions and binomial laws; fleets as classes."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from unstale.core.fleet import Fleet
from unstale.core.price import least_budget, plan
from unstale.core.processes import Pareto
from unstale.core.staleness import freshness
from unstale.core.values import value_of
from unstale.errors import InputError
from unstale.study.aggregation import (
    all_fresh,
    any_fresh,
    at_least_fresh,
    classes,
    fresh_count,
    sync_rate_for_count,
)
from unstale.study.gamma_fleet import gamma_freshness

SMALL = [0.9, 0.25, 0.5, 1e-6, 0.999, 0.0, 1.0]


def enumerated(chances: list[float]) -> list[Fraction]:
    """The law of the count, by adding up all outcomes in exact fractions."""
    law = [Fraction(0)] * (len(chances) + 1)
    exact = [Fraction(p) for p in chances]
    for outcome in itertools.product((False, True), repeat=len(chances)):
        law[sum(outcome)] += math.prod(p if fresh else 1 - p for p, fresh in zip(exact, outcome, strict=True))
    return law


def test_the_law_of_the_count_is_the_sum_over_all_outcomes() -> None:
    want = [float(x) for x in enumerated(SMALL)]
    np.testing.assert_allclose(fresh_count(SMALL), want, rtol=1e-15)
    for j in range(8):
        assert at_least_fresh(SMALL, j) == pytest.approx(float(sum(enumerated(SMALL)[j:])), rel=1e-14)


@pytest.mark.parametrize("p", [0.3, 1e-3, 1 - 1e-4])
def test_thousands_of_equal_sources_are_binomial_far_into_the_tails(p: float) -> None:
    n = 4000
    law = fresh_count(np.full(n, p))
    want = stats.binom(n, p).logpmf(np.arange(n + 1))
    seen = want > -690  # what a double can hold
    assert np.count_nonzero(seen) > 100
    # the logarithm of the reference itself is good to 1e-11
    np.testing.assert_allclose(np.log(law[seen]), want[seen], rtol=0, atol=2e-10)
    assert law.sum() == pytest.approx(1.0, rel=1e-12)


def test_moments_of_the_count_for_thousands_of_different_sources() -> None:
    p = np.random.default_rng(1).beta(0.5, 0.5, 5000)
    law, j = fresh_count(p), np.arange(5001)
    assert law @ j == pytest.approx(p.sum(), rel=1e-12)
    assert law @ (j - p.sum()) ** 2 == pytest.approx(np.sum(p * (1 - p)), rel=1e-11)
    assert at_least_fresh(p, 0) == 1.0
    assert at_least_fresh(p, 5000) == pytest.approx(all_fresh(p), rel=1e-12)


def test_at_least_one_and_all() -> None:
    assert any_fresh(np.full(1000, 1e-15)) == pytest.approx(1e-12, rel=1e-12)
    assert any_fresh([0.2, 1.0]) == 1.0
    assert any_fresh([0.0]) == 0.0
    assert all_fresh(np.full(10**6, 1 - 1e-6)) == pytest.approx(math.exp(10**6 * math.log1p(-1e-6)), rel=1e-9)
    assert all_fresh([0.5, 0.0]) == 0.0
    assert any_fresh([0.3, 0.6]) == pytest.approx(at_least_fresh([0.3, 0.6], 1), rel=1e-15)


@pytest.mark.parametrize(("sources", "count"), [(1, 1), (10, 1), (10, 4), (10, 10), (3000, 2500), (10**6, 10**6)])
@pytest.mark.parametrize("probability", [1e-9, 0.4, 0.99])
def test_the_sync_rate_for_a_count_gives_it(sources: int, count: int, probability: float) -> None:
    changes = Pareto(3.0, 1.0)
    rate = sync_rate_for_count(changes, probability, sources, count)
    # freshness has a closed form for these changes: 1/(1 + interval)
    got = stats.binom.sf(count - 1, sources, rate / (rate + 1.0)) if count < sources else (1 + 1 / rate) ** -sources
    assert got == pytest.approx(probability, rel=1e-7)
    assert rate / (rate + 1.0) == pytest.approx(freshness(changes, rate), rel=1e-12)


def test_a_billion_sources_all_fresh_keep_their_digits() -> None:
    """Staleness change_rate·interval/2 each, where polls are dense: the sync rate is sources/(2·log 2)."""
    assert sync_rate_for_count(1.0, 0.5, 10**9, 10**9) == pytest.approx(1e9 / (2 * math.log(2)), rel=1e-8)


@pytest.mark.parametrize("objective", ["freshness", "age", "missed", "lag"])
def test_classes_are_the_sources_they_stand_for(objective: str) -> None:
    rate, number, weight = np.array([0.3, 1.0, 4.0]), np.array([5, 3, 2]), np.array([1.0, 2.0, 0.5])
    listed = Fleet.of(value_of(objective, np.repeat(rate, number)), weight=np.repeat(weight, number))
    short, long = plan(classes(rate, number, weight=weight, objective=objective), 7.0), plan(listed, 7.0)
    np.testing.assert_allclose(np.repeat(short.sync_rate, number), long.sync_rate, rtol=1e-9)
    assert short.fleet_staleness == pytest.approx(long.fleet_staleness, rel=1e-10)
    assert short.spent == pytest.approx(7.0, rel=1e-10)


def test_polls_for_missed_changes_follow_the_mean_of_the_roots() -> None:
    """[003 eqs. 73, 74], and their quotient 1 + Var[√rate]/E[√rate]² [003 eq. 75]."""
    rate = np.random.default_rng(7).lognormal(0.0, 1.5, 2000)
    each, missed = 100e9 / rate.size, 10.0
    equal = least_budget(classes(rate, each, objective="missed"), missed).spent
    follow = least_budget(classes(rate, each, weight=rate, objective="missed"), missed).spent
    assert equal == pytest.approx(100e9 * np.mean(np.sqrt(rate)) ** 2 / (2 * missed), rel=1e-9)
    assert follow == pytest.approx(100e9 * rate.mean() / (2 * missed), rel=1e-9)
    assert follow / equal == pytest.approx(1 + np.var(np.sqrt(rate)) / np.mean(np.sqrt(rate)) ** 2, rel=1e-9)


def test_a_gamma_law_of_rates_in_classes_beats_uniform_polls() -> None:
    """Uniform polls of gamma rates have a closed form [000 Table 3]; in classes its optimum needs fewer."""
    variation, level = 2.0, 0.7
    law = stats.gamma(1 / variation, scale=variation)
    middle = (np.arange(2000) + 0.5) / 2000
    rate = law.ppf(middle)
    # the classes are the law: uniform polls give the same freshness
    assert np.mean(freshness(rate, 1.0)) == pytest.approx(gamma_freshness(1.0, variation, "uniform"), abs=2e-4)
    needed = least_budget(classes(rate, 1e6 / 2000), 1 - level).spent / 1e6
    assert gamma_freshness(1 / needed, variation, "uniform") < level
    assert plan(classes(rate, 1e6 / 2000), needed * 1e6).fleet_staleness == pytest.approx(1 - level, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: any_fresh([0.5, 1.5]), r"freshness\[1\] 1.5 must be .*at most 1"),
        (lambda: all_fresh([]), r"freshness of shape \(0,\) must be a list of one or more"),
        (lambda: fresh_count([[0.5]]), r"freshness of shape \(1, 1\) must be a list"),
        (lambda: at_least_fresh([0.5], 2), "count 2.0 must be .*at most 1"),
        (lambda: at_least_fresh([0.5, 0.5], 1.5), "count 1.5 must be a whole number"),
        (lambda: sync_rate_for_count(1.0, 0.5, 3, 4), "count 4 must be at most the number of sources, 3"),
        (lambda: sync_rate_for_count(1.0, 1.0, 3, 2), "cannot be reached"),
        (lambda: classes([1.0, 2.0], [1.0, 2.0, 3.0]), "sources of shape"),
        (lambda: classes([1.0], [0.0]), "sources.*0.0 must be .*above 0"),
        (lambda: classes([1.0], 5, objective="speed"), "objective 'speed' must be one of"),
    ],
)
def test_what_cannot_be_is_refused(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
