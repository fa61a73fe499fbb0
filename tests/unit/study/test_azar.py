"""Algorithms 1 and 2 of 002: optimality conditions, extremes, and the tie with a direct solver."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.optimize import minimize

from unstale.errors import InputError
from unstale.study.azar import algorithm_1, algorithm_2
from unstale.study.discrete import decaying_freshness, discrete_freshness

positive = st.floats(1e-6, 1e6)


def exact_algorithm_2(weight: list[float], rate: list[float], budget: float) -> list[mpf]:
    """The printed algorithm in 60 digits, where its subtractions are harmless."""
    with mp.workdps(60):
        w, c = [mpf(x) for x in weight], [mpf(x) for x in rate]
        total, rates = mp.fsum(mp.sqrt(a * b) for a, b in zip(w, c, strict=True)), mp.fsum(c)
        out = [mpf(0)] * len(w)
        for i in sorted(range(len(w)), key=lambda i: w[i] / c[i]):
            root = mp.sqrt(w[i] * c[i])
            if w[i] / c[i] < (total / (budget + rates)) ** 2:
                total, rates = total - root, rates - c[i]
            else:
                out[i] = root * (budget + rates) / total - c[i]
        return out


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=12), st.floats(1e-9, 1e9))
@settings(max_examples=100, deadline=None)
def test_algorithm_2_meets_the_optimality_conditions(sources: list[tuple[float, float]], budget: float) -> None:
    weight, rate = np.array(sources).T
    f = algorithm_2(weight, rate, budget)
    assert f.min() >= 0
    assert f.sum() == pytest.approx(budget, rel=1e-12)
    # The derivative of weight·f/(f + rate) is one price for all that are polled and below it for the others.
    value = weight * rate / (f + rate) ** 2
    price = value[f > 0].max()
    clear = f > 1e-9 * rate
    assert value[clear] == pytest.approx(price, rel=1e-6)
    assert np.all(value <= price * (1 + 1e-9))


@pytest.mark.parametrize("budget", [1e-12, 1e-3, 1.0, 1e3, 1e12])
def test_algorithm_2_agrees_with_sixty_digits(budget: float) -> None:
    rng = np.random.default_rng(7)
    weight, rate = rng.lognormal(0, 3, 60).tolist(), rng.lognormal(0, 3, 60).tolist()
    got, want = algorithm_2(weight, rate, budget), exact_algorithm_2(weight, rate, budget)
    assert got == pytest.approx([float(x) for x in want], rel=1e-11, abs=1e-14 * budget)


def test_equal_ratios_share_even_a_budget_far_below_the_rates() -> None:
    assert algorithm_2([1, 1, 2], [1, 1, 2], 1e-30) == pytest.approx([2.5e-31, 2.5e-31, 5e-31], rel=1e-15)
    assert algorithm_2([3, 6], [7e16, 14e16], 1.0) == pytest.approx([1 / 3, 2 / 3], rel=1e-15)


@pytest.mark.parametrize(
    ("weight", "rate", "budget", "want"),
    [
        ([1e300, 1e-300], [1e-300, 1e300], 1.0, [1.0, 0.0]),
        ([1.0, 4.0], [1e-300, 1e-300], 1e300, [1e300 / 3, 2e300 / 3]),
        ([1e-300, 1e-300], [1e300, 1e300], 2.0, [1.0, 1.0]),
    ],
)
def test_algorithm_2_at_extremes(weight: list[float], rate: list[float], budget: float, want: list[float]) -> None:
    assert algorithm_2(weight, rate, budget) == pytest.approx(want, rel=1e-14)


def test_a_rate_far_above_the_budget_does_not_drown_the_others() -> None:
    weight, rate = [1.0, 1e17, 2e17], [1e-17, 1e17, 1.9999999999999e17]
    want = [float(x) for x in exact_algorithm_2(weight, rate, 1.0)]
    assert algorithm_2(weight, rate, 1.0) == pytest.approx(want, rel=1e-3)
    assert algorithm_2(weight, rate, 1.0).sum() == pytest.approx(1, rel=1e-15)


def test_nothing_to_gain_is_split_evenly() -> None:
    assert algorithm_2([0, 0], [1, 2], 3.0).tolist() == [1.5, 1.5]
    assert algorithm_1([1, 1, 1, 1], [0, 0, 0, 0]).tolist() == [0.25] * 4


def test_algorithm_1_agrees_with_a_direct_maximiser() -> None:
    rng = np.random.default_rng(3)
    weight, chance = rng.random(6), rng.uniform(0.05, 0.95, 6)
    found = minimize(
        lambda p: -weight @ discrete_freshness(np.clip(p, 0, 1), chance),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14},
    )
    assert algorithm_1(weight, chance) == pytest.approx(found.x, abs=2e-6)


@given(st.lists(st.tuples(positive, st.floats(0.001, 1.0)), min_size=1, max_size=10))
@settings(max_examples=100, deadline=None)
def test_algorithm_1_meets_the_optimality_conditions(sources: list[tuple[float, float]]) -> None:
    weight, chance = np.array(sources).T
    p = algorithm_1(weight, chance)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, rel=1e-12)
    value = weight * chance / (p + chance * (1 - p)) ** 2
    assert value[p > 1e-9] == pytest.approx(value.max(), rel=1e-6)


def test_sources_that_always_change_share_what_is_left() -> None:
    assert algorithm_1([1, 1], [1, 1]).tolist() == [0.5, 0.5]
    nearly = algorithm_1([1.6, 2], [1 - 1e-15, 0.5])
    assert algorithm_1([1.6, 2], [1, 0.5]) == pytest.approx(nearly, rel=1e-6)
    assert algorithm_1([1e-300, 1e300], [1, 0.5]).tolist() == [0, 1]


def test_freshness_in_slots_by_its_markov_chain() -> None:
    p, c = Fraction(3, 10), Fraction(1, 5)
    # Fresh at the end of a slot: polled, or fresh before and unchanged.
    fresh = p / (1 - (1 - p) * (1 - c))
    assert discrete_freshness(0.3, 0.2) == pytest.approx(float(fresh), rel=1e-15)
    got = discrete_freshness([0, 0, 1, 1e-300], [0, 0.5, 1, 1e-300])
    assert got == pytest.approx([1, 0, 1, 0.5], rel=1e-15)


def test_decaying_freshness_by_its_sum() -> None:
    p, rate = 0.3, 0.2
    slots = np.arange(200)
    weights = p * (1 - p) ** slots
    assert decaying_freshness(p, rate) == pytest.approx(np.sum(weights * np.exp(-rate * slots)), rel=1e-13)
    inside = np.sum(weights * (np.exp(-rate * slots) - np.exp(-rate * (slots + 1))) / rate)
    assert decaying_freshness(p, rate, within_slots=True) == pytest.approx(inside, rel=1e-13)
    assert decaying_freshness([0.5, 0.5], [0, np.inf], within_slots=True).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("weight", "rate", "budget", "words"),
    [
        ([1, -1], [1, 1], 1, "weight[1] -1.0 must be a finite number at least 0"),
        ([1], [1, 2], 1, "weight of shape (1,) must be one number per source"),
        ([1], [1], 0, "budget 0.0 must be a finite number above 0"),
        ([], [], 1, "weight of shape (0,)"),
    ],
)
def test_errors_name_what_and_the_rule(weight: list[float], rate: list[float], budget: float, words: str) -> None:
    with pytest.raises(InputError) as caught:
        algorithm_2(weight, rate, budget)
    assert words in str(caught.value)


def test_probability_above_one_is_refused() -> None:
    with pytest.raises(InputError, match="change_probability"):
        algorithm_1([1], [1.5])
