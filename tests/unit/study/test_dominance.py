"""Second-order dominance: the known orders, a crossing far in the tail, and the papers' counterexample."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.processes import (
    Ageing,
    Constant,
    Empirical,
    Gamma,
    LogNormal,
    Mixture,
    Pareto,
    Poisson,
    Superposition,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.errors import InputError
from unstale.study.dominance import compare, dominates

FLEET = [
    Constant(1.0),
    Triangular(1.0),
    Uniform(0.0, 2.0),
    Uniform(0.9, 1.1),
    Weibull.from_rate(0.5, 1.0),
    Weibull.from_rate(2.0, 1.0),
    Gamma.from_rate(0.4, 1.0),
    Gamma.from_rate(3.0, 1.0),
    Poisson(1.0),
    Pareto.from_rate(1.4, 1.0),
    Pareto.from_rate(3.0, 1.0),
    LogNormal.from_rate(1.2, 1.0),
    Empirical([0.5, 1.5]),
    Mixture([Poisson(0.5), Poisson(4.0)], [1.0, 1.0]).with_rate(1.0),
    Superposition([Constant(2.0), Constant(2.0)]),
]


@pytest.mark.parametrize("p", FLEET, ids=repr)
def test_constant_dominates_every_process(p):
    assert dominates(Constant(1.0), p)
    assert dominates(p, Constant(1.0)) == isinstance(p, Constant)
    assert dominates(p, p)
    assert compare(p, p).verdict == "equal"


@pytest.mark.parametrize("p", FLEET, ids=repr)
def test_ageing_class_orders_against_poisson_also_by_the_numbers(p):
    result = compare(p, Poisson(1.0))
    if p.ageing is Ageing.NBU:
        assert result.verdict == "first"
        assert result.most > 1e-3
        assert result.least > -1e-12
    elif p.ageing is Ageing.NWU:
        assert result.verdict == "second"
        assert result.least < -1e-3
        assert result.most < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("first", FLEET, ids=repr)
def test_order_is_antisymmetric_and_agrees_with_variances(first):
    flipped = {"first": "second", "second": "first", "equal": "equal", "neither": "neither"}
    for second in FLEET:
        here, there = compare(first, second), compare(second, first)
        assert there.verdict == flipped[here.verdict]
        assert there.most == pytest.approx(-here.least, abs=1e-12)
        # Equal means: the dominating process has the smaller second moment.
        if here.verdict == "first":
            assert first.moment(2) <= second.moment(2) * (1 + 1e-9)


def test_range_is_the_largest_distance_of_the_age_laws():
    """Against uniform ages on [0, 1] Poisson is behind most at x = 1, by e^−1."""
    result = compare(Constant(2.0), Poisson(0.5))
    assert (result.verdict, result.least) == ("first", pytest.approx(0.0, abs=1e-12))
    assert (result.most, result.most_at) == (
        pytest.approx(np.exp(-1), rel=1e-9),
        pytest.approx(2.0, rel=1e-6),
    )


def test_crossing_far_in_the_tail_counts():
    """A small share of very long gaps makes the tail worse, where the rest is far better than Poisson."""
    rare = Mixture([Constant(1.0), Poisson(0.5)], [1.0, 1e-9]).with_rate(1.0)
    result = compare(rare, Poisson(1.0))
    assert result.verdict == "neither"
    assert result.most > 0.3
    assert -1e-6 < result.least < 0.0


def test_counterexample_to_the_converse():
    """[003 Theorem 8] claims that lower staleness implies dominance; not here: the least H₂ is −0.003."""
    first = Empirical([0.2, 0.998 / 0.99], [0.01, 0.99])
    second = Empirical([0.5, 1.5], [0.5, 0.5])
    result = compare(first, second)
    assert result.verdict == "neither"
    assert result.least == pytest.approx(-0.003, rel=1e-9)
    assert 0.2 < result.least_at <= 0.5 * (1 + 1e-12)


def test_rates_must_agree():
    with pytest.raises(InputError, match=r"^second.rate 3.0 must equal the first process's 1.0: compare first with "):
        compare(Constant(1.0), Poisson(3.0))
    slow, fast = (compare(Triangular(m), Poisson(1 / m)) for m in (1e-200, 1e200))
    assert slow.verdict == fast.verdict == "first"
    assert slow.most == pytest.approx(fast.most, rel=1e-12)
    assert fast.most_at == pytest.approx(slow.most_at * 1e200 * 1e200, rel=1e-9)
