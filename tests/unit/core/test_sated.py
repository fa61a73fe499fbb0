"""Penalties that are 0 up to some age: once every source is polled that often, the rest of a budget stays unspent."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unstale
from unstale.core import price
from unstale.core.custom_penalty import Custom
from unstale.core.fleet import Fleet
from unstale.core.penalties import Constant, Deadline, Linear, Penalty, Saturating
from unstale.core.processes import Constant as Even
from unstale.core.processes import Pareto, Poisson, Process, Uniform, Weibull
from unstale.core.values import Mixed, PoissonDeadline, PoissonFreshness, ProcessValue, UpdateValue, Value, value_of

RATE, TAU = np.array([24.0, 0.14, 0.03]), 1 / 24
#: the longest gap between polls, in mean gaps, that each order counts
LONGEST = {"fixed": 1, "random": 2, "purely-random": 80}


def late(x: np.ndarray) -> np.ndarray:
    return np.maximum(x - TAU, 0.0)


def family() -> dict[str, Value]:
    made: dict[str, Value] = {f"deadline {order}": PoissonDeadline(RATE, TAU, order) for order in LONGEST}
    penalties: dict[str, Penalty] = {"deadline": Deadline(TAU), "late": Custom(late, kinks=[TAU])}
    made |= {f"missed {p} {o}": UpdateValue(RATE, penalties[p], o) for p, o in product(penalties, LONGEST)}
    laws: list[Process] = [Poisson(1.0), Weibull(0.6, 1.0), Pareto(2.2, 1.0), Even(1.0), Uniform(0.2, 1.4)]
    made |= {type(law).__name__: ProcessValue(law, RATE, Deadline(TAU)) for law in laws}
    made["a function of one's own"] = ProcessValue(Poisson(1.0), RATE, penalties["late"])
    return made


FAMILY = family()
every = pytest.mark.parametrize("name", FAMILY)


@every
@pytest.mark.parametrize("more", [1.0, 1.01, 30.0, 1e6, 1e90])
def test_once_nobody_is_late_the_rest_stays_unspent(name: str, more: float) -> None:
    longest = next((n for order, n in LONGEST.items() if name.endswith(f" {order}")), 1)
    enough = len(RATE) * longest / TAU
    made = price.plan(Fleet.of(FAMILY[name], weight=[5.0, 1.0, 1.0]), more * enough)
    assert made.price == 0.0
    assert made.sync_rate == pytest.approx(np.full(3, longest / TAU), rel=1e-12)
    assert made.spent == pytest.approx(enough, rel=1e-12)
    assert made.fleet_staleness == 0.0
    assert made.certificate.worst < 1e-12


@pytest.mark.parametrize("name", ["deadline fixed", "deadline random", "missed deadline fixed", "Weibull"])
@pytest.mark.parametrize("share", [0.1, 0.9, 0.999, 1 - 1e-6])
def test_below_that_all_is_spent_at_a_price(name: str, share: float) -> None:
    enough = len(RATE) * (2 if name.endswith("random") else 1) / TAU
    made = price.plan(Fleet.of(FAMILY[name], weight=[5.0, 1.0, 1.0]), share * enough)
    assert made.price > 0
    assert made.spent == pytest.approx(share * enough, rel=1e-11)
    assert made.certificate.worst < 1e-9


def test_bounds_caps_and_others_that_are_never_sated() -> None:
    value = PoissonDeadline(RATE, TAU)
    bounded = price.plan(Fleet.of(value, shortest=[0.0, 1.0, 0.0], longest=[0.01, 1e9, np.inf]), 1e4)
    assert bounded.sync_rate == pytest.approx([100.0, 1.0, 24.0], rel=1e-12)
    capped = price.plan(Fleet.of(value, host=[0, 0, 1], cap=[10.0, np.inf]), 1e4)
    assert capped.spent == pytest.approx(34.0, rel=1e-12)
    assert (capped.price, capped.certificate.worst) == (0.0, pytest.approx(0.0, abs=1e-12))
    mixed = price.plan(Fleet.of(Mixed([([0, 1, 2], value), ([3], PoissonFreshness([2.0]))])), 1e4)
    assert mixed.price > 0
    assert mixed.sync_rate[3] == pytest.approx(1e4 - 72, rel=1e-2)
    assert mixed.certificate.worst < 1e-9


def test_a_penalty_knows_up_to_which_age_it_is_harmless() -> None:
    assert (Deadline(3.0).harmless, Constant().harmless, Linear().harmless, Saturating(2.0).harmless) == (3.0, 0, 0, 0)
    assert Custom(late).harmless == pytest.approx(TAU, rel=1e-15)
    assert Custom(lambda x: x**1.5).harmless == 0.0
    assert Custom(lambda x: np.where(x >= 1e-9, 1.0, 0.0)).harmless == pytest.approx(1e-9, rel=1e-15)
    assert Custom(lambda x: np.where(x >= 1e9, 1.0, 0.0)).harmless == pytest.approx(1e9, rel=1e-15)
    assert Custom(lambda x: 0.0 * x).harmless == np.inf


@settings(max_examples=30)
@given(st.floats(-2, 2).map(lambda e: 10.0**e), st.floats(0.2, 30.0))
def test_the_closed_form_is_the_integral(tau: float, stretch: float) -> None:
    rate, t = np.array([0.05, 1.0, 7.0]), stretch * tau
    closed, slow = PoissonDeadline(rate, tau), ProcessValue(Poisson(1.0), rate, Deadline(tau))
    assert closed.value(t) == pytest.approx(slow.value(t), rel=1e-9, abs=1e-300)
    assert closed.staleness(t) == pytest.approx(slow.staleness(t), rel=1e-9, abs=1e-15)
    assert closed.limit() == pytest.approx(slow.limit())


def test_objectives_of_the_planner() -> None:
    assert type(value_of("penalty", RATE, penalty=Deadline(TAU))) is PoissonDeadline
    for budget in (73, 100, 1000, "1e6/day"):
        made = unstale.plan(rates=RATE, weights=[5, 1, 1], budget=budget, objective="deadline:1h")
        assert made.sync_rate == pytest.approx([24.0] * 3, rel=1e-12)
        assert (made.price, made.summary()["spent"]) == (0.0, pytest.approx(72.0, rel=1e-12))
    paretos = {"id": [1, 2], "change_rate": [1.0, 2.0], "process": ["pareto:1.5", "weibull:0.6"]}
    assert unstale.plan(paretos, budget=50, objective="deadline:1h").spent == pytest.approx(48.0, rel=1e-12)
