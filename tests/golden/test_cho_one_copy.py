"""000 and 001: one copy, the orders of polling, uniform against proportional polling."""

import math

import numpy as np
from scipy.optimize import minimize_scalar

from support.golden import Entry, golden
from unstale.core import baselines
from unstale.core.inverse import sync_rate_for
from unstale.core.poisson_orders import order_age, order_freshness
from unstale.core.processes import Triangular
from unstale.core.staleness import age_after, freshness_after
from unstale.study.database import fleet_age, fleet_freshness
from unstale.study.gamma_fleet import gamma_age, gamma_freshness
from unstale.study.two_sources import best_split, poll_benefit, split_freshness

ORDERS = ("fixed", "random", "purely-random")


def number(x: float | str) -> float:
    return math.inf if x == "inf" else float(x)


@golden("C.E[F],E[A]")
def test_expected_freshness_and_age_after_a_poll(entry: Entry) -> None:
    rate, t = entry.inputs["lambda"], entry.inputs["t"]
    entry.check([freshness_after(t, rate), age_after(t, rate)])


@golden(prefix="C.T2.F.")
def test_freshness_by_order(entry: Entry) -> None:
    order = entry.id.split(".")[3].replace("random-order", "random")
    entry.check(order_freshness(entry.inputs["r"], 1.0, order))


@golden(prefix="C.T2.A.")
def test_age_by_order(entry: Entry) -> None:
    order = entry.id.split(".")[3].replace("random-order", "random")
    entry.check(order_age(entry.inputs["r"], 1.0, order))


@golden("C.T2.limits")
def test_age_of_sources_that_change_all_the_time(entry: Entry) -> None:
    entry.check([order_age(number(entry.inputs["r"]), 1.0, order) for order in ORDERS])


@golden("C.T2.finiteN.purely-random", "C.T2.finiteN.random-order")
def test_orders_for_few_sources(entry: Entry) -> None:
    order = "purely-random" if entry.id.endswith("purely-random") else "random"
    r, n = entry.inputs["r"], entry.inputs["N"]
    entry.check([order_freshness(r, 1.0, order, sources=n), order_age(r, 1.0, order, sources=n)])


@golden("C.L2")
def test_gaps_of_the_random_order(entry: Entry) -> None:
    entry.check([Triangular(1.0).moment(n) for n in range(1, 5)])


@golden("C.S4.e-1/e")
def test_polled_as_often_as_it_changes(entry: Entry) -> None:
    entry.check(order_freshness(entry.inputs["r"], 1.0))


@golden("C.S4.r0.8")
def test_rate_for_freshness_0_8(entry: Entry) -> None:
    rate = sync_rate_for(1.0, freshness=entry.inputs["freshness"], polls=entry.inputs["policy"])
    entry.check([1.0 / rate, rate])


@golden("C.S4.30pct")
def test_fixed_order_is_26_percent_fresher_than_purely_random(entry: Entry) -> None:
    r = entry.inputs["r"]
    entry.check(order_freshness(r, 1.0) / order_freshness(r, 1.0, "purely-random") - 1.0)


@golden("C.S4.onefourth")
def test_fixed_order_has_a_fourth_of_the_age_of_purely_random(entry: Entry) -> None:
    fixed, random, purely = (order_age(entry.inputs["r"], 1.0, order) for order in ORDERS)
    entry.check({"fixed/purely-random": fixed / purely, "fixed/random-order": fixed / random})


@golden("C.Ex1")
def test_three_sources_polled_nine_times_a_day(entry: Entry) -> None:
    rates, budget = entry.inputs["lambda"], entry.inputs["total"]
    uniform, proportional = (rule(rates, 1, 1, budget) for rule in (baselines.uniform, baselines.proportional))
    entry.check(
        {
            "F_uniform": fleet_freshness(rates, uniform),
            "F_proportional": fleet_freshness(rates, proportional),
            "A_uniform_days": fleet_age(rates, uniform),
            "A_proportional_days": fleet_age(rates, proportional),
        }
    )


@golden(prefix="C.T3.r")
def test_gamma_distributed_change_rates(entry: Entry) -> None:
    r, d2 = entry.inputs["r"], entry.inputs["delta2"]
    entry.check(
        {
            "F_uniform": gamma_freshness(r, d2, "uniform"),
            "A_uniform": gamma_age(r, d2, "uniform"),
            "F_proportional": gamma_freshness(r, d2, "proportional"),
            "A_proportional": gamma_age(r, d2, "proportional"),
        }
    )


@golden("C.T3.lim.d2=1.F", "C.T3.lim.d2=1.A", "C.T3.lim.d2=1/2.A")
def test_where_the_printed_formulas_divide_by_zero(entry: Entry) -> None:
    d2 = 0.5 if "1/2" in entry.id else 1.0
    f = gamma_freshness if entry.id.endswith("F") else gamma_age
    entry.check(f(entry.inputs["r"], d2, "uniform"))
    # and there is no loss of digits beside the hole
    assert math.isclose(f(entry.inputs["r"], d2 * (1 - 1e-8), "uniform"), entry.value, rel_tol=1e-8)


@golden("C.T3.lim.d->0")
def test_equal_sources(entry: Entry) -> None:
    r = entry.inputs["r"]
    entry.check([gamma_freshness(r, 0.0, "uniform"), gamma_age(r, 0.0, "uniform")])


@golden("C.T3.Aprop.domain")
def test_proportional_age_is_infinite_for_spread_rates(entry: Entry) -> None:
    entry.check(gamma_age(entry.inputs["r"], entry.inputs["delta2"], "proportional"))


@golden("C.F7.delta->inf")
def test_the_freshness_quotient_has_a_limit_above_zero(entry: Entry) -> None:
    r, d2 = entry.inputs["r"], 1e140
    entry.check(gamma_freshness(r, d2, "proportional") / gamma_freshness(r, d2, "uniform"))


@golden(prefix="C.F7.r")
def test_uniform_against_proportional(entry: Entry) -> None:
    r, d2 = entry.inputs["r"], entry.inputs["delta2"]
    fresh = gamma_freshness(r, d2, "proportional") / gamma_freshness(r, d2, "uniform")
    entry.check([fresh, gamma_age(r, d2, "uniform") / gamma_age(r, d2, "proportional")])


@golden("C.F7.ageflat")
def test_the_age_quotient_hardly_depends_on_the_ratio(entry: Entry) -> None:
    d2 = entry.inputs["delta2"]

    def quotient(r: float) -> float:
        return gamma_age(r, d2, "uniform") / gamma_age(r, d2, "proportional")

    least = minimize_scalar(quotient, bounds=(1.0, 10.0), options={"xatol": 1e-6})
    assert abs(least.x - 3.54855) < 1e-4
    entry.check({"r->0": quotient(1e-12), "min over r (r≈3.549)": least.fun, "r->inf": quotient(1e12)})


@golden(*(f"C.T4.{row}" for row in "abcdefghij"))
def test_benefit_of_polls_exactly(entry: Entry) -> None:
    got = poll_benefit(9, entry.inputs["f1"]) + poll_benefit(1, entry.inputs["f2"])
    entry.check(float(got))
    top, bottom = entry.printed.split("/")
    assert got * int(bottom) == int(top)


@golden("C.T4.best")
def test_best_splits(entry: Entry) -> None:
    entry.check([list(best_split((9, 1), total)) for total in entry.inputs["totals"]])


@golden("C.F9.prop<unif")
def test_proportional_polling_is_less_fresh(entry: Entry) -> None:
    entry.check([split_freshness(0.1, budget) for budget in entry.inputs["B"]])


@golden("C.Thm3-4")
def test_uniform_beats_proportional_on_random_fleets(entry: Entry) -> None:
    rng = np.random.default_rng(20)
    holds = []
    for _ in range(entry.inputs["trials"] // 4):
        rates = rng.lognormal(0.0, rng.uniform(0.1, 3.0), rng.integers(2, 20))
        budget = rng.lognormal(0.0, 2.0)
        uniform, proportional = (rule(rates, 1, 1, budget) for rule in (baselines.uniform, baselines.proportional))
        holds.append(fleet_freshness(rates, uniform) >= fleet_freshness(rates, proportional) * (1 - 1e-14))
        holds.append(fleet_age(rates, uniform) <= fleet_age(rates, proportional) * (1 + 1e-14))
    entry.check(all(holds))
