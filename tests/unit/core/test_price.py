"""The solver against others' solvers, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaincinv

from unstale.core.fleet import Fleet
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Saturating
from unstale.core.plan import Plan
from unstale.core.price import least_budget, needed, plan
from unstale.core.processes import Constant, Poisson
from unstale.core.values import PoissonAge, PoissonFreshness, ProcessValue
from unstale.errors import InfeasibleError, InputError


def drawn(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "rate": rng.lognormal(0, 2, n),
        "weight": rng.pareto(1.5, n) + 0.1,
        "cost": rng.uniform(0.5, 3, n),
        "host": rng.integers(0, max(n // 25, 1), n),
    }


def test_equals_scipy_on_a_heavy_tailed_fleet() -> None:
    c, budget = drawn(2000), 1500.0

    def rates(price: float) -> np.ndarray:
        s = price * c["cost"] * c["rate"] / c["weight"]
        x = gammaincinv(2.0, np.minimum(s, 1.0))
        return np.where(s < 1, c["rate"] / x, 0.0)

    price = brentq(lambda p: np.dot(c["cost"], rates(p)) - budget, 1e-6, 1e6, xtol=1e-300, rtol=1e-14)
    made = plan(Fleet.of(PoissonFreshness(c["rate"]), weight=c["weight"], cost=c["cost"]), budget)
    assert made.price == pytest.approx(price, rel=1e-11)
    assert made.sync_rate == pytest.approx(rates(price), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_never_worse_than_cvxpy_with_caps_costs_and_bounds(seed: int) -> None:
    """min Σ weight·(1 − (f − z)/rate), z ≥ f·e^(−rate/f): an exponential cone per source."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    n, c = 60, drawn(60, seed)
    c["rate"] = np.clip(c["rate"], 0.05, 20.0)
    hosts = int(c["host"].max()) + 1
    cap, low, high, budget = np.full(hosts, 6.0), 0.01, 5.0, 25.0
    f, z = cp.Variable(n), cp.Variable(n)
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(c["weight"], 1 - cp.multiply(1 / c["rate"], f - z)))),
        [
            cp.ExpCone(-c["rate"], f, z),
            c["cost"] @ f <= budget,
            f >= low,
            f <= high,
            *[cp.sum(f[np.flatnonzero(c["host"] == h)]) <= cap[h] for h in range(hosts)],
        ],
    )
    theirs = problem.solve(solver=cp.CLARABEL)
    fleet = Fleet.of(
        PoissonFreshness(c["rate"]),
        weight=c["weight"],
        cost=c["cost"],
        host=c["host"],
        cap=cap,
        shortest=1 / high,
        longest=1 / low,
    )
    made = plan(fleet, budget)
    assert made.certificate.worst < 1e-9
    ours = made.fleet_staleness * c["weight"].sum()
    assert ours <= theirs * (1 + 1e-7)
    assert ours == pytest.approx(theirs, rel=1e-5)
    binding = np.bincount(c["host"], made.sync_rate) > cap * (1 - 1e-9)
    assert binding.any()
    assert np.all(made.host_price[binding] >= 0)
    assert np.all(made.host_price[~binding] == 0)


def test_residual_budget_goes_to_the_marginal_source() -> None:
    """No float price gives a source between rate/40 and 0; the budget is spent all the same."""
    made = plan(Fleet.of(PoissonFreshness([1.0, 100.0])), 1e-3)
    assert made.spent == pytest.approx(1e-3, rel=1e-12)
    assert made.sync_rate[0] == pytest.approx(1e-3)
    equal = plan(Fleet.of(PoissonFreshness([3.0] * 4)), 0.01)
    assert equal.sync_rate == pytest.approx([0.0025] * 4)
    assert equal.certificate.worst < 1e-12


def test_flat_value_is_filled_like_a_knapsack() -> None:
    """Changes every u exactly: staleness is linear in the rate up to 1/u, so sources join one after the other."""
    value = ProcessValue(Constant(1.0), [1.0, 1.0], Indicator())
    made = plan(Fleet.of(value, weight=[2.0, 1.0]), 1.5)
    assert made.spent == pytest.approx(1.5)
    assert made.certificate.worst < 1e-9
    # The lighter source only joins once the heavier one has left the linear part: 2·φ = 1·φ(∞).
    assert made.sync_rate.tolist() == pytest.approx([np.sqrt(2), 1.5 - np.sqrt(2)])


def test_nothing_to_gain_leaves_the_budget_unspent_at_price_zero() -> None:
    for fleet in (Fleet.of(PoissonFreshness([0.0, 0.0])), Fleet.of(PoissonFreshness([1.0]), weight=0.0)):
        made = plan(fleet, 7.0)
        assert (made.price, made.spent) == (0.0, 0.0)
        assert made.certificate.worst == 0.0
    capped = plan(Fleet.of(PoissonFreshness([1.0, 2.0]), shortest=[1.0, 0.5]), 100.0)
    assert capped.sync_rate.tolist() == [1.0, 2.0]
    assert (capped.price, capped.certificate.worst) == (0.0, 0.0)


def test_no_budget_polls_nothing_and_names_the_worth_of_the_first_poll() -> None:
    made = plan(Fleet.of(PoissonFreshness([1.0, 4.0]), weight=[1.0, 8.0]), 0.0)
    assert made.spent == 0.0
    assert made.price == pytest.approx(2.0)
    assert made.abandoned.all()


def test_floors_that_need_more_than_the_budget_are_refused_with_the_least_one() -> None:
    fleet = Fleet.of(PoissonFreshness([1.0, 1.0]), cost=[1.0, 3.0], longest=[2.0, 4.0])
    with pytest.raises(
        InfeasibleError, match=r"budget 1 cannot meet the longest intervals, which need 1\.25"
    ) as caught:
        plan(fleet, 1.0)
    assert caught.value.least_budget == 1.25 == needed(fleet)
    assert plan(fleet, 1.25).sync_rate.tolist() == [0.5, 0.25]


def test_floors_above_a_host_cap_are_refused() -> None:
    fleet = Fleet.of(PoissonFreshness([1.0, 1.0]), host=[0, 0], cap=[0.4], longest=2.0)
    with pytest.raises(InfeasibleError, match=r"cap of host 0 0\.4 cannot meet"):
        plan(fleet, 10.0)


def test_fixed_sources_keep_their_rate_and_the_rest_is_optimal() -> None:
    rate = [1.0, 2.0, 3.0]
    made = plan(Fleet.of(PoissonFreshness(rate), fixed=[np.nan, 0.7, np.nan]), 4.0)
    rest = plan(Fleet.of(PoissonFreshness([1.0, 3.0])), 3.3)
    assert made.sync_rate[1] == 0.7
    assert made.sync_rate[[0, 2]] == pytest.approx(rest.sync_rate)


def test_unit_costs_make_the_host_price_the_larger_of_two() -> None:
    """At a host whose cap binds, sources see the price at which the cap alone would be spent."""
    rate, cap = np.array([1.0, 2.0, 3.0, 4.0]), 1.0
    made = plan(Fleet.of(PoissonFreshness(rate), host=[0, 0, 1, 1], cap=[cap, np.inf]), 5.0)
    alone = plan(Fleet.of(PoissonFreshness(rate[:2])), cap)
    assert made.host_price is not None
    assert made.price + made.host_price[0] == pytest.approx(alone.price, rel=1e-10)
    assert made.host_price[1] == 0.0


def test_least_budget_refuses_what_bounds_forbid() -> None:
    fleet = Fleet.of(PoissonFreshness([1.0]), shortest=1.0)
    with pytest.raises(InputError, match=r"target staleness 0\.1 cannot be reached"):
        least_budget(fleet, 0.1)
    for target in (1e-12, 1e-3, 0.999):
        assert least_budget(Fleet.of(PoissonFreshness([1.0, 30.0])), target).fleet_staleness == pytest.approx(target)
    assert least_budget(Fleet.of(PoissonAge([1.0, 3.0])), 0.2).fleet_staleness == pytest.approx(0.2)


def test_bounded_penalty_starves_where_the_theory_says() -> None:
    """φ(∞) = w(∞)·E[A] + ∫(w(∞) − w) = 1/rate + scale for w = 1 − e^(−x/scale)."""
    value = ProcessValue(Poisson(1.0), [1.0, 2.0], Saturating(3.0))
    assert value.limit() == pytest.approx([4.0, 3.5], rel=1e-9)
    assert plan(Fleet.of(value), 1e-4).abandoned.tolist() == [False, True]


def test_certificate_sees_a_plan_that_is_not_optimal() -> None:
    fleet = Fleet.of(PoissonFreshness([1.0, 2.0, 5.0]))
    good = plan(fleet, 3.0)
    moved = good.sync_rate + np.array([0.01, -0.01, 0.0])
    assert Plan(fleet, 3.0, good.price, None, moved).certificate.stationary > 1e-3
    assert Plan(fleet, 3.0, good.price, None, good.sync_rate * 1.01).certificate.budget == pytest.approx(0.01)
    assert Plan(fleet, 3.0, good.price * 0.2, None, good.sync_rate).certificate.worst > 0.5
    starved = Fleet.of(PoissonFreshness([1.0, 1.0]))
    assert Plan(starved, 2.0, 0.2, None, np.array([2.0, 0.0])).certificate.at_bounds > 1


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"weight": [1.0, -1.0]}, r"weight\[1\] -1.0 must be a finite number at least 0"),
        ({"weight": [1.0, np.nan]}, r"weight\[1\] nan must be"),
        ({"cost": [0.0, 1.0]}, r"cost\[0\] 0.0 must be a finite number above 0"),
        ({"weight": [1.0]}, r"weight with shape \(1,\) must have 2 values"),
        ({"shortest": 3.0, "longest": 2.0}, r"longest interval\[0\] 2 is below the shortest interval 3"),
        ({"host": [0, 5], "cap": [1.0]}, "host row 5 must be one of the 1 caps"),
    ],
)
def test_bad_columns_are_refused(columns: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Fleet.of(PoissonFreshness([1.0, 1.0]), **columns)  # type: ignore[arg-type]


def test_rates_go_where_the_caller_wants_them() -> None:
    c = drawn(500)
    simple = Fleet.of(PoissonFreshness(c["rate"]), weight=c["weight"])
    general = Fleet.of(PoissonAge(c["rate"]), weight=c["weight"], cost=c["cost"])
    for fleet in (simple, general):
        room, usual = np.full(500, np.nan), plan(fleet, 300.0)
        made = plan(fleet, 300.0, out=room)
        assert made.sync_rate is room
        assert made.price == usual.price
        assert room.tolist() == usual.sync_rate.tolist()
        with pytest.raises(InputError, match="out of shape"):
            plan(fleet, 300.0, out=np.empty(499))
