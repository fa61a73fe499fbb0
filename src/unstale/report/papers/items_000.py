"""000 and 001 (Cho, Garcia-Molina): one copy, the orders of polls, and fleets of random change rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from unstale.core.baselines import proportional, uniform
from unstale.core.inverse import sync_rate_for
from unstale.core.poisson_orders import Order, order_age, order_freshness
from unstale.core.processes import Constant, Empirical, Poisson, Process, Triangular
from unstale.core.staleness import age_after, freshness_after
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean
from unstale.study.database import fleet_age, fleet_freshness
from unstale.study.gamma_fleet import gamma_age, gamma_freshness

CHO = Catalog()
ORDERS: tuple[Order, ...] = ("fixed", "random", "purely-random")
VALUES: dict[str, type[PoissonFreshness] | type[PoissonAge]] = {"F": PoissonFreshness, "A": PoissonAge}


def polls_in(order: Order) -> Process:
    """Polls at rate 1 in an order, as seen by one of very many sources."""
    shapes = {"fixed": Constant(1.0), "random": Triangular(1.0), "purely-random": Poisson(1.0)}
    return shapes[order]


def _order(item: Item) -> Order:
    name = item.id.split(".")[3]
    return "random" if name == "random-order" else "fixed" if name == "fixed" else "purely-random"


@CHO.computes("C.E[F],E[A]")
def _after(item: Item) -> Any:
    rate, t = item.inputs["lambda"], item.inputs["t"]
    return [freshness_after(t, rate), age_after(t, rate)]


@CHO.computes("C.T2.F.*")
def _order_freshness(item: Item) -> Any:
    return order_freshness(item.inputs["r"], 1.0, _order(item))


@CHO.computes("C.T2.A.*")
def _order_age(item: Item) -> Any:
    return order_age(item.inputs["r"], 1.0, _order(item))


@CHO.simulates("C.T2.F.*", "C.T2.A.*")
def _simulated_order(item: Item, simulate: Simulate) -> Any:
    got = simulate(Poisson(item.inputs["r"]), polls_in(_order(item)), seed=item.number)
    return got["freshness" if item.id.startswith("C.T2.F") else "age"]


@CHO.computes("C.T2.limits")
def _limits(item: Item) -> Any:
    return [order_age(math.inf, 1.0, order) for order in ORDERS]


@CHO.computes("C.T2.finiteN.*")
def _few_sources(item: Item) -> Any:
    r, n = item.inputs["r"], item.inputs["N"]
    order: Order = "purely-random" if item.id.endswith("purely-random") else "random"
    return [order_freshness(r, 1.0, order, sources=n), order_age(r, 1.0, order, sources=n)]


@CHO.simulates("C.T2.finiteN.*")
def _simulated_few_sources(item: Item, simulate: Simulate) -> Any:
    n = item.inputs["N"]
    if item.id.endswith("purely-random"):
        gap = np.arange(1, 60 * n)
        chance = (1 - 1 / n) ** (gap - 1)
    else:
        gap = np.arange(1, 2 * n)
        chance = n - np.abs(gap - n)
    got = simulate(Poisson(item.inputs["r"]), Empirical(gap / n, chance), seed=item.number)
    return [got["freshness"], got["age"]]


@CHO.computes("C.L2")
def _gap_moments(item: Item) -> Any:
    return [Triangular(1.0).moment(n) for n in range(1, 5)]


@CHO.computes("C.S4.e-1/e")
def _as_often_as_it_changes(item: Item) -> Any:
    return order_freshness(item.inputs["r"], 1.0)


@CHO.simulates("C.S4.e-1/e")
def _simulated_as_often(item: Item, simulate: Simulate) -> Any:
    return simulate(Poisson(1.0), Constant(1.0), seed=item.number)["freshness"]


@CHO.computes("C.S4.r0.8")
def _for_freshness(item: Item) -> Any:
    rate = sync_rate_for(1.0, freshness=item.inputs["freshness"])
    return [1.0 / rate, rate]


@CHO.computes("C.S4.30pct")
def _fresher(item: Item) -> Any:
    return order_freshness(1.0, 1.0) / order_freshness(1.0, 1.0, "purely-random") - 1.0


@CHO.computes("C.S4.onefourth")
def _older(item: Item) -> Any:
    fixed, random, purely = (order_age(1.0, 1.0, order) for order in ORDERS)
    return {"fixed/purely-random": fixed / purely, "fixed/random-order": fixed / random}


@CHO.computes("C.Ex1")
def _example_1(item: Item) -> Any:
    rate, budget = item.inputs["lambda"], item.inputs["total"]
    even, prop = (rule(rate, 1, 1, budget) for rule in (uniform, proportional))
    return {
        "F_uniform": fleet_freshness(rate, even),
        "F_proportional": fleet_freshness(rate, prop),
        "A_uniform_days": fleet_age(rate, even),
        "A_proportional_days": fleet_age(rate, prop),
    }


@CHO.simulates("C.Ex1")
def _simulated_example_1(item: Item, simulate: Simulate) -> Any:
    rate, budget = item.inputs["lambda"], item.inputs["total"]
    found = {}
    for name, rule in (("uniform", uniform), ("proportional", proportional)):
        runs = [
            simulate(Poisson(u), Constant(1 / f), seed=item.number + i)
            for i, (u, f) in enumerate(zip(rate, rule(rate, 1, 1, budget), strict=True))
        ]
        found[f"F_{name}"] = mean([run["freshness"] for run in runs])
        found[f"A_{name}_days"] = mean([run["age"] for run in runs])
    return found


@CHO.computes("C.T3.r*")
def _table_3(item: Item) -> Any:
    r, d2 = item.inputs["r"], item.inputs["delta2"]
    return {
        "F_uniform": gamma_freshness(r, d2, "uniform"),
        "A_uniform": gamma_age(r, d2, "uniform"),
        "F_proportional": gamma_freshness(r, d2, "proportional"),
        "A_proportional": gamma_age(r, d2, "proportional"),
    }


@CHO.computes("C.T3.lim.d2=1.F", "C.T3.lim.d2=1.A", "C.T3.lim.d2=1/2.A")
def _table_3_limit(item: Item) -> Any:
    formula = gamma_freshness if item.id.endswith("F") else gamma_age
    return formula(item.inputs["r"], 0.5 if "1/2" in item.id else 1.0, "uniform")


@CHO.computes("C.T3.lim.d->0")
def _table_3_equal(item: Item) -> Any:
    r = item.inputs["r"]
    return [gamma_freshness(r, 0.0, "uniform"), gamma_age(r, 0.0, "uniform")]


@CHO.computes("C.T3.Aprop.domain")
def _table_3_domain(item: Item) -> Any:
    return gamma_age(item.inputs["r"], item.inputs["delta2"], "proportional")


@CHO.computes("C.F7.delta->inf")
def _figure_7_limit(item: Item) -> Any:
    # The limit is reached as δ² grows; beyond 1e140 the rounded numbers no longer move.
    return figure_7(item.inputs["r"], 1e140)[0]


@CHO.computes("C.F7.r*")
def _figure_7(item: Item) -> Any:
    return list(figure_7(item.inputs["r"], item.inputs["delta2"]))


def figure_7(r: float, d2: float) -> tuple[float, float]:
    """Freshness of proportional over uniform polling, and age of uniform over proportional polling."""
    fresh = gamma_freshness(r, d2, "proportional") / gamma_freshness(r, d2, "uniform")
    return fresh, gamma_age(r, d2, "uniform") / gamma_age(r, d2, "proportional")


@CHO.computes("C.F7.ageflat")
def _figure_7_flat(item: Item) -> Any:
    d2 = item.inputs["delta2"]
    least = minimize_scalar(lambda r: figure_7(r, d2)[1], bounds=(1.0, 10.0), options={"xatol": 1e-6})
    return {
        "r->0": figure_7(1e-12, d2)[1],
        "min over r (r≈3.549)": least.fun,
        "r->inf": figure_7(1e12, d2)[1],
    }


def mean(found: list[SimulatedMean]) -> SimulatedMean:
    """The mean of independent estimates."""
    n = len(found)
    return SimulatedMean(sum(e.value for e in found) / n, math.sqrt(sum(e.error**2 for e in found)) / n)
