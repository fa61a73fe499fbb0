"""The fast pass and the price it finds, against SciPy, mpmath and the golden fleets."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import gammaincinv

from support.golden import Entry, golden
from unstale.core.checks import Floats
from unstale.core.kernels import expected, passes, plan, rates, root, solve, spent
from unstale.errors import InputError

BIG = passes.COMPILED_FROM + 12_345


def fleet(size: int, seed: int = 1) -> tuple[Floats, Floats, Floats]:
    """Change rates and weights with heavy tails, costs within a factor of ten or so."""
    rng = np.random.default_rng(seed)
    rate = np.exp(2 * rng.standard_normal(size))
    return rate, rng.pareto(1.2, size) + 0.5, np.exp(0.5 * rng.standard_normal(size))


def by_scipy(price: float, rate: Floats, weight: Floats, cost: Floats) -> Floats:
    share = price * (cost * rate / weight)  # rounded as the pass does: near 1 an ulp of it shows in the rate
    return np.where(share < 1, rate / gammaincinv(2, np.where(share < 1, share, 0.5)), 0.0)


@pytest.fixture
def numpy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "numba_pass", lambda: None)


# ---- one pass ----


@pytest.mark.parametrize("price", [1e-9, 0.01, 0.4, 30.0])
@pytest.mark.parametrize("size", [1, 1000, 40_000])
def test_a_pass_agrees_with_scipy(size: int, price: float) -> None:
    rate, weight, cost = fleet(size)
    want = by_scipy(price, rate, weight, cost)
    np.testing.assert_allclose(rates(price, rate, weight, cost), want, rtol=2e-14)
    assert spent(price, rate, weight, cost)[0] == pytest.approx(math.fsum(cost * want), rel=1e-14)
    got = expected(price, rate, weight, cost)
    x = rate[want > 0] / want[want > 0]
    assert got.spent == pytest.approx(math.fsum(cost * want), rel=1e-14)
    assert got.freshness == pytest.approx(math.fsum(weight[want > 0] * -np.expm1(-x) / x), rel=1e-13)
    assert got.polled == np.count_nonzero(want)


def test_the_derivative_is_the_derivative() -> None:
    rate, weight, cost = [1.0, 2.0, 5.0, 9.0], [1.0, 3.0, 2.0, 1.0], [1.0, 0.5, 2.0, 1.0]

    def total(price: Any) -> Any:
        shares = [price * c * r / w for r, w, c in zip(rate, weight, cost, strict=True)]
        gaps = [mpmath.findroot(lambda x, s=s: 1 - (1 + x) * mpmath.exp(-x) - s, 1) for s in shares if s < 1]
        return sum(c * r / x for r, c, x in zip(rate, cost, gaps, strict=False))

    with mpmath.workdps(40):
        want = mpmath.diff(total, mpmath.mpf("0.1"))
    assert spent(0.1, rate, weight, cost)[1] == pytest.approx(float(want), rel=1e-13)


@pytest.mark.parametrize("with_cost", [False, True])
def test_compiled_and_numpy_agree(with_cost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert passes.warm()
    assert passes.compiled_for(BIG) is not None
    rate, weight, costs = fleet(BIG)
    cost = costs if with_cost else None
    rate[::7], weight[3::11] = 0.0, 0.0
    for price in (1e-4, 0.5, 40.0):
        compiled = spent(price, rate, weight, cost), expected(price, rate, weight, cost)
        f = rates(price, rate, weight, cost)
        with monkeypatch.context() as patch:
            patch.setattr(passes, "numba_pass", lambda: None)
            plain = spent(price, rate, weight, cost), expected(price, rate, weight, cost)
            np.testing.assert_allclose(rates(price, rate, weight, cost), f, rtol=1e-14)
        np.testing.assert_allclose(compiled[0], plain[0], rtol=2e-14)
        np.testing.assert_allclose(compiled[1], plain[1], rtol=2e-14)
        assert np.all(f[::7] == 0)
        assert np.all(f[3::11] == 0)


def test_a_first_plan_of_a_million_loads_no_compiler() -> None:
    """By NumPy it is found sooner than numba is imported; a program that plans often, or has more, loads it."""
    code = (
        "import sys, numpy as np; from unstale.core.kernels import passes, spent; rate = np.ones(1_000_000); "
        "spent(0.1, rate, rate); assert 'numba' not in sys.modules; "
        "assert passes.LOADED_FROM <= 10_000_000 and passes.warm() and passes.compiled_for(1_000_000)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_sum_does_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rate, weight, cost = fleet(BIG)
    compiled = passes.numba_pass()
    sums = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr(compiled, "THREADS", threads)
        sums.add(spent(0.3, rate, weight, cost))
    assert len(sums) == 1
    want = math.fsum(cost * by_scipy(0.3, rate, weight, cost))
    assert sums.pop()[0] == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("size", [8, BIG])
def test_extremes_of_the_doubles(size: int) -> None:
    """Rates, weights and costs whose product leaves the doubles, with a rate that does not."""
    rate = np.ones(size)
    weight = np.ones(size)
    cost = np.ones(size)
    rate[:8] = [1e-320, 1e-300, 1e300, 1e300, 1e-300, 1e-310, 1e150, 1e-200]
    weight[:8] = [1e-320, 1e300, 1e300, 1e-300, 1e-300, 1e-5, 1e200, 1e-300]
    cost[:8] = [1.0, 1e-300, 1e-10, 1.0, 0.5, 1.0, 1e-300, 1e-200]
    price = 0.3
    got = rates(price, rate, weight, cost)
    with mpmath.workdps(50):
        for i in range(8):
            r, w, c = (mpmath.mpf(float(a[i])) for a in (rate, weight, cost))
            s = mpmath.mpf(price) * c * r / w
            if s >= 1:
                assert got[i] == 0.0
                continue
            x = mpmath.sqrt(2 * s) * (1 + mpmath.sqrt(2 * s) / 3)
            if s > 1e-60:
                x = mpmath.findroot(lambda x, s=s: 1 - (1 + x) * mpmath.exp(-x) - s, x)
            want = float(r / x)
            assert got[i] == pytest.approx(want, rel=1e-12, abs=1e-323), i
    assert spent(price, rate, weight, cost)[0] == pytest.approx(math.fsum(cost * got), rel=1e-13)


def test_out_is_written_in_place() -> None:
    rate, weight, _ = fleet(100)
    out = np.empty(100)
    assert rates(0.2, rate, weight, None, out) is out
    with pytest.raises(InputError, match="out of shape"):
        rates(0.2, rate, weight, None, np.empty(99))


@pytest.mark.parametrize("size", [50_000, BIG])
@pytest.mark.parametrize(("column", "bad"), [(0, -1.0), (0, np.nan), (1, np.inf), (1, -2.0), (2, 0.0), (2, np.nan)])
def test_what_is_invalid_is_named(size: int, column: int, bad: float) -> None:
    columns = [np.ones(size), np.ones(size), np.ones(size)]
    columns[column][40_000] = bad
    name = ("change_rate", "weight", "cost")[column]
    for call in (spent, rates, expected, lambda p, *c: solve(*c, p)):
        with pytest.raises(InputError, match=rf"{name}\[40000\] {bad}"):
            call(0.5, *columns)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"weight of shape \(2,\) must have change_rate's shape \(3,\)"):
        spent(1.0, [1, 2, 3], [1, 2])


# ---- the price ----


@golden("C.T5.b")
def test_table_5(entry: Entry) -> None:
    rate = np.array(entry.inputs["lambda"], float)
    found = solve(rate, np.ones(5), None, entry.inputs["total"], rtol=1e-13)
    entry.check(rates(found.price, rate, np.ones(5)).tolist())


@golden("G.alloc.fresh")
def test_the_golden_fleet(entry: Entry) -> None:
    rate, weight = np.array(entry.inputs["lambda"], float), np.array(entry.inputs["q"], float)
    found = solve(rate, weight, None, entry.inputs["budget"], rtol=1e-12)
    objective = weight.sum() - expected(found.price, rate, weight).freshness
    entry.check({"f": rates(found.price, rate, weight).tolist(), "nu": found.price, "objective": objective})


@pytest.mark.parametrize(("size", "share"), [(3000, 0.01), (3000, 0.3), (3000, 5.0), (70_000, 0.3)])
def test_the_price_agrees_with_brentq(size: int, share: float) -> None:
    rate, weight, cost = fleet(size)
    budget = share * size
    found = solve(rate, weight, cost, budget)
    want = brentq(lambda p: np.sum(cost * by_scipy(p, rate, weight, cost)) - budget, 1e-4, 1e3, rtol=1e-13)
    assert found.converged
    assert found.price == pytest.approx(want, rel=3e-9)
    assert np.sum(cost * rates(found.price, rate, weight, cost)) == pytest.approx(budget, rel=1.1e-9)


@pytest.mark.parametrize("share", [0.01, 0.3, 5.0])
def test_a_big_fleet_takes_few_passes(share: float) -> None:
    rate, weight, cost = fleet(BIG)
    found = solve(rate, weight, cost, share * BIG)
    assert found.converged
    assert found.passes <= 4
    assert spent(found.price, rate, weight, cost)[0] == found.spent
    again = solve(rate, weight, cost, share * BIG, start=found.price)
    assert (again.price, again.passes) == (found.price, 1)


@pytest.mark.parametrize("size", [100, 70_000, BIG])
def test_a_plan_is_the_price_and_its_rates(size: int) -> None:
    rate, weight, cost = fleet(size)
    weight[::9] = 0.0
    out = np.empty(size)
    found, f = plan(rate, weight, cost, 0.3 * size, out=out)
    assert f is out
    assert found.converged
    assert found.price == pytest.approx(solve(rate, weight, cost, 0.3 * size).price, rel=3e-9)
    np.testing.assert_array_equal(f, rates(found.price, rate, weight, cost))
    assert math.fsum(cost * f) == pytest.approx(0.3 * size, rel=1.1e-9)
    assert found.spent == pytest.approx(math.fsum(cost * f), rel=1e-13)


def test_a_plan_without_a_price() -> None:
    found, f = plan([0.0, 1.0], [1.0, 0.0], None, 1.0)
    assert not found.converged
    assert f.tolist() == [0.0, 0.0]
    found, f = plan([1.0, 1.0], [1.0, 1.0], None, 0.01)
    assert (found.price, found.converged, f.tolist()) == (1.0, False, [0.0, 0.0])


def test_the_numpy_way_finds_the_same_price(numpy_only: None) -> None:
    rate, weight, cost = fleet(BIG)
    found = solve(rate, weight, cost, 0.3 * BIG)
    assert abs(math.fsum(cost * by_scipy(found.price, rate, weight, cost)) / (0.3 * BIG) - 1) < 1.1e-9


EDGES = {
    "one source": ([2.0], [3.0], None),
    "equal sources": (np.ones(1000), np.ones(1000), None),
    "many equal sources": (np.ones(70_000), np.ones(70_000), None),
    "half of them idle": (np.tile([0.0, 1.0], 40_000), np.ones(80_000), None),
    "squeezed": (1 + 1e-3 * np.random.default_rng(0).random(70_000), np.ones(70_000), None),
    "a giant": (np.append(np.ones(999), 1e9), np.append(np.ones(999), 1e9), None),
    "all sizes": (
        10.0 ** np.linspace(-300, 300, 500),
        10.0 ** np.linspace(300, -300, 500)[::-1],
        np.full(500, 1e-9),
    ),
}


@pytest.mark.parametrize("budget", [1e-300, 1e-6, 1e-3, 0.5, 40.0, 1e4, 1e9, 1e120])
@pytest.mark.parametrize("name", EDGES)
def test_any_fleet_at_any_budget(name: str, budget: float) -> None:
    """Met, or between two neighbouring doubles whose mixture meets it."""
    rate, weight, cost = EDGES[name]
    found = solve(rate, weight, cost, budget)
    assert found.passes <= 150
    if found.converged:
        assert spent(found.price, rate, weight, cost)[0] == pytest.approx(budget, rel=1e-9)
        return
    below = math.nextafter(found.price, 0.0)
    assert spent(found.price, rate, weight, cost)[0] == found.spent < budget
    more = spent(below, rate, weight, cost)[0] if below > 0 else math.inf
    assert more == pytest.approx(found.spent + found.jump, rel=1e-12)
    assert more > budget
    mixed = (budget - found.spent) / found.jump
    f = (1 - mixed) * rates(found.price, rate, weight, cost) + mixed * rates(below, rate, weight, cost)
    assert np.sum((1.0 if cost is None else cost) * f) == pytest.approx(budget, rel=1e-9)


numbers = st.floats(min_value=1e-30, max_value=1e30) | st.floats(min_value=0.1, max_value=10.0)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(numbers | st.just(0.0), numbers, numbers), min_size=1, max_size=8),
    st.floats(min_value=1e-60, max_value=1e60),
    numbers,
)
def test_the_search_ends_at_a_crossing(sources: list[tuple[float, float, float]], budget: float, start: float) -> None:
    rate, weight, cost = np.array(sources).T
    for guess in (None, start):
        found = solve(rate, weight, cost, budget, start=guess)
        if not np.any(rate > 0) and guess is None:
            assert (found.price, found.spent, found.converged) == (0.0, 0.0, False)
        elif found.converged:
            assert abs(spent(found.price, rate, weight, cost)[0] / budget - 1) <= 1e-9
        else:
            assert spent(found.price, rate, weight, cost)[0] <= budget
            below = math.nextafter(found.price, 0.0)
            assert below == 0.0 or spent(below, rate, weight, cost)[0] > budget


def test_an_empty_fleet_spends_nothing() -> None:
    assert spent(1.0, [], []) == (0.0, 0.0)
    found = solve([], [], None, 1.0)
    assert (found.price, found.spent, found.converged) == (0.0, 0.0, False)


@pytest.mark.parametrize("start", [1e-300, 1e-3, 1e3, 1e300])
def test_a_silly_start_only_costs_passes(start: float) -> None:
    rate, weight, cost = fleet(70_000)
    found = solve(rate, weight, cost, 7000.0, start=start)
    assert found.converged
    assert spent(found.price, rate, weight, cost)[0] == pytest.approx(7000.0, rel=1e-9)


def test_a_budget_beyond_the_doubles() -> None:
    found = solve([1.0], [1.0], None, 1e200)
    assert (found.price, found.converged, found.jump) == (5e-324, False, math.inf)


def test_marginal_sources_are_the_ones_near_abandonment() -> None:
    rate, weight, cost = fleet(70_000)
    columns = passes.PassColumns.of(rate, weight, cost)
    price = 0.3
    marginal = root._marginal(price, columns)
    assert marginal is not None
    near = np.abs(price * cost * rate / weight - 1) < root.MARGIN
    np.testing.assert_array_equal(marginal.change_rate, rate[near])
    np.testing.assert_array_equal(marginal.cost, cost[near])
