"""Every search ends, and what overflows is refused where it enters, with the limit named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unstale
from unstale.core import price
from unstale.core.fleet import Fleet
from unstale.core.learning.learner import Learner
from unstale.core.penalties import Deadline
from unstale.core.roots.meeting import meet
from unstale.core.roots.steps import passes_zero
from unstale.core.values import UpdateValue, value_of
from unstale.core.values.curve import Curve
from unstale.errors import ConvergenceError, InputError
from unstale.lists.rows import template
from unstale.ports import Listing

LIMIT = "at most 1e\\+100"


def test_a_value_of_nothing_at_first() -> None:
    made = price.plan(Fleet.of(UpdateValue([24, 0.14, 0.03], Deadline(1 / 24))), 10)
    assert made.spent == pytest.approx(10.0, rel=1e-12)
    assert made.certificate.worst < 1e-12


def test_a_curve_of_what_is_no_number_is_no_number() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(Curve(lambda x: 0.0 * x, 2.0).value(np.array([1.0, 3.0]))).all()


@pytest.mark.parametrize("objective", ["freshness", "age", "missed", "lag"])
def test_budgets_without_measure_are_refused(objective: str) -> None:
    fleet = Fleet.of(value_of(objective, [1.0, 2.0]))
    for budget in (1e101, 1e300, 1.7e308):
        with pytest.raises(InputError, match=f"budget .* must be a finite number at least 0 and {LIMIT}"):
            price.plan(fleet, budget)
    most = price.plan(fleet, 1e100 / 4)
    assert np.isfinite(most.sync_rate).all()


@pytest.mark.parametrize("name", ["weight", "cost"])
def test_weights_and_costs_without_measure_are_refused_wherever_they_enter(name: str) -> None:
    with pytest.raises(InputError, match=rf"{name}\[1\] 1e\+308 must be .*{LIMIT}"):
        Fleet.of(value_of("freshness", [1.0, 2.0]), **{name: [1.0, 1e308]})
    with pytest.raises(InputError, match=rf"row 2 .*{name} 1e\+308 must be .*{LIMIT}"):
        unstale.plan({"id": [1, 2], "change_rate": [1.0, 2.0], name: [1.0, 1e308]}, budget=1)
    with pytest.raises(InputError, match=rf"{name} 1e\+308 must be .*{LIMIT}"):
        template({name: "1e308"}, Listing("", ""))
    with pytest.raises(InputError, match=rf"{name}\[1\] 1e\+308 must be .*{LIMIT}"):
        Learner(2, 60.0, **{name: [1.0, 1e308]})
    with pytest.raises(InputError, match=rf"row 1 .*change_rate 1e\+308 must be .*{LIMIT}"):
        unstale.plan({"id": [1], "change_rate": [1e308]}, budget=1)


@pytest.mark.parametrize("weights", [[1e308, 1e308], [1e100, 1.0], [1e-320, 1e-320], [0.0, 1.0]])
def test_the_engine_finds_a_price_whatever_its_store_holds(weights: list[float]) -> None:
    learner = Learner(2, 3600.0)
    learner.observe([0, 1], [3600.0] * 2, [True, False])
    # a store from before weights were limited is read into the columns as it is
    learner.columns.weight[:] = weights
    for guess in (1e-300, 1.0, 1e300):
        assert 0.0 < learner.price_for(1.0, 3600.0, 7200.0, guess) < math.inf


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0])
@pytest.mark.parametrize("centre", [0.0, math.inf, -math.inf, math.nan])
def test_steps_that_never_pass(answer: float, centre: float) -> None:
    asked = []
    passes_zero(lambda x: (asked.append(x), answer)[1], 0.0, centre, 0.1)
    passes_zero(lambda x: (asked.append(x), answer if x > 0.1 else 1.0)[1], 0.0, centre, 0.1)
    assert len(asked) < 500


@pytest.mark.parametrize("answer", [math.nan, math.inf, 0.0])
def test_totals_that_are_no_numbers(answer: float) -> None:
    root = meet(lambda price, _: (np.full_like(price, answer), np.full_like(price, answer)), np.ones(2), np.ones(2))
    assert root.jump.all()


wild = st.floats(-100, 99).map(lambda e: 10.0**e)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(wild, wild, wild), min_size=1, max_size=4),
    wild,
    st.sampled_from(["freshness", "age", "missed", "lag"]),
)
def test_any_fleet_within_the_limits_has_a_plan_or_a_sentence(
    rows: list[tuple[float, float, float]], budget: float, objective: str
) -> None:
    rate, weight, cost = (np.array(column) for column in zip(*rows, strict=True))
    try:
        made = price.plan(Fleet.of(value_of(objective, rate), weight=weight, cost=cost), budget)
    except (InputError, ConvergenceError):
        return
    assert np.isfinite(made.sync_rate).all()
