"""Rules to be beaten: each spends the budget, none beats the optimum, the laws are those of the papers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaincinv

from unstale.core.baselines import BASELINES, change_directed, cube_root, proportional, square_root, uniform
from unstale.errors import InputError

column = st.tuples(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))


def freshness(f: np.ndarray, rate: np.ndarray) -> np.ndarray:
    x = rate / np.maximum(f, 1e-300)
    return np.where(f > 0, -np.expm1(-x) / x, 0.0)


@pytest.mark.parametrize("name", BASELINES)
@given(st.lists(column, min_size=1, max_size=20), st.floats(1e-3, 1e3))
@settings(max_examples=50, deadline=None)
def test_every_rule_spends_the_budget(name: str, sources: list[tuple[float, float, float]], budget: float) -> None:
    rate, weight, cost = np.array(sources).T
    f = BASELINES[name](rate, weight, cost, budget)
    assert f.shape == rate.shape
    assert f.min() >= 0
    assert cost @ f == pytest.approx(budget, rel=1e-9)


def test_uniform_is_never_less_fresh_than_proportional() -> None:
    """[000 Theorem 3] on Example 1 (golden C.Ex1) and on a random fleet."""
    rng = np.random.default_rng(1)
    for rate, budget in ((np.array([4.0, 3, 2]), 9.0), (rng.lognormal(0, 2, 500), 300.0)):
        even = freshness(uniform(rate, 1, 1, budget), rate).mean()
        assert even >= freshness(proportional(rate, 1, 1, budget), rate).mean()
    assert freshness(uniform([4, 3, 2], 1, 1, 9), np.array([4.0, 3, 2])).mean() == pytest.approx(0.638099008898)


def test_change_directed_is_the_optimum_for_equal_weights() -> None:
    rng = np.random.default_rng(2)
    rate, weight, cost = rng.lognormal(0, 1, (3, 200))

    def rates(price: float) -> np.ndarray:
        s = price * cost * rate
        return np.where(s < 1, rate / gammaincinv(2, np.minimum(s, 1 - 1e-16)), 0.0)

    price = np.exp(brentq(lambda x: cost @ rates(np.exp(x)) - 50, -20, 10, xtol=1e-14))
    got = change_directed(rate, weight, cost, 50.0)
    assert got == pytest.approx(rates(price), rel=1e-7, abs=1e-9)
    assert np.array_equal(got, change_directed(rate, 1.0, cost, 50.0))


@pytest.mark.parametrize(("rule", "power"), [(square_root, 2), (cube_root, 3)])
def test_root_laws_equalise_their_marginals(rule: object, power: int) -> None:
    """Σ weight·rate/f^(power−1) is stationary: weight·rate/f^power is one multiple of cost everywhere."""
    rate, weight, cost = np.random.default_rng(3).lognormal(0, 2, (3, 50))
    f = rule(rate, weight, cost, 7.0)  # type: ignore[operator]
    marginal = weight * rate / f**power / cost
    assert marginal == pytest.approx(marginal[0], rel=1e-12)


def test_square_and_cube_root_match_golden_allocations() -> None:
    """Golden G.alloc.up1 and G.alloc.upx, to the digits printed there."""
    rate, weight = [0.3, 1, 2, 5, 9], [1, 0.5, 2, 1, 3]
    assert square_root(rate, weight, 1, 4) == pytest.approx(
        [0.205004213843, 0.264659302038, 0.748569548702, 0.836926198392, 1.94484073703], abs=1e-11
    )
    assert cube_root(rate, weight, 1, 4) == pytest.approx(
        [0.345045832881, 0.409097070906, 0.818194141811, 0.881372921149, 1.54629003325], abs=1e-11
    )


@pytest.mark.parametrize("name", BASELINES)
def test_without_anything_to_tell_sources_apart_they_are_polled_uniformly(name: str) -> None:
    assert BASELINES[name]([0, 0], [0, 0], [1, 3], 8.0) == pytest.approx([2, 2])


def test_extremes_stay_finite() -> None:
    for name in set(BASELINES) - {"change-directed"}:
        f = BASELINES[name]([1e300, 1e-300], [1e300, 1e-300], [1e300, 1e-300], 1e300)
        assert np.all(np.isfinite(f))
        assert f @ np.array([1e300, 1e-300]) == pytest.approx(1e300, rel=1e-12)


def test_columns_must_match() -> None:
    with pytest.raises(InputError, match=r"weight of shape \(3,\) must match change_rate of shape \(2,\)"):
        uniform([1, 2], [1, 2, 3], 1, 1)
    with pytest.raises(InputError, match="budget"):
        uniform([1, 2], 1, 1, 0)
