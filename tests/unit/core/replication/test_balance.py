"""Replicas that take turns and replicas that do not: counted by hand, in closed form, and against each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from unstale.core.inverse import sync_rate_for
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear, Power, Reciprocal, Saturating
from unstale.core.processes import Constant, Pareto, Poisson, Superposition, Uniform
from unstale.core.replication.balance import (
    balance,
    balance_for,
    independence_cost,
    many_to_many,
    round_robin,
)
from unstale.core.staleness import freshness, missed_changes, staleness, update_staleness
from unstale.errors import InfeasibleError, InputError
from unstale.study.aggregation import all_fresh, any_fresh


@pytest.mark.parametrize(("m", "j"), [(4, 2), (5, 3), (6, 5), (7, 1), (7, 7)])
def test_turns_of_a_subset_are_what_counting_all_subsets_gives(m: int, j: int) -> None:
    """The gaps between chosen turns, over every subset of a cycle of m turns."""
    gaps = [
        (after - now) % m or m
        for chosen in itertools.combinations(range(m), j)
        for now, after in itertools.pairwise((*chosen, chosen[0]))
    ]
    # a turn takes a quarter of a unit of time; x lies beside the places where the law jumps
    polls, x = round_robin(1 / (m * 0.25), m, j), np.arange(0.13, m / 4, 0.25)
    np.testing.assert_allclose(polls.survival(x), np.mean(np.array(gaps)[:, None] / 4 > x, axis=0), atol=1e-15)
    assert polls.rate == pytest.approx(j / (m * 0.25), rel=1e-14)


def test_the_age_of_a_subset_is_a_ratio_of_binomials() -> None:
    """Nobody of the j chosen has polled for i turns: C(m − i, j)/C(m, j); m in the thousands."""
    m, j = 3000, 40
    polls = round_robin(1 / m, m, j)
    turns = np.array([1, 2, 50, 700, 2000])
    want = [math.comb(m - int(i), j) / math.comb(m, j) for i in turns]
    np.testing.assert_allclose(polls.age_survival(turns.astype(float)), want, rtol=1e-9)


def test_who_asks_one_replica_sees_no_difference() -> None:
    turns, alone = (balance(1.0, 0.7, 9, asked=1, coordinated=c) for c in (True, False))
    assert turns.freshness == pytest.approx(alone.freshness, rel=1e-15)
    assert turns.freshness == pytest.approx(freshness(1.0, 0.7), rel=1e-15)
    assert turns.source_polls == alone.source_polls == pytest.approx(6.3)


@pytest.mark.parametrize("changes", [Poisson(1.0), Pareto(2.5, 1.0), Uniform(0.1, 2.0)], ids=repr)
def test_turns_are_fresher_than_independence_and_more_replicas_fresher_than_few(changes) -> None:
    before = 0.0
    for asked in (2, 3, 8):
        turns, alone = (balance(changes, 0.2, 8, asked=asked, coordinated=c).freshness for c in (True, False))
        assert before < alone < turns
        before = alone
    assert turns == pytest.approx(freshness(changes, Constant(1 / 1.6)), rel=1e-14)


@pytest.mark.parametrize("coordinated", [True, False])
@pytest.mark.parametrize("asked", [1, 3, 8])
def test_the_sync_rate_for_a_freshness_gives_it(asked: int, coordinated: bool) -> None:
    found = balance_for(Pareto(2.5, 1.0), 0.85, 8, asked=asked, coordinated=coordinated)
    again = balance(Pareto(2.5, 1.0), found.sync_rate, 8, asked=asked, coordinated=coordinated)
    assert again.freshness == pytest.approx(0.85, rel=1e-11)
    assert again.source_polls == found.source_polls


@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_independence_of_evenly_polled_replicas_in_closed_form(m: int) -> None:
    """Ages of m merged even streams of summed rate 1: E[A] = m/(m+1), E[A²] = 2m²/((m+1)(m+2))."""
    for changes in (Poisson(3.0), Pareto(2.5, 1.0)):
        missed = independence_cost(changes, 1 / m, m, Indicator(), summed=True)
        assert missed == pytest.approx((2 * m / (m + 1),) * 2, rel=1e-10)
        lag = independence_cost(changes, 1 / m, m, Linear(), summed=True)
        worse = 6 * m * m / ((m + 1) * (m + 2))
        assert lag == pytest.approx((worse, math.sqrt(worse)), rel=1e-10)


def test_the_limit_of_independence() -> None:
    """Staleness 2 and 6 times as high, polls 2 and √6 times as many; w = x²: E[A³] is 3! against 1/4."""
    for penalty, worse, power in ((Indicator(), 2.0, 1), (Linear(), 6.0, 2), (Power(2.0), 24.0, 3)):
        got = independence_cost(1.0, 2.5, math.inf, penalty, summed=True)
        assert got == pytest.approx((worse, worse ** (1 / power)), rel=1e-11)


def test_independence_is_dearer_the_fresher_copies_must_be() -> None:
    """Stale share of Poisson changes: nothing to lose if polls are rare, twice the polls if they are dense."""
    rare, some, dense = (independence_cost(1.0, f, math.inf, Indicator()) for f in (0.01, 1.0, 1e4))
    assert some.staleness == pytest.approx(0.5 / math.exp(-1), rel=1e-12)
    # polls f with f/(1 + f) = 1 − 1/e
    assert some.polls == pytest.approx(math.e - 1, rel=1e-12)
    assert dense == pytest.approx((2.0, 2.0), rel=1e-4)
    assert rare == pytest.approx((1.0, 1.0), abs=0.02)


def test_the_cost_of_independence_is_what_it_says_for_any_penalty() -> None:
    """Three replicas, polled 0.5 times each, irregularly: the dearer polls give the staleness of taking turns."""
    changes, penalty, shape = Pareto(2.5, 1.0), Saturating(1.0), Uniform(0.5, 3.5)
    got = independence_cost(changes, 0.5, 3, penalty, polls=shape)
    goal = staleness(changes, Constant(1 / 1.5), penalty)
    assert staleness(changes, Superposition([shape] * 3), penalty) == pytest.approx(got.staleness * goal, rel=1e-9)
    faster = [shape.with_rate(0.5 * got.polls)] * 3
    assert staleness(changes, Superposition(faster), penalty) == pytest.approx(goal, rel=1e-9)


@pytest.mark.parametrize("penalty", [Indicator(), Linear(), Reciprocal()], ids=repr)
def test_the_sync_rate_for_an_update_staleness_gives_it(penalty) -> None:
    for polls in (Constant(1.0), Poisson(1.0), Uniform(0.2, 3.0)):
        rate = sync_rate_for(2.0, update_staleness=(penalty, 0.3), polls=polls)
        assert update_staleness(2.0, polls.with_rate(rate), penalty) == pytest.approx(0.3, rel=1e-10)
    assert sync_rate_for(8.0, update_staleness=(Indicator(), 10.0)) == pytest.approx(0.4, rel=1e-12)


def test_many_sources_at_some_replicas() -> None:
    """[003 sect. VI-E]: merge the polls of those asked, source by source, then multiply."""
    changes = [1.0, Pareto(3.0, 1.0), Poisson(0.2)]
    seen = many_to_many(changes, [0.1, 0.2, 0.3], 10, asked=4, polls="purely-random")
    want = [freshness(u, Poisson(4 * f)) for u, f in zip(changes, (0.1, 0.2, 0.3), strict=True)]
    np.testing.assert_allclose(seen, want, rtol=1e-12)
    assert any_fresh(seen) == pytest.approx(1 - np.prod(1 - np.array(want)), rel=1e-13)
    turns = many_to_many(changes, 0.2, 10, coordinated=True)
    np.testing.assert_allclose(turns, [freshness(u, 2.0) for u in changes], rtol=1e-13)


def test_missed_changes_of_a_subset_that_takes_turns() -> None:
    """E[age] = ∫ C(m − x, j)/C(m, j): for j = 2 of m = 3 with turns of 1, (1 + 1/3)/2 + (1/3 + 0)/2 = 5/6."""
    assert missed_changes(1.0, round_robin(1 / 3, 3, 2)) == pytest.approx(5 / 6, rel=1e-13)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: balance(1.0, 1.0, 3, asked=4), "asked 4 must be at most the number of replicas, 3"),
        (lambda: balance(1.0, 1.0, 0), "replicas 0.0 must be .*at least 1"),
        (lambda: balance(1.0, 0.0, 2), "sync_rate 0.0 must be .*above 0"),
        (lambda: balance(1.0, 1.0, 2, polls="pareto:3", coordinated=True), "polls pareto:3 must be fixed"),
        (lambda: round_robin(1.0, 2.5), "replicas 2.5 must be a whole number"),
        (lambda: independence_cost(1.0, 1.0, math.nan, Linear()), "replicas nan must be"),
        (lambda: many_to_many([1.0, 2.0], [1.0, 0.0], 3), r"sync_rate\[1\] 0.0 must be .*above 0"),
        (lambda: many_to_many([1.0, 2.0], [1.0, 1.0, 1.0], 3), "sync_rate of shape"),
        (lambda: many_to_many([], 1.0, 3), "changes"),
    ],
)
def test_what_cannot_be_is_refused(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_freshness_one_is_out_of_reach() -> None:
    for coordinated in (True, False):
        with pytest.raises(InfeasibleError, match="cannot be reached"):
            balance_for(1.0, 1.0, 3, coordinated=coordinated)


def test_sources_polled_at_the_same_moments_are_fresh_together() -> None:
    """Two Poisson sources, one even stream of polls for both: all fresh is likelier, any fresh less likely."""
    each = many_to_many([1.0, 1.0], 1.0, 1)
    together = -math.expm1(-2.0) / 2  # ∫ e^(−2y) over one interval
    assert together > all_fresh(each)
    assert 2 * each[0] - together < any_fresh(each)
