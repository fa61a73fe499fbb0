"""The freshest of several replicas, against high-precision integrals, closed forms and each other."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from unstale.core.processes import Constant, Gamma, Mixture, Pareto, Poisson, Process, Uniform, Weibull
from unstale.core.replication.redundancy import (
    freshest_freshness,
    merged,
    service,
    service_for,
    sync_rate_for_freshest,
)
from unstale.core.staleness import freshness
from unstale.errors import InfeasibleError, InputError


@pytest.mark.parametrize("k", [2, 3, 20, 1000])
def test_even_replicas_of_a_poisson_source(k: int) -> None:
    """Each polls once in k units of time: P(nobody for x) = (1 − x/k)^k."""
    with mpmath.workdps(30):
        want = mpmath.quad(lambda x: (1 - x / k) ** (k - 1) * mpmath.exp(-x), [0, min(k, 30), k])
    assert freshest_freshness(1.0, Constant(float(k)), k) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize("k", [2, 7, 500])
def test_pareto_replicas_of_a_pareto_source_have_a_closed_form(k: int) -> None:
    """With one scale the merged age survives like (1 + x)^(−a), a = k·(alpha − 1), the changes like (1 + x)^(−b)."""
    a, b = k * 0.6, 2.0
    assert freshest_freshness(Pareto(3.0, 1.0), Pareto(1.6, 1.0), k) == pytest.approx(a / (a + b), rel=1e-11)


PAIRS: list[tuple[Process, Process]] = [
    (Poisson(1.0), Uniform(0.5, 9.0)),
    (Constant(1.3), Weibull(0.6, 4.0)),
    (Uniform(0.2, 2.0), Gamma(2.5, 2.0)),
    (Pareto(1.3, 0.5), Constant(5.0)),
    (Mixture([Constant(1.0), Pareto(2.5, 1.0)], [1.0, 3.0]), Mixture([Constant(2.0), Constant(7.0)], [1.0, 1.0])),
]


@pytest.mark.parametrize(("changes", "polls"), PAIRS, ids=repr)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_the_power_and_the_superposition_agree(changes: Process, polls: Process, k: int) -> None:
    assert freshest_freshness(changes, polls, k) == pytest.approx(freshness(changes, merged(polls, k)), rel=1e-10)


@pytest.mark.parametrize(("changes", "polls"), PAIRS, ids=repr)
@pytest.mark.parametrize("level", [1e-6, 0.3, 0.95])
def test_the_sync_rate_for_a_freshness_gives_it(changes: Process, polls: Process, level: float) -> None:
    rate = sync_rate_for_freshest(changes, level, 4, polls)
    assert freshest_freshness(changes, polls.with_rate(rate), 4) == pytest.approx(level, rel=1e-9)


def test_a_sync_rate_keeps_its_digits_close_to_perfect_freshness() -> None:
    """Where polls are dense, staleness is change_rate·E[age of the merged polls] = 1/((k + 1)·sync_rate)."""
    assert sync_rate_for_freshest(1.0, 1 - 1e-7, 4) == pytest.approx(1 / 5 / 1e-7, rel=1e-6)


def test_poisson_replicas_merge_into_one() -> None:
    assert merged(Poisson(0.5), 6) == Poisson(3.0)
    assert merged(Constant(2.0), 1) == merged(0.5, 1) == Constant(2.0)
    assert freshest_freshness(2.0, Poisson(0.5), 6) == pytest.approx(0.6, rel=1e-15)


@pytest.mark.parametrize(
    ("polls", "order"),
    [(Constant(1.0), 1.0), (Pareto(3.0, 2.0), 1.0), (Pareto(1.2, 0.2), 1.0), (Weibull(0.5, 0.5), 0.5)],
    ids=repr,
)
def test_many_rare_polls_become_poisson(polls: Process, order: float) -> None:
    """The distance from the limit falls like 1/k, or like 1/√k where gaps of 0 have infinite density."""
    distance = [abs(freshest_freshness(1.0, polls.with_rate(1 / k), k) - 0.5) for k in (10**3, 10**4, 10**5)]
    assert distance[2] < 1e-3
    for more, less in itertools.pairwise(distance):
        assert math.log10(more / less) == pytest.approx(order, abs=0.02)


def test_splitting_even_polls_harms_and_splitting_irregular_ones_helps() -> None:
    """At one merged rate [004 sect. VII-B]."""
    even = [freshest_freshness(1.0, Constant(float(k)), k) for k in (1, 2, 5, 20, 100)]
    bursts = [freshest_freshness(1.0, Pareto.from_rate(2.0, 1 / k), k) for k in (1, 2, 5, 20, 100)]
    assert even == sorted(even, reverse=True)
    assert bursts == sorted(bursts)
    assert bursts[-1] < 0.5 < even[-1]


def test_all_copies_turn_stale_together() -> None:
    """Two copies that were independent would be fresh far more often."""
    one = freshness(1.0, Constant(4.0))
    assert freshest_freshness(1.0, Constant(4.0), 2) < 0.9 * (1 - (1 - one) ** 2)


def test_service_adds_up() -> None:
    """What clients get, times how often it is asked, and the polls are all that replicas can do."""
    for asked in (1, 2, 20):
        found = service_for(1.0, 0.6, capacity=50.0, asked=asked)
        assert found.source_polls == pytest.approx(50.0, rel=1e-14)
        assert found.requests * asked + found.source_polls == pytest.approx(found.replicas * 50.0, rel=1e-14)
        again = service(1.0, Constant(1 / found.sync_rate), replicas=found.replicas, capacity=50.0, asked=asked)
        assert again.freshness == pytest.approx(0.6, rel=1e-12)
        assert again.requests == pytest.approx(found.requests, rel=1e-12)


def test_fewer_replicas_than_the_source_could_feed() -> None:
    found = service_for(1.0, 0.5, capacity=10.0, polls="purely-random", replicas=4)
    assert (found.replicas, found.source_polls) == (4.0, pytest.approx(4.0))
    assert found.requests == pytest.approx(4 * 9.0)
    assert service_for(1.0, 0.5, capacity=10.0, polls="purely-random", replicas=40).replicas == pytest.approx(10.0)


def test_the_best_reachable_freshness_is_reachable_and_named() -> None:
    with pytest.raises(InfeasibleError, match=r"freshness 0\.95 is above 0\.909091, .*: lower it") as caught:
        service_for(1.0, 0.95, capacity=10.0, asked=5, polls="purely-random")
    assert "\n" not in str(caught.value)
    found = service_for(1.0, 10 / 11, capacity=10.0, asked=5, polls="purely-random")
    assert found.replicas == pytest.approx(5.0)
    assert found.requests == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: freshest_freshness(1.0, Constant(1.0), 0), "asked 0.0 must be .*at least 1"),
        (lambda: freshest_freshness(1.0, "fixed", 2), "polls 'fixed' must be .*: give the polls of one replica"),
        (lambda: merged(Constant(1.0), 1.5), "asked 1.5 must be a whole number"),
        (lambda: sync_rate_for_freshest(1.0, 1.0, 3), "freshness 1.0 cannot be reached"),
        (lambda: sync_rate_for_freshest(1.0, 1.2, 3), "freshness 1.2 must be .*at most 1"),
        (lambda: service(1.0, Constant(1.0), replicas=2, capacity=9.0, asked=3), "replicas 2.0 must be .*at least 3"),
        (lambda: service(1.0, Constant(1.0), replicas=9, capacity=0.0), "capacity 0.0 must be"),
        (lambda: service(1.0, Constant(1.0), replicas=30, capacity=9.0), "replicas 30 means 30 polls .* capacity of 9"),
        (lambda: service_for(1.0, 0.5, capacity=9.0, asked=3, replicas=2), "replicas 2.0 must be .*at least 3"),
        (lambda: service_for(1.0, 0.0, capacity=9.0), "freshness 0.0 must be .*above 0"),
    ],
)
def test_what_cannot_be_is_refused(call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_extremes_have_their_limits() -> None:
    assert freshest_freshness(1.0, Constant(1e12), 3) == pytest.approx(3e-12, rel=1e-9)
    assert freshest_freshness(1e-12, Constant(1.0), 3) == pytest.approx(1.0, abs=1e-11)
    huge = freshest_freshness(1.0, Constant(1e9), 10**9)
    assert math.isclose(huge, 0.5, abs_tol=1e-9)
