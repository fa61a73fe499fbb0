"""The general allocation result, derived here: inverses, thresholds of abandonment, convexity, optimal rates."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.fleet import Fleet
from unstale.core.penalties import Constant, Deadline, Linear, Penalty, Power, Saturating
from unstale.core.price import plan
from unstale.core.processes import Constant as Even
from unstale.core.processes import Pareto, Poisson, Process, Uniform, Weibull
from unstale.core.values import PoissonAge, PoissonFreshness, ProcessValue, Value, value_of
from unstale.report.papers.item import Catalog, Item

GENERAL = Catalog()

_VALUES: dict[str, Value] = {
    "P2inv": PoissonFreshness([1.0]),
    "ageinv": PoissonAge([1.0]),
    "roinv": PoissonFreshness([1.0], "random"),
    "roAinv": PoissonAge([1.0], "random"),
    "prAinv": PoissonAge([1.0], "purely-random"),
}
_OBJECTIVES = {
    "fresh": ("freshness", "fixed"),
    "age": ("age", "fixed"),
    "ro": ("freshness", "random"),
    "roA": ("age", "random"),
    "pr": ("freshness", "purely-random"),
    "prA": ("age", "purely-random"),
    "up1": ("missed", "fixed"),
    "upx": ("lag", "fixed"),
}


@GENERAL.computes(*(f"G.{name}.*" for name in _VALUES))
def _interval(item: Item) -> Any:
    return float(_VALUES[item.id.split(".")[1]].interval(np.array([item.inputs["s"]]))[0])


@GENERAL.computes("G.alloc.*")
def _optimal_rates(item: Item) -> Any:
    objective, order = _OBJECTIVES[item.id.removeprefix("G.alloc.")]
    weight = item.inputs["q"]
    made = plan(Fleet.of(value_of(objective, item.inputs["lambda"], order=order), weight=weight), item.inputs["budget"])
    return {"f": made.sync_rate.tolist(), "nu": made.price, "objective": made.fleet_staleness * sum(weight)}


@GENERAL.computes("G.threshold.poisson")
def _thresholds(item: Item) -> Any:
    processes = [Poisson(2.0), Even(3.0), Pareto(3.0, 1.0), Pareto(2.5, 1.0), Pareto(1.4, 0.93)]
    return [float(ProcessValue(p, [p.rate], Constant()).limit()[0]) for p in processes]


@GENERAL.computes("G.pareto3.alloc")
def _pareto(item: Item) -> Any:
    process = Pareto(3.0, item.inputs["beta"])
    return float(ProcessValue(process, [process.rate], Constant()).interval(np.array([item.inputs["nu/q"]]))[0])


@GENERAL.computes("G.convex")
def _convex(item: Item) -> Any:
    """The least second difference of staleness by sync rate, relative: rounding, where it is a straight line."""
    rng = np.random.default_rng(item.inputs["trials"])
    processes: list[Process] = [Poisson(1.0), Pareto(3.0, 1.0), Even(1.0), Weibull(0.7, 1.0), Uniform(0.5, 2.0)]
    penalties: list[Penalty] = [Constant(), Linear(), Power(0.5), Power(2.5), Saturating(0.7), Deadline(0.4)]
    worst, each = np.inf, item.inputs["trials"] // (len(processes) * len(penalties))
    for process in processes:
        for penalty in penalties:
            middle = np.exp(rng.uniform(-3, 3, each))
            step = middle * rng.uniform(0.05, 0.9, each)
            rate = np.concatenate([middle - step, middle, middle + step])
            low, here, high = np.split(ProcessValue(process, np.ones(3 * each), penalty).staleness(1 / rate), 3)
            worst = min(worst, float(np.min((low - 2 * here + high) / np.maximum(low, 1e-300))))
    return worst
