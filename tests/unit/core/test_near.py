"""The price of a fleet of millions by one pass: against exact passes, SciPy, and fleets that it must leave alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaincinv

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.kernels import near, passes, plan, root
from unstale.core.kernels.passes import PassColumns
from unstale.core.price import plan as fleet_plan
from unstale.core.values import PoissonFreshness
from unstale.errors import InputError

BIG = root.NEAR_FROM + 12_345


def fleet(size: int, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Change rates and weights with heavy tails, costs, some that never change or matter."""
    rng = np.random.default_rng(seed)
    rate, weight = np.exp(2 * rng.standard_normal(size)), rng.pareto(1.5, size) + 1.0
    rate[::7], weight[3::11] = 0.0, 0.0
    return rate, weight, np.exp(0.5 * rng.standard_normal(size))


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a fleet that is big enough for it, cut into parts as one of tens of millions is."""
    assert passes.warm()
    monkeypatch.setattr(near, "_PART", 100_000)


@pytest.mark.parametrize("share", [0.3, 0.01, 20.0])
@pytest.mark.parametrize("with_cost", [False, True])
def test_one_pass_finds_the_price_of_the_exact_ones(share: float, with_cost: bool) -> None:
    rate, weight, costs = fleet(BIG)
    cost = costs if with_cost else None
    found = near.near_price(PassColumns.of(rate, weight, cost), share * BIG)
    assert found is not None
    exact, rates = plan(rate, weight, cost, share * BIG, rtol=1e-12, start=1.01 * found[0])
    assert found[0] == pytest.approx(exact.price, rel=1e-11)
    total, slope = passes.spent_by_log(found[0], PassColumns.of(rate, weight, cost))
    assert found[1] == pytest.approx(-slope / total, rel=1e-8)
    mine, ours = plan(rate, weight, cost, share * BIG, rtol=1e-11)
    assert (mine.passes, mine.converged) == (1, True)
    assert mine.spent == pytest.approx(share * BIG, rel=1e-11)
    assert np.abs(ours - rates).max() <= 1e-10 * rates.max()


@pytest.mark.parametrize("seed", range(3))
def test_on_a_small_fleet_it_is_scipys_root(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(passes, "COMPILED_FROM", 0)
    monkeypatch.setattr(near, "_PART", 2_000)
    rate, weight, cost = fleet(20_000, seed)

    def spent(price: float) -> float:
        share = np.divide(price * cost * rate, weight, out=np.ones(rate.size), where=(weight > 0) & (rate > 0))
        share = np.where(share > 0, share, 1.0)
        return math.fsum(cost * np.where(share < 1, rate / gammaincinv(2, np.where(share < 1, share, 0.5)), 0.0))

    want = math.exp(brentq(lambda z: math.log(spent(math.exp(z)) / 5_000.0), -12.0, 5.0, xtol=1e-14, rtol=1e-15))
    found = near.near_price(PassColumns.of(rate, weight, cost), 5_000.0)
    assert found is not None
    # One source in a fleet this small is worth more than what cells are off by: SciPy's own root is a jump or none.
    assert found[0] == pytest.approx(want, rel=1e-9)


def test_it_does_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = PassColumns.of(*fleet(BIG))
    found = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr(passes.numba_pass(), "THREADS", threads)
        found.add(near.near_price(columns, 0.3 * BIG))
    assert len(found) == 1


def test_a_sample_unlike_the_fleet_is_found_out() -> None:
    rate, weight, _ = fleet(BIG)
    step = BIG // near.LEAST
    rate[::step] *= 1000.0
    budget = 0.3 * BIG
    assert near.near_price(PassColumns.of(rate, weight, None), budget) is None
    found, rates = plan(rate, weight, None, budget, rtol=1e-11)
    assert found.converged
    assert float(rates.sum()) == pytest.approx(budget, rel=1e-10)


@pytest.mark.parametrize("share", [0.3, 0.001])
def test_sources_all_alike(share: float) -> None:
    """With the smaller budget no price spends it: all are abandoned at once, and two plans are mixed."""
    rate, weight = np.ones(BIG), np.ones(BIG)
    found = near.near_price(PassColumns.of(rate, weight, None), share * BIG)
    assert (found is None) == (share == 0.001)
    made = fleet_plan(Fleet.of(PoissonFreshness(rate), weight=weight), share * BIG)
    np.testing.assert_allclose(made.sync_rate, share, rtol=1e-10)


def test_what_needs_care_is_left_to_the_exact_search() -> None:
    rate, weight, cost = fleet(BIG)
    rate[5], weight[5] = 1e-200, 1e200
    assert near.near_price(PassColumns.of(rate, weight, cost), 0.3 * BIG) is None
    assert plan(rate, weight, cost, 0.3 * BIG)[0].converged


def test_where_nothing_can_be_polled_there_is_no_price() -> None:
    rate = np.zeros(BIG)
    assert near.near_price(PassColumns.of(rate, rate + 1.0, None), 1.0) is None
    assert plan(rate, rate + 1.0, None, 1.0)[0].price == 0.0


@pytest.mark.parametrize(("column", "value"), [(0, -1.0), (0, math.nan), (1, math.inf), (2, 0.0)])
def test_what_is_invalid_is_named(column: int, value: float) -> None:
    columns = fleet(BIG)
    columns[column][7_654] = value
    with pytest.raises(InputError, match=r"\[7654\]"):
        plan(*columns, 0.3 * BIG)


def test_without_a_compiler_there_is_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = fleet(BIG)
    compiled = plan(*columns, 0.3 * BIG, rtol=1e-11)[0]
    monkeypatch.setattr(passes, "numba_pass", lambda: None)
    assert near.near_price(PassColumns.of(*columns), 0.3 * BIG) is None
    assert plan(*columns, 0.3 * BIG, rtol=1e-11)[0].price == pytest.approx(compiled.price, rel=1e-10)
