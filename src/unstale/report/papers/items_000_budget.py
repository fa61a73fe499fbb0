"""000 and 001: how a budget is divided (Tables 4 to 6, Figure 9, Theorem 5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.baselines import proportional, uniform
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.gamma2 import p2, p2_inverse
from unstale.core.plan import Plan
from unstale.core.price import plan
from unstale.core.processes import Constant, Poisson
from unstale.core.roots.between import between
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean, items
from unstale.report.papers.items_000 import mean
from unstale.study.database import fleet_age, fleet_freshness
from unstale.study.two_sources import best_split, poll_benefit, split_freshness

BUDGET = Catalog()
VALUES: dict[str, type[PoissonFreshness] | type[PoissonAge]] = {"F": PoissonFreshness, "A": PoissonAge}


def optimal(kind: str, change_rate: ArrayLike, budget: float, weight: ArrayLike | None = None) -> Plan:
    """The best plan for freshness (F) or age (A)."""
    return plan(Fleet.of(VALUES[kind](change_rate), weight=weight), budget)


@BUDGET.computes(*(f"C.T4.{row}" for row in "abcdefghij"))
def _table_4(item: Item) -> Any:
    return float(poll_benefit(9, item.inputs["f1"]) + poll_benefit(1, item.inputs["f2"]))


@BUDGET.computes("C.T4.best")
def _table_4_best(item: Item) -> Any:
    return [list(best_split((9, 1), total)) for total in item.inputs["totals"]]


@BUDGET.computes("C.F9.starve")
def _figure_9_threshold(item: Item) -> Any:
    return 1 / float(p2_inverse(1 / 9))


@BUDGET.computes("C.F9.B*")
def _figure_9(item: Item) -> Any:
    budget = item.inputs["f1+f2"]
    return optimal("F", item.inputs["lambda"], budget).sync_rate[1] / budget


@BUDGET.computes("C.F9.prop<unif")
def _figure_9_proportional(item: Item) -> Any:
    return [split_freshness(0.1, budget) for budget in item.inputs["B"]]


@BUDGET.computes("C.T5.b", "C.T5.c")
def _table_5(item: Item) -> Any:
    kind = "F" if item.id == "C.T5.b" else "A"
    return optimal(kind, item.inputs["lambda"], item.inputs["total"]).sync_rate.tolist()


@BUDGET.computes("C.T5.b.nu")
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


@BUDGET.simulates("C.T5.b.nu", "C.T5.c.nu")
def _simulated_table_5(item: Item, simulate: Simulate) -> Any:
    kind = "F" if item.id == "C.T5.b.nu" else "A"
    rate = item.inputs["lambda"]
    polled = optimal(kind, rate, item.inputs["total"]).sync_rate
    # An abandoned copy is never fresh; under age nothing is abandoned.
    runs = [
        simulate(Poisson(u), Constant(1 / f), seed=item.number + i)["freshness" if kind == "F" else "age"]
        if f > 0
        else SimulatedMean(0.0, 0.0)
        for i, (u, f) in enumerate(zip(rate, polled, strict=True))
    ]
    return {"Fbar" if kind == "F" else "Abar": mean(runs)}


@BUDGET.computes("C.T5.c.nu")
def _table_5_age_price(item: Item) -> Any:
    rate, total = item.inputs["lambda"], item.inputs["total"]
    made = optimal("A", rate, total)
    return {
        "nu": made.price,
        "Abar": made.fleet_staleness,
        "A_uniform": fleet_age(rate, uniform(rate, 1, 1, total)),
        "A_proportional": fleet_age(rate, proportional(rate, 1, 1, total)),
    }


@BUDGET.computes("C.Thm5.max")
def _theorem_5(item: Item) -> Any:
    x, change_rate, sync_rate = top()
    return {"x=lambda/f": x, "lambda": change_rate, "f": sync_rate}


def top() -> tuple[float, float, float]:
    """At price 1: changes per interval, change rate and sync rate of the source polled most often."""
    x = between(lambda x: (1 + x + x * x) * math.exp(-x) - 1, 0.5, 5.0)
    return x, float(p2(x)), float(p2(x)) / x


@BUDGET.computes("C.Thm5.fig10max")
def _figure_10_top(item: Item) -> Any:
    price = optimal("F", item.inputs["lambda"], 5.0).price
    _, change_rate, sync_rate = top()
    return [change_rate / price, sync_rate / price]


@BUDGET.computes("C.Thm5.scale")
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

    return between(excess, 1e-6, 1e6)


@BUDGET.computes("C.fn10")
def _footnote_10(item: Item) -> Any:
    rate = item.inputs["lambda"]
    return rate / float(p2_inverse(item.inputs["mu"] * rate))


@BUDGET.computes("C.T6.F_*", "C.T6.A_*")
def _table_6(item: Item) -> Any:
    return table_6(item)[item.id.removeprefix("C.T6.")]


def table_6(item: Item) -> dict[str, float]:
    """The six numbers of Table 6 for the histogram of an item."""
    rate, share, budget = _histogram(item)
    found = {}
    for kind, measure in (("F", fleet_freshness), ("A", fleet_age)):
        best = _class_rates(item, kind)
        for rule, polled in (
            ("prop", proportional(rate, share, share, budget)),
            ("unif", uniform(rate, share, share, budget)),
            ("opt", best),
        ):
            found[f"{kind}_{rule}"] = measure(rate, polled, share)
    return found


def _histogram(item: Item) -> tuple[Floats, Floats, float]:
    rate = 1 / np.array(item.inputs["intervals_days"], float)
    return rate, np.array(item.inputs["weights"], float), 1 / item.inputs["sync_interval_days"]


def _class_rates(item: Item, kind: str) -> Floats:
    """Best rates of the classes: a class that is a share s of all sources weighs and costs s."""
    rate, share, budget = _histogram(item)
    return plan(Fleet.of(VALUES[kind](rate), weight=share, cost=share), budget).sync_rate


@BUDGET.computes("C.T6.alloc")
def _table_6_rates(item: Item) -> Any:
    return {"freshness": _class_rates(item, "F").tolist(), "age": _class_rates(item, "A").tolist()}


@BUDGET.computes("C.6.3.pct")
def _section_6_3(item: Item) -> Any:
    got = table_6(items()["C.T6.alloc"])
    return [got["F_opt"] / got["F_prop"] - 1, 1 - got["A_opt"] / got["A_unif"], got["A_prop"] / got["A_opt"]]


@BUDGET.computes("C.concl.importance")
def _twice_the_weight(item: Item) -> Any:
    plans = [optimal("F", item.inputs["lambda"], total, item.inputs["q"]) for total in item.inputs["totals"]]
    return [made.sync_rate[0] / made.sync_rate[1] for made in plans]


@BUDGET.computes("C.Thm3-4")
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
