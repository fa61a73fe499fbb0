"""The optimal rates of the general result (G.alloc.*) and seed 003's update penalty (Theorem 12, eqs. 69–75)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from support.golden import Entry, golden
from unstale.core.baselines import square_root
from unstale.core.fleet import Fleet
from unstale.core.penalties import Decay, Reciprocal
from unstale.core.price import plan
from unstale.core.values import UpdateValue, value_of

OBJECTIVES = {
    "fresh": ("freshness", "fixed"),
    "age": ("age", "fixed"),
    "ro": ("freshness", "random"),
    "roA": ("age", "random"),
    "pr": ("freshness", "purely-random"),
    "prA": ("age", "purely-random"),
    "up1": ("missed", "fixed"),
    "upx": ("lag", "fixed"),
}


@golden(prefix="G.alloc.")
def test_optimal_rates(entry: Entry) -> None:
    objective, order = OBJECTIVES[entry.id.removeprefix("G.alloc.")]
    weight = entry.inputs["q"]
    made = plan(
        Fleet.of(value_of(objective, entry.inputs["lambda"], order=order), weight=weight), entry.inputs["budget"]
    )
    assert made.certificate.worst < 1e-9
    entry.check({"f": made.sync_rate, "nu": made.price, "objective": made.fleet_staleness * sum(weight)})


@golden("L3.71-72")
def test_square_root_law(entry: Entry) -> None:
    rate, weight, budget = (entry.inputs[k] for k in ("mu", "q", "Lambda"))
    made = plan(Fleet.of(value_of("missed", rate), weight=weight), budget)
    assert made.sync_rate == pytest.approx(square_root(rate, weight, 1, budget), rel=1e-12)
    entry.check({"lambda": made.sync_rate, "penalty": made.fleet_staleness * sum(weight)})


@golden("L3.73-75")
def test_square_root_law_with_equal_and_with_proportional_weights(entry: Entry) -> None:
    rng = np.random.default_rng(5)
    rate, budget, n = rng.lognormal(0, 1.5, 1000), 700.0, 1000
    for weight, want in (
        (np.full(n, 1 / n), n * np.mean(np.sqrt(rate)) ** 2 / (2 * budget)),
        (rate / rate.sum(), n * np.mean(rate) / (2 * budget)),
    ):
        assert plan(Fleet.of(value_of("missed", rate), weight=weight), budget).fleet_staleness == pytest.approx(want)
    root = np.sqrt(rate)
    assert np.mean(rate) / np.mean(root) ** 2 == pytest.approx(np.var(root) / np.mean(root) ** 2 + 1)
    entry.check(True)


@golden("L3.69")
def test_value_of_the_update_penalty(entry: Entry) -> None:
    """f(x) = ∫₀^{1/x} y·w(y)dy, with f'(x) = −w(1/x)/x³."""
    penalty, rate = Reciprocal(), 2.0
    for x in (0.1, 1.0, 7.0):
        integral = quad(lambda y: y * penalty.w(y), 0, 1 / x, epsabs=0, epsrel=1e-13)[0]
        value = UpdateValue([rate], penalty)
        assert value.value(np.array([1 / x]))[0] / rate == pytest.approx(integral, rel=1e-11)
        # The slope in the interval, 1/x: d/dx gives the paper's −w(1/x)/x³.
        assert -value.slope(np.array([1 / x]))[0] / rate / x**2 == pytest.approx(-penalty.w(1 / x) / x**3, rel=1e-11)
    entry.check(True)


@golden("L3.Thm12")
def test_a_fading_penalty_abandons_sources_against_theorem_12(entry: Entry) -> None:
    rate, weight = entry.inputs["mu"], entry.inputs["q"]
    fleet = Fleet.of(UpdateValue(rate, Decay(1.0)), weight=weight)
    made = plan(fleet, entry.inputs["Lambda"])
    # The slow source joins when the fast one's polls are worth what its first would be: 0.1·∫y·e^(−y) = 0.1.
    interval = float(fleet.value.interval(np.full(2, 0.1))[0])
    threshold = 1 / interval
    assert plan(fleet, threshold * 0.999).abandoned.tolist() == [False, True]
    assert plan(fleet, threshold * 1.01).abandoned.tolist() == [False, False]
    entry.check({"lambda": made.sync_rate, "starved_below_budget": threshold})
