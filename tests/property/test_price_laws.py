"""Laws of the optimum, on a thousand drawn fleets: heavy tails, ties, zeros, one source, absurd budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from unstale.core import price as pricing
from unstale.core.baselines import BASELINES
from unstale.core.fleet import Fleet
from unstale.core.market import Market
from unstale.core.penalties import Constant as Indicator
from unstale.core.plan import Plan
from unstale.core.price import least_budget, needed, plan
from unstale.core.processes import Constant, Pareto, Weibull
from unstale.core.values import Mixed, PoissonAge, PoissonFreshness, ProcessValue, Value, value_of
from unstale.errors import InfeasibleError, InputError

many = settings(max_examples=3 * settings.default.max_examples)
few = settings()

#: numbers over twenty orders of magnitude, with exact ties and zeros among them
magnitude = st.one_of(st.sampled_from([1.0, 1.0, 2.0, 0.5, 1e-6, 1e6]), st.floats(-10, 10).map(lambda e: 10.0**e))
or_zero = st.one_of(magnitude, st.just(0.0))


@st.composite
def columns(draw: st.DrawFn, most: int = 12) -> dict[str, np.ndarray]:
    n = draw(st.integers(1, most))
    column = lambda kind: np.array(draw(st.lists(kind, min_size=n, max_size=n)))  # noqa: E731
    return {"rate": column(or_zero), "weight": column(or_zero), "cost": column(magnitude)}


OBJECTIVES = [(o, k) for o in ("freshness", "age", "missed", "lag") for k in ("fixed", "random", "purely-random")]
objectives = st.sampled_from(OBJECTIVES)
budgets = st.floats(-12, 12).map(lambda e: 10.0**e)


def total(made: Plan) -> float:
    """Σ weight·staleness over what matters."""
    weight = np.broadcast_to(np.asarray(made.fleet.weights(), float), made.sync_rate.shape)
    return float(np.dot(weight, np.where(weight > 0, made.staleness, 0.0)))


def assert_optimal(made: Plan, tolerance: float = 1e-9) -> None:
    assert made.certificate.worst <= tolerance, made.certificate
    assert np.all(made.sync_rate >= 0)
    if made.price > 0:
        assert made.spent == pytest.approx(made.budget, rel=1e-9)


@many
@given(columns(), objectives, budgets)
def test_optimality_conditions_hold(c: dict[str, np.ndarray], objective: tuple[str, str], budget: float) -> None:
    value = value_of(objective[0], c["rate"], order=objective[1])
    assert_optimal(plan(Fleet.of(value, weight=c["weight"], cost=c["cost"]), budget))


@many
@given(columns(), budgets)
def test_fused_passes_and_general_solver_agree(c: dict[str, np.ndarray], budget: float) -> None:
    fleet = Fleet.of(PoissonFreshness(c["rate"]), weight=c["weight"], cost=c["cost"])
    fast, general = plan(fleet, budget), pricing._meet(Market(fleet), budget)
    assert_optimal(fast)
    assert_optimal(general)
    assert fast.price == pytest.approx(general.price, rel=1e-8)
    assert total(fast) == pytest.approx(total(general), rel=1e-9, abs=1e-12 * float(np.sum(c["weight"])))


@many
@given(columns(), objectives, budgets, st.sampled_from(sorted(BASELINES)))
def test_no_baseline_does_better(
    c: dict[str, np.ndarray], objective: tuple[str, str], budget: float, rule: str
) -> None:
    value = value_of(objective[0], c["rate"], order=objective[1])
    fleet = Fleet.of(value, weight=c["weight"], cost=c["cost"])
    rates = BASELINES[rule](c["rate"], c["weight"], c["cost"], budget)
    ours, theirs = total(plan(fleet, budget)), total(Plan(fleet, budget, 0.0, None, rates))
    assert ours <= theirs * (1 + 1e-9) + 1e-300


@few
@given(columns(), objectives, budgets, st.floats(-3, 3).map(lambda e: 10.0**e))
def test_scaling_time_scales_the_rates(
    c: dict[str, np.ndarray], objective: tuple[str, str], budget: float, k: float
) -> None:
    value, faster = (value_of(objective[0], c["rate"] * f, order=objective[1]) for f in (1.0, k))
    one = plan(Fleet.of(value, weight=c["weight"], cost=c["cost"]), budget)
    two = plan(Fleet.of(faster, weight=c["weight"], cost=c["cost"]), budget * k)
    assert two.fleet_staleness * {"age": k, "lag": k}.get(objective[0], 1.0) == pytest.approx(
        one.fleet_staleness, rel=1e-8
    )
    # Near abandonment rates are a matter of rounding, what they achieve is not.
    assert two.spent == pytest.approx(one.spent * k, rel=1e-8)


@few
@given(columns(), budgets, st.floats(-3, 3).map(lambda e: 10.0**e))
def test_scaling_weights_scales_only_the_price(c: dict[str, np.ndarray], budget: float, k: float) -> None:
    one, two = (plan(Fleet.of(PoissonAge(c["rate"]), weight=c["weight"] * f, cost=c["cost"]), budget) for f in (1.0, k))
    assert two.sync_rate == pytest.approx(one.sync_rate, rel=1e-9)
    assert two.price == pytest.approx(one.price * k, rel=1e-9)


@few
@given(columns(), objectives, budgets, st.randoms(use_true_random=False))
def test_permuting_sources_permutes_the_plan(
    c: dict[str, np.ndarray], objective: tuple[str, str], budget: float, random: Any
) -> None:
    order = list(range(len(c["rate"])))
    random.shuffle(order)
    one, two = (
        plan(
            Fleet.of(
                value_of(objective[0], c["rate"][rows], order=objective[1]),
                weight=c["weight"][rows],
                cost=c["cost"][rows],
            ),
            budget,
        )
        for rows in (slice(None), order)
    )
    assert two.price == pytest.approx(one.price, rel=1e-9)
    assert two.fleet_staleness == pytest.approx(one.fleet_staleness, rel=1e-9)


@few
@given(columns(), objectives, budgets, st.floats(1.0, 100.0))
def test_more_budget_never_hurts(
    c: dict[str, np.ndarray], objective: tuple[str, str], budget: float, more: float
) -> None:
    fleet = Fleet.of(value_of(objective[0], c["rate"], order=objective[1]), weight=c["weight"], cost=c["cost"])
    small, large = plan(fleet, budget), plan(fleet, budget * more)
    assert total(large) <= total(small) * (1 + 1e-12) + 1e-300
    assert large.price <= small.price * (1 + 1e-9)


@few
@given(columns(), objectives, st.floats(-3, 3).map(lambda e: 10.0**e))
def test_price_is_the_derivative_of_the_optimum(
    c: dict[str, np.ndarray], objective: tuple[str, str], budget: float
) -> None:
    """Total staleness is convex in the budget, so its slope to either side brackets the price."""
    fleet = Fleet.of(value_of(objective[0], c["rate"], order=objective[1]), weight=c["weight"], cost=c["cost"])
    step = 1e-3 * budget
    less, here, more = (plan(fleet, b) for b in (budget - step, budget, budget + step))
    noise = 1e-12 * max(total(less), 1e-300) / step
    assert (total(here) - total(more)) / step <= here.price * (1 + 1e-6) + noise
    assert (total(less) - total(here)) / step >= here.price * (1 - 1e-6) - noise


@few
@given(columns(), objectives, budgets)
def test_target_is_the_inverse_of_budget(c: dict[str, np.ndarray], objective: tuple[str, str], budget: float) -> None:
    fleet = Fleet.of(value_of(objective[0], c["rate"], order=objective[1]), weight=c["weight"], cost=c["cost"])
    made = plan(fleet, budget)
    level = made.fleet_staleness
    assume(made.price > 0 and 1e-9 < level < (0.999 if objective[0] == "freshness" else 1e9))
    back = least_budget(fleet, level)
    assert back.fleet_staleness == pytest.approx(level, rel=1e-9)
    # Where a poll removes next to nothing of the staleness, its last digits are many polls.
    blur = 1e-11 * level * float(np.sum(c["weight"])) / made.price
    assert back.spent <= budget * (1 + 1e-9) + blur


@st.composite
def constrained(draw: st.DrawFn) -> tuple[Fleet, float]:
    c = draw(columns(most=10))
    n, hosts = len(c["rate"]), draw(st.integers(1, 3))
    kinds: list[Value] = [
        PoissonFreshness(c["rate"]),
        PoissonAge(c["rate"]),
        ProcessValue(Pareto(3.0, 1.0), c["rate"], Indicator()),
        ProcessValue(Constant(1.0), c["rate"], Indicator()),
        ProcessValue(Weibull(0.7, 1.0), c["rate"], Indicator()),
    ]
    half = n // 2
    kinds.append(
        Mixed([(np.arange(half), kinds[0].take(slice(0, half))), (np.arange(half, n), kinds[3].take(slice(half, n)))])
    )
    shortest = np.array(draw(st.lists(st.sampled_from([0.0, 1e-3, 0.1]), min_size=n, max_size=n)))
    longest = np.array(draw(st.lists(st.sampled_from([np.inf, 10.0, 1e4]), min_size=n, max_size=n)))
    pins = np.array(draw(st.lists(st.sampled_from([np.nan, np.nan, np.nan, 0.5, 0.0]), min_size=n, max_size=n)))
    # With surcharges, price·cost + surcharge loses the digits by which costs at one host differ, so they are
    # kept within four orders of magnitude; alone they may differ by twenty.
    cost = np.array(draw(st.lists(st.floats(-2, 2).map(lambda e: 10.0**e), min_size=n, max_size=n)))
    fleet = Fleet.of(
        draw(st.sampled_from(kinds)),
        weight=c["weight"],
        cost=cost if draw(st.booleans()) else None,
        host=np.array(draw(st.lists(st.integers(0, hosts - 1), min_size=n, max_size=n))),
        cap=np.array(draw(st.lists(st.sampled_from([0.3, 2.0, 50.0, np.inf]), min_size=hosts, max_size=hosts))),
        shortest=shortest if draw(st.booleans()) else None,
        longest=longest if draw(st.booleans()) else None,
        fixed=pins if draw(st.booleans()) else None,
    )
    return fleet, draw(budgets)


@few
@given(constrained())
def test_optimality_conditions_hold_under_constraints(problem: tuple[Fleet, float]) -> None:
    fleet, budget = problem
    if fleet.least_rate is not None:
        crowded = fleet.host is not None and np.any(
            np.bincount(fleet.host, fleet.least_rate, len(fleet.cap)) > fleet.cap * (1 + 1e-12)
        )
        if crowded or needed(fleet) > budget * (1 + 1e-12):
            with pytest.raises(InfeasibleError, match="cannot meet the longest intervals"):
                plan(fleet, budget)
            return
    made = plan(fleet, budget)
    assert_optimal(made)
    if fleet.least_rate is not None:
        assert np.all(made.sync_rate >= fleet.least_rate * (1 - 1e-12))
    if fleet.most_rate is not None:
        assert np.all(made.sync_rate <= fleet.most_rate * (1 + 1e-12))


@pytest.mark.parametrize("budget", [np.nan, np.inf, -1.0, "much"])
def test_bad_budgets_are_refused(budget: Any) -> None:
    with pytest.raises(InputError, match=r"budget .* must be a finite number at least 0"):
        plan(Fleet.of(PoissonFreshness([1.0])), budget)
