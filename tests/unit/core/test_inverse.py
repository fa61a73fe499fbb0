"""Inverse questions: what comes out, put in again, gives the target."""

import math

import pytest
from scipy.special import lambertw

from unstale.core.inverse import poisson_overestimate, speedup, sync_rate_for
from unstale.core.penalties import Deadline, Decay, Linear, Saturating
from unstale.core.processes import Constant, Pareto, Poisson, Process, Triangular, Uniform
from unstale.core.staleness import age, consistency, freshness, staleness
from unstale.errors import InfeasibleError, InputError

CHANGES = [Poisson(1.3), Pareto(1.4, 0.93), Constant(0.8), Uniform(0.2, 1.5)]
SHAPES = [Constant(1.0), Triangular(1.0), Poisson(1.0), Pareto(3.5, 1.0), Uniform(0.5, 1.5)]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
@pytest.mark.parametrize("changes", CHANGES, ids=repr)
def test_round_trip(changes: Process, shape: Process) -> None:
    for level in (1e-6, 0.3, 0.8, 0.999):
        polls = shape.with_rate(sync_rate_for(changes, freshness=level, polls=shape))
        assert freshness(changes, polls) == pytest.approx(level, rel=1e-9)
        assert 1 - freshness(changes, polls) == pytest.approx(1 - level, rel=1e-7)
    polls = shape.with_rate(sync_rate_for(changes, age=0.37, polls=shape))
    assert age(changes, polls) == pytest.approx(0.37, rel=1e-9)
    polls = shape.with_rate(sync_rate_for(changes, consistency=(0.2, 0.9), polls=shape))
    assert consistency(0.2, changes, polls) == pytest.approx(0.9, rel=1e-9)


def test_other_penalties() -> None:
    for changes in (Poisson(1.3), Pareto(1.4, 0.93)):
        rate = sync_rate_for(changes, staleness=(Saturating(0.5), 0.1))
        assert staleness(changes, rate, Saturating(0.5)) == pytest.approx(0.1, rel=1e-9)
    rate = sync_rate_for(2.0, staleness=(Linear(), 0.1))
    assert rate == pytest.approx(sync_rate_for(2.0, age=0.1), rel=1e-12)
    rate = sync_rate_for(2.0, staleness=(Deadline(0.2), 0.1))
    assert rate == pytest.approx(sync_rate_for(2.0, consistency=(0.2, 0.9)), rel=1e-12)


def test_closed_forms() -> None:
    # (1−e^(−r))/r = F has the root r = 1/F + W(−e^(−1/F)/F)
    for level in (0.2, 0.5, 0.8, 0.95):
        r = 1 / level + lambertw(-math.exp(-1 / level) / level).real
        assert sync_rate_for(3.0, freshness=level) == pytest.approx(3.0 / r, rel=1e-12)
        assert sync_rate_for(3.0, freshness=level, polls="purely-random") == pytest.approx(
            3 * level / (1 - level), rel=1e-12
        )
    # Pareto(3) changes, even polls: stale share 1/(1 + rate·scale)
    assert sync_rate_for(Pareto(3.0, 2.0), freshness=0.9) == pytest.approx(9 / 2, rel=1e-12)
    # rare staleness: about r/2
    assert sync_rate_for(1.0, freshness=1 - 1e-12) == pytest.approx(0.5 / (1 - (1 - 1e-12)), rel=1e-9)


def test_rates_scale_with_the_changes() -> None:
    one = sync_rate_for(1.0, freshness=0.8)
    for c in (1e-100, 1e-9, 1e9, 1e100):
        assert sync_rate_for(c, freshness=0.8) == pytest.approx(c * one, rel=1e-11)
        assert sync_rate_for(c, age=0.1 / c) == pytest.approx(c * sync_rate_for(1.0, age=0.1), rel=1e-11)


def test_targets_that_need_no_polls_or_cannot_be_met() -> None:
    assert sync_rate_for(1.0, freshness=0.0) == 0.0
    assert sync_rate_for(1.0, staleness=(Saturating(1.0), 1.0)) == 0.0
    assert sync_rate_for(1.0, age=math.inf) == 0.0
    # with even polls nobody is later than one interval; with triangular ones, two
    assert sync_rate_for(1.0, consistency=(0.5, 1.0)) == 2.0
    assert sync_rate_for(1.0, consistency=(0.5, 1.0), polls="random") == 4.0
    assert sync_rate_for(1.0, consistency=(0.0, 0.8)) == sync_rate_for(1.0, freshness=0.8)
    for impossible in (
        {"freshness": 1.0},
        {"age": 0.0},
        {"age": 1.0, "polls": Pareto(1.9, 1.0)},
        {"consistency": (1.0, 1.0), "polls": "purely-random"},
    ):
        with pytest.raises(InfeasibleError, match=r"cannot be reached by any finite sync rate"):
            sync_rate_for(1.0, **impossible)


def test_bad_questions() -> None:
    with pytest.raises(InputError, match=r"targets 0 must be exactly one"):
        sync_rate_for(1.0)
    with pytest.raises(InputError, match=r"targets 2 must be exactly one"):
        sync_rate_for(1.0, freshness=0.5, age=1.0)
    with pytest.raises(InputError, match=r"Decay\(rate=1.0\) must not decrease with age for sync_rate_for"):
        sync_rate_for(1.0, staleness=(Decay(1.0), 0.1))
    with pytest.raises(InputError, match=r"freshness 1.2 must be"):
        sync_rate_for(1.0, freshness=1.2)
    with pytest.raises(InputError, match=r"process 'often' is not known"):
        sync_rate_for(1.0, freshness=0.5, polls="often")  # type: ignore[arg-type]


def test_speedup_lies_between_one_and_the_factor() -> None:
    assert speedup(1.0, 1.0) == pytest.approx(2 * (1 - math.exp(-0.5)) / (1 - math.exp(-1)), rel=1e-12)
    for changes in CHANGES:
        for rate in (1e-4, 0.5, 3.0, 100.0):
            for factor in (1.5, 2.0, 10.0):
                assert 1 - 1e-10 <= speedup(changes, rate, factor) <= factor * (1 + 1e-10)
    assert speedup(1.0, 1e-6) == pytest.approx(2.0, rel=1e-5)
    assert speedup(1.0, 1e6) == pytest.approx(1.0, rel=1e-5)


def test_poisson_is_pessimistic_for_bursts_and_optimistic_for_even_changes() -> None:
    assert poisson_overestimate(Poisson(2.0), 0.8) == pytest.approx(1.0, rel=1e-12)
    assert poisson_overestimate(Constant(0.5), 0.8) < 1 < poisson_overestimate(Pareto(1.5, 0.93), 0.8)
    # the heavier the tail, the more; [003 sect. VI-B] with the mean as printed, alpha = 1.4
    tails = [poisson_overestimate(Pareto(a, 1.0), 0.8) for a in (5.0, 3.0, 2.0, 1.5, 1.2)]
    assert tails == sorted(tails)
    printed = sync_rate_for(1 / 1.86, freshness=0.8) / sync_rate_for(Pareto(1.4, 0.93), freshness=0.8)
    assert printed == pytest.approx(1.8, abs=0.02)
