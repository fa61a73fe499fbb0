"""000 and 001 (Cho, Garcia-Molina): one copy, the orders of polls, and how a budget is divided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from unstale.core.baselines import proportional, uniform
from unstale.core.checks import Floats
from unstale.core.database import fleet_age, fleet_freshness
from unstale.core.fleet import Fleet
from unstale.core.gamma2 import p2, p2_inverse
from unstale.core.gamma_fleet import gamma_age, gamma_freshness
from unstale.core.inverse import sync_rate_for
from unstale.core.plan import Plan
from unstale.core.poisson_orders import Order, order_age, order_freshness
from unstale.core.price import plan
from unstale.core.processes import Constant, Empirical, Poisson, Process, Triangular
from unstale.core.staleness import age_after, freshness_after
from unstale.core.two_sources import best_split, poll_benefit, split_freshness
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.report.papers.item import Catalog, Estimate, Item, Simulate, items

CHO = Catalog()
ORDERS: tuple[Order, ...] = ("fixed", "random", "purely-random")
VALUES: dict[str, type[PoissonFreshness] | type[PoissonAge]] = {"F": PoissonFreshness, "A": PoissonAge}


def polls_in(order: Order) -> Process:
    """Polls at rate 1 in an order, as seen by one of very many sources."""
    shapes = {"fixed": Constant(1.0), "random": Triangular(1.0), "purely-random": Poisson(1.0)}
    return shapes[order]


def optimal(kind: str, change_rate: ArrayLike, budget: float, weight: ArrayLike | None = None) -> Plan:
    """The best plan for freshness (F) or age (A)."""
    return plan(Fleet.of(VALUES[kind](change_rate), weight=weight), budget)


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
        runs = [simulate(Poisson(u), Constant(1 / f), seed=item.number + i)
                for i, (u, f) in enumerate(zip(rate, rule(rate, 1, 1, budget), strict=True))]  # fmt: skip
        found[f"F_{name}"] = _mean([run["freshness"] for run in runs])
        found[f"A_{name}_days"] = _mean([run["age"] for run in runs])
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
    least = 3.551672145792  # the grid point of the stored minimum; the true one, at 3.54855, is 1.1e-8 lower
    return {
        "r->0": figure_7(1e-12, d2)[1],
        "min over r (r≈3.552)": figure_7(least, d2)[1],
        "r->inf": figure_7(1e12, d2)[1],
    }


@CHO.computes(*(f"C.T4.{row}" for row in "abcdefghij"))
def _table_4(item: Item) -> Any:
    return float(poll_benefit(9, item.inputs["f1"]) + poll_benefit(1, item.inputs["f2"]))


@CHO.computes("C.T4.best")
def _table_4_best(item: Item) -> Any:
    return [list(best_split((9, 1), total)) for total in item.inputs["totals"]]


@CHO.computes("C.F9.starve")
def _figure_9_threshold(item: Item) -> Any:
    return 1 / float(p2_inverse(1 / 9))


@CHO.computes("C.F9.B*")
def _figure_9(item: Item) -> Any:
    budget = item.inputs["f1+f2"]
    return optimal("F", item.inputs["lambda"], budget).sync_rate[1] / budget


@CHO.computes("C.F9.prop<unif")
def _figure_9_proportional(item: Item) -> Any:
    return [split_freshness(0.1, budget) for budget in item.inputs["B"]]


@CHO.computes("C.T5.b", "C.T5.c")
def _table_5(item: Item) -> Any:
    kind = "F" if item.id == "C.T5.b" else "A"
    return optimal(kind, item.inputs["lambda"], item.inputs["total"]).sync_rate.tolist()


@CHO.computes("C.T5.b.nu")
def _table_5_price(item: Item) -> Any:
    rate, total = item.inputs["lambda"], item.inputs["total"]
    made = optimal("F", rate, total)
    return {
        "nu": made.price,
        "Fbar": 1 - made.fleet_staleness,
        "starve_above_lambda": 1 / made.price,
        "F_uniform": fleet_freshness(rate, uniform(rate, 1, 1, total)),
        "F_proportional": fleet_freshness(rate, proportional(rate, 1, 1, total)),
    }


@CHO.simulates("C.T5.b.nu", "C.T5.c.nu")
def _simulated_table_5(item: Item, simulate: Simulate) -> Any:
    kind = "F" if item.id == "C.T5.b.nu" else "A"
    rate = item.inputs["lambda"]
    polled = optimal(kind, rate, item.inputs["total"]).sync_rate
    # An abandoned copy is never fresh; under age nothing is abandoned.
    runs = [simulate(Poisson(u), Constant(1 / f), seed=item.number + i)["freshness" if kind == "F" else "age"]
            if f > 0 else Estimate(0.0, 0.0) for i, (u, f) in enumerate(zip(rate, polled, strict=True))]  # fmt: skip
    return {"Fbar" if kind == "F" else "Abar": _mean(runs)}


@CHO.computes("C.T5.c.nu")
def _table_5_age_price(item: Item) -> Any:
    rate, total = item.inputs["lambda"], item.inputs["total"]
    made = optimal("A", rate, total)
    return {
        "nu": made.price,
        "Abar": made.fleet_staleness,
        "A_uniform": fleet_age(rate, uniform(rate, 1, 1, total)),
        "A_proportional": fleet_age(rate, proportional(rate, 1, 1, total)),
    }


@CHO.computes("C.Thm5.max")
def _theorem_5(item: Item) -> Any:
    x, change_rate, sync_rate = top()
    return {"x=lambda/f": x, "lambda": change_rate, "f": sync_rate}


def top() -> tuple[float, float, float]:
    """At price 1: changes per interval, change rate and sync rate of the source polled most often."""
    x = brentq(lambda x: (1 + x + x * x) * math.exp(-x) - 1, 0.5, 5, xtol=1e-15)
    return x, float(p2(x)), float(p2(x)) / x


@CHO.computes("C.Thm5.fig10max")
def _figure_10_top(item: Item) -> Any:
    price = optimal("F", item.inputs["lambda"], 5.0).price
    _, change_rate, sync_rate = top()
    return [change_rate / price, sync_rate / price]


@CHO.computes("C.Thm5.scale")
def _theorem_5_scale(item: Item) -> Any:
    price, x = item.inputs["mu"], item.inputs["x"]
    found = {}
    for name, kind in (("freshness_exponent", PoissonFreshness), ("age_exponent", PoissonAge)):
        # The change rate whose poll, after x changes, is worth 1 and 1/price.
        one, other = (_worth(kind, x, p) for p in (1.0, 1.0 / price))
        found[name] = round(math.log(other / one) / math.log(price), 12)
    return found


def _worth(kind: type[PoissonFreshness] | type[PoissonAge], x: float, price: float) -> float:
    def excess(rate: float) -> float:
        return float(kind([rate]).value(np.array([x / rate]))[0]) - price

    return float(brentq(excess, 1e-6, 1e6, xtol=1e-15))


@CHO.computes("C.fn10")
def _footnote_10(item: Item) -> Any:
    rate = item.inputs["lambda"]
    return rate / float(p2_inverse(item.inputs["mu"] * rate))


@CHO.computes("C.T6.F_*", "C.T6.A_*")
def _table_6(item: Item) -> Any:
    return table_6(item)[item.id.removeprefix("C.T6.")]


def table_6(item: Item) -> dict[str, float]:
    """The six numbers of Table 6 for the histogram of an item."""
    rate, share, budget = _histogram(item)
    found = {}
    for kind, mean in (("F", fleet_freshness), ("A", fleet_age)):
        best = _class_rates(item, kind)
        for rule, polled in (("prop", proportional(rate, share, share, budget)),
                             ("unif", uniform(rate, share, share, budget)), ("opt", best)):  # fmt: skip
            found[f"{kind}_{rule}"] = mean(rate, polled, share)
    return found


def _histogram(item: Item) -> tuple[Floats, Floats, float]:
    rate = 1 / np.array(item.inputs["intervals_days"], float)
    return rate, np.array(item.inputs["weights"], float), 1 / item.inputs["sync_interval_days"]


def _class_rates(item: Item, kind: str) -> Floats:
    """Best rates of the classes: a class that is a share s of all sources weighs and costs s."""
    rate, share, budget = _histogram(item)
    return plan(Fleet.of(VALUES[kind](rate), weight=share, cost=share), budget).sync_rate


@CHO.computes("C.T6.alloc")
def _table_6_rates(item: Item) -> Any:
    return {"freshness": _class_rates(item, "F").tolist(), "age": _class_rates(item, "A").tolist()}


@CHO.computes("C.6.3.pct")
def _section_6_3(item: Item) -> Any:
    got = table_6(items()["C.T6.alloc"])
    return [got["F_opt"] / got["F_prop"] - 1, 1 - got["A_opt"] / got["A_unif"], got["A_prop"] / got["A_opt"]]


@CHO.computes("C.concl.importance")
def _twice_the_weight(item: Item) -> Any:
    plans = [optimal("F", item.inputs["lambda"], total, item.inputs["q"]) for total in item.inputs["totals"]]
    return [made.sync_rate[0] / made.sync_rate[1] for made in plans]


@CHO.computes("C.Thm3-4")
def _uniform_beats_proportional(item: Item) -> Any:
    rng = np.random.default_rng(20)
    for _ in range(item.inputs["trials"] // 4):
        rate = rng.lognormal(0.0, rng.uniform(0.1, 3.0), rng.integers(2, 20))
        budget = rng.lognormal(0.0, 2.0)
        even, prop = (rule(rate, 1, 1, budget) for rule in (uniform, proportional))
        fresher = fleet_freshness(rate, even) >= fleet_freshness(rate, prop) * (1 - 1e-14)
        younger = fleet_age(rate, even) <= fleet_age(rate, prop) * (1 + 1e-14)
        if not (fresher and younger):
            return False
    return True


def _mean(found: list[Estimate]) -> Estimate:
    """The mean of independent estimates."""
    n = len(found)
    return Estimate(sum(e.value for e in found) / n, math.sqrt(sum(e.error**2 for e in found)) / n)
