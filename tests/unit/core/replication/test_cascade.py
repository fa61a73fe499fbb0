"""Replicas of replicas: against closed forms, an independent integration, and laws that must hold."""

import math
from itertools import combinations, permutations

import mpmath
import numpy as np
import pytest

from unstale.core.processes import Constant, Gamma, LogNormal, Pareto, Poisson, Process, Uniform, Weibull
from unstale.core.replication.cascade import (
    cascade_freshness,
    cascade_levels,
    cascade_residual,
    lasting_freshness,
    lasting_rates,
)
from unstale.core.replication.tree import best_tree, tree_with
from unstale.core.staleness import freshness
from unstale.errors import InfeasibleError, InputError

MIXED = [Poisson(2.0), Constant(0.7), Pareto(3.0, 1.5)]
CHANGES = [
    Pareto(3.0, 1.0),
    Pareto(1.4, 0.93),
    Weibull(0.5, 1.0),
    LogNormal(0.6, 1.0),
    Gamma(3.0, 1.0),
    Uniform(0.2, 1.8),
    Constant(2.0),
]


def even(gaps: list[float]) -> float:
    """E[(1 − Q)⁺] for a sum Q of uniforms on [0, gap], by inclusion and exclusion."""
    with mpmath.workdps(40):
        terms = [
            (-1) ** n * max(1 - mpmath.fsum(some), mpmath.mpf(0)) ** (len(gaps) + 1)
            for n in range(len(gaps) + 1)
            for some in combinations([mpmath.mpf(g) for g in gaps], n)
        ]
        return float(mpmath.fsum(terms) / mpmath.factorial(len(gaps) + 1) / mpmath.fprod(gaps))


@pytest.mark.parametrize("gaps", [[0.3], [0.5, 0.8], [0.5, 0.8, 0.9, 0.7], [3.0, 2.0, 5.0], [0.2] * 6])
def test_even_changes_and_even_polls_are_a_polynomial(gaps: list[float]) -> None:
    assert cascade_freshness(Constant(1.0), [Constant(g) for g in gaps]) == pytest.approx(even(gaps), rel=1e-11)


@pytest.mark.parametrize("depth", [1, 2, 5, 12])
def test_equal_exponential_polls_are_one_gamma_age(depth: int) -> None:
    with mpmath.workdps(25):
        want = mpmath.quad(
            lambda x: (1 + x) ** mpmath.mpf("-1.5") * 3**depth * x ** (depth - 1) * mpmath.exp(-3 * x),
            [0, 1, 5, 20, mpmath.inf],
        ) / mpmath.gamma(depth)
    assert cascade_freshness(Pareto(2.5, 1.0), [Poisson(3.0)] * depth) == pytest.approx(float(want), rel=1e-11)


@pytest.mark.parametrize("changes", CHANGES, ids=repr)
def test_one_hop_is_the_freshness_of_one_copy(changes: Process) -> None:
    for polls in MIXED:
        assert cascade_freshness(changes, [polls]) == pytest.approx(float(freshness(changes, polls)), rel=1e-10)


@pytest.mark.parametrize("changes", CHANGES, ids=repr)
def test_order_makes_no_difference(changes: Process) -> None:
    # levels are computed in the order given, cascade_freshness in one of its own
    found = [cascade_levels(changes, order)[-1] for order in permutations(MIXED)][::2]
    assert found == pytest.approx([cascade_freshness(changes, MIXED)] * 3, rel=1e-11)


def test_poisson_changes_multiply() -> None:
    alone = [float(freshness(Poisson(1.3), polls)) for polls in MIXED]
    assert cascade_levels(1.3, MIXED) == pytest.approx(np.cumprod(alone), rel=1e-14)
    ahead = cascade_residual([0.0, 0.5, 3.0], 1.3, MIXED)
    assert ahead == pytest.approx(math.prod(alone) * np.exp(-1.3 * np.array([0.0, 0.5, 3.0])), rel=1e-14)


def test_levels_are_the_chains_cut_short() -> None:
    levels = cascade_levels(Pareto(3.0, 1.0), MIXED)
    assert levels == pytest.approx([cascade_freshness(Pareto(3.0, 1.0), MIXED[: i + 1]) for i in range(3)], rel=1e-13)
    assert levels == sorted(levels, reverse=True)


def test_residual_integrates_to_the_next_slow_hop() -> None:
    """A replica that polls once in a very long time T sees ∫ r(y) dy / T."""
    y = np.linspace(0, 2, 2001)
    area = np.trapezoid(cascade_residual(y, Uniform(0.2, 1.8), MIXED[:2]), y)
    slow = cascade_freshness(Uniform(0.2, 1.8), [*MIXED[:2], Constant(1e6)])
    assert slow * 1e6 == pytest.approx(area, rel=1e-6)


def test_extreme_rates_have_their_limits() -> None:
    heavy = Pareto(3.0, 1.0)
    plain = cascade_freshness(heavy, [Constant(1.0)])
    assert cascade_freshness(heavy, [Poisson(1e12), Constant(1.0), Constant(1e-12)]) == pytest.approx(plain, rel=1e-11)
    # a very slow hop sees the area under the residual, ln 2 for an age tail (1 + y)^-2 averaged over [0, 1]
    assert cascade_freshness(heavy, [Constant(1.0), Poisson(1e-9)]) * 1e9 == pytest.approx(math.log(2), rel=1e-6)


def test_rates_that_last() -> None:
    assert lasting_rates(2.0, 3, 1.5).tolist() == pytest.approx([2 * (k**1.5 - 1) for k in (2, 3, 4)])
    product = math.prod(rate / (rate + 1) for rate in lasting_rates(1.0, 100_000, 2.0))
    assert product == pytest.approx(lasting_freshness(2.0), rel=2e-5)
    with mpmath.workdps(20):
        want = mpmath.nprod(lambda k: 1 - k ** mpmath.mpf("-1.1"), [2, 2000]) * mpmath.exp(
            -mpmath.nsum(lambda j: mpmath.zeta(1.1 * j, 2001) / j, [1, 20])
        )
    assert lasting_freshness(1.1) == pytest.approx(float(want), rel=1e-9)


def test_a_tree_counts_what_every_node_spends() -> None:
    polls = [Poisson(2.0), Poisson(1.0), Poisson(0.5)]
    design = tree_with(1.0, polls, 2, 10.0)
    assert [level.replicas for level in design.levels] == [2, 4, 8]
    assert [level.requests for level in design.levels] == pytest.approx([2 * 6, 4 * 8, 8 * 9.5])
    # all capacity of replicas goes to clients, to own polls, and to those answered below the top
    spent = sum(level.replicas * level.sync_rate * (1 if level.depth == 1 else 2) for level in design.levels)
    assert design.requests + spent == pytest.approx(10.0 * design.replicas)
    assert design.freshness == pytest.approx(2 / 3 * 1 / 2 * 1 / 3)


@pytest.mark.parametrize(("target", "capacity"), [(0.5, 10.0), (0.5, 100.0), (0.3, 40.0), (0.8, 30.0)])
def test_the_best_tree_is_the_best_of_all_small_ones(target: float, capacity: float) -> None:
    best = best_tree(1.0, target, capacity, polls="purely-random", most_replicas=400)
    assert best.freshness == pytest.approx(target)
    assert best.replicas <= 400
    served = [0.0]
    for depth in range(1, 7):
        hop = target ** (1 / depth)
        polls = [Poisson(hop / (1 - hop) * (1 + 1e-12))] * depth
        for branching in range(1, 401):
            if sum(branching**i for i in range(1, depth + 1)) <= 400:
                try:
                    served.append(tree_with(1.0, polls, branching, capacity).requests)
                except InfeasibleError:
                    break
    assert best.requests == pytest.approx(max(served), rel=1e-9)


def test_what_cannot_be_is_one_sentence() -> None:
    with pytest.raises(InputError, match="must name one replica"):
        cascade_freshness(1.0, [])
    with pytest.raises(InputError, match="freshness vanishes"):
        lasting_freshness(1.0)
    with pytest.raises(InfeasibleError, match=r"the 15 that a node at depth 1 needs"):
        tree_with(1.0, [3.0, 4.0], 3, 10.0)
    with pytest.raises(InfeasibleError, match=r"comes to 0\.951626"):
        best_tree(1.0, 0.99, 10.0)
