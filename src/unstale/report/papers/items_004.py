"""004 (Li, Loguinov): one hop of replication; cascades, cooperation and redundancy follow with their models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.inverse import sync_rate_for
from unstale.core.lags import overlap
from unstale.core.processes import Constant, Pareto, Poisson, Process, Uniform
from unstale.core.quadrature import integrate
from unstale.core.staleness import freshness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean
from unstale.study.on_periods import duration_cdf, mean_duration, residual_cdf

HOPS = Catalog()
#: the setting of Figure 7
CHANGES, POLLS = Pareto(3.0, 1.0), Poisson(2.0)


def case(name: str, change_rate: float, sync_rate: float) -> tuple[Process, Process]:
    """The two examples of 003 and 004: (a) Pareto changes, even polls; (b) even changes, Pareto polls."""
    if name == "a":
        return Pareto.from_rate(3.0, change_rate), Constant(1 / sync_rate)
    return Constant(1 / change_rate), Pareto.from_rate(3.0, sync_rate)


@HOPS.computes("L4.8.lam3")
def _freshness(item: Item) -> Any:
    return [freshness(*case(name, item.inputs["mu"], item.inputs["lambda"])) for name in "ab"]


@HOPS.simulates("L4.8.lam3")
def _simulated_freshness(item: Item, simulate: Simulate) -> Any:
    return [
        simulate(*case(name, item.inputs["mu"], item.inputs["lambda"]), seed=item.number)["freshness"] for name in "ab"
    ]


@HOPS.computes("L4.bw.expU", "L4.bw.parU")
def _irregular_polls(item: Item) -> Any:
    rate, level = item.inputs["mu"], item.inputs["p"]
    changes = Poisson(rate) if item.id.endswith("expU") else Pareto.from_rate(3.0, rate)
    even = sync_rate_for(changes, freshness=level)
    exponential = sync_rate_for(changes, freshness=level, polls="purely-random")
    pareto = sync_rate_for(changes, freshness=level, polls=Pareto.from_rate(3.0, 1.0))
    return {
        "lambda_const": even,
        "lambda_exp": exponential,
        "lambda_pareto": pareto,
        "saving_vs_exp": 1 - even / exponential,
        "saving_vs_pareto": 1 - even / pareto,
    }


@HOPS.computes("L4.19")
def _mean_on_period(item: Item) -> Any:
    return {
        "p": freshness(CHANGES, POLLS),
        "E[g_U(A_D)]": overlap(POLLS, CHANGES),
        "E[V]": mean_duration(CHANGES, POLLS),
    }


@HOPS.simulates("L4.19")
def _simulated_on_period(item: Item, simulate: Simulate) -> Any:
    return {
        "p": simulate(CHANGES, POLLS, seed=item.number)["freshness"],
        "E[V]": _mean(on_periods(CHANGES, POLLS, 1_000_000, item.number)),
    }


@HOPS.computes("L4.FV")
def _on_period_law(item: Item) -> Any:
    return duration_cdf(item.inputs["x"], CHANGES, POLLS)


@HOPS.simulates("L4.FV")
def _simulated_on_period_law(item: Item, simulate: Simulate) -> Any:
    return _mean(on_periods(CHANGES, POLLS, 1_000_000, item.number) <= item.inputs["x"])


@HOPS.computes("L4.16")
def _rest_of_on_period(item: Item) -> Any:
    x = item.inputs["x"]
    return [1.0 - float(residual_cdf(x, CHANGES, POLLS)), CHANGES.age_survival(x)]


@HOPS.computes("L4.12")
def _dominance(item: Item) -> Any:
    """Up to the mean, the integrated difference from a constant is ∫ F_Y, and not that of its complement."""
    other = Uniform(0.2, 1.8)
    for x in (0.1, 0.5, 1.0):
        nodes = [0.0, min(x, 0.2), x]
        difference, _ = integrate(lambda y: np.asarray(other.cdf(y)) - np.asarray(Constant(1.0).cdf(y)), nodes)
        printed, _ = integrate(lambda y: np.asarray(other.survival(y)), nodes)
        right, _ = integrate(lambda y: np.asarray(other.cdf(y)), nodes)
        if abs(float(difference) - float(right)) > 1e-12 or abs(float(difference) - float(printed)) < 1e-2:
            return False
    return True


def on_periods(changes: Process, polls: Process, count: int, seed: int) -> Floats:
    """Lengths of about `count` periods in which a copy stays fresh: from the first poll after a change to the next."""
    rng = np.random.default_rng(seed)
    changed = np.cumsum(changes.sample(rng, count))
    polled = np.cumsum(polls.sample(rng, int(1.05 * count * polls.rate / changes.rate)))
    first = np.searchsorted(polled, changed)
    known = first < len(polled)
    start, end = polled[first[known]][:-1], changed[known][1:]
    return np.asarray((end - start)[end > start])


def _mean(found: Any) -> SimulatedMean:
    """Mean and error of nearly independent observations."""
    return SimulatedMean(float(np.mean(found)), float(np.std(found)) / math.sqrt(len(found)))
