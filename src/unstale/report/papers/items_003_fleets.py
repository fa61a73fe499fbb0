"""003, section VI: many sources, Wikipedia, and what its numbers imply."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unstale.core.fleet import Fleet
from unstale.core.inverse import sync_rate_for
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Decay, Reciprocal
from unstale.core.price import plan
from unstale.core.processes import Pareto
from unstale.core.quadrature import integrate
from unstale.core.roots.between import between
from unstale.core.staleness import missed_changes, staleness
from unstale.core.values import UpdateValue, value_of
from unstale.report.papers.item import Catalog, Item

WIKI = Catalog()
STALE = Indicator()


@WIKI.computes("L3.Thm12")
def _fading_abandons(item: Item) -> Any:
    fleet = Fleet.of(UpdateValue(item.inputs["mu"], Decay(1.0)), weight=item.inputs["q"])
    # The slow source joins when the fast one's polls are worth what its first would be: 0.1·∫y·e^(−y) = 0.1.
    interval = float(fleet.value.interval(np.full(2, 0.1))[0])
    return {
        "lambda": plan(fleet, item.inputs["Lambda"]).sync_rate.tolist(),
        "starved_below_budget": 1 / interval,
    }


@WIKI.computes("L3.69")
def _summed_value(item: Item) -> Any:
    """The value of a poll is change_rate·∫₀^t y·w(y)dy, with slope t·w(t)."""
    value = UpdateValue([1.0], Reciprocal())
    for t in (10.0, 1.0, 1 / 7):
        integral, _ = integrate(lambda y: y * np.asarray(Reciprocal().w(y)), [0.0, t])
        right = math.isclose(value.value(np.array([t]))[0], integral, rel_tol=1e-11)
        if not (right and math.isclose(value.slope(np.array([t]))[0], t * Reciprocal().w(t), rel_tol=1e-11)):
            return False
    return True


@WIKI.computes("L3.71-72")
def _square_root_law(item: Item) -> Any:
    rate, weight = item.inputs["mu"], item.inputs["q"]
    made = plan(Fleet.of(value_of("missed", rate), weight=weight), item.inputs["Lambda"])
    return {"lambda": made.sync_rate.tolist(), "penalty": made.fleet_staleness * sum(weight)}


@WIKI.computes("L3.73-75")
def _equal_and_proportional_weights(item: Item) -> Any:
    rate, budget, n = np.random.default_rng(5).lognormal(0, 1.5, 1000), 700.0, 1000
    cases = (
        (np.full(n, 1 / n), n * np.mean(np.sqrt(rate)) ** 2 / (2 * budget)),
        (rate / rate.sum(), n * np.mean(rate) / (2 * budget)),
    )
    return all(
        math.isclose(plan(Fleet.of(value_of("missed", rate), weight=w), budget).fleet_staleness, want, rel_tol=1e-9)
        for w, want in cases
    )


@WIKI.computes("L3.Lambda2")
def _polls_if_uniform(item: Item) -> Any:
    """Polls for one missed change on average (ω = 1)."""
    per_day = item.inputs["E[mu]/day"]
    sync = between(lambda f: float(missed_changes(per_day, f)) - 1.0, 1e-3, 1e3)
    return item.inputs["M"] * sync / 86400


@WIKI.computes("L3.Lambda1")
def _implied_mean(item: Item) -> Any:
    implied = 99e3 * 2 * 86400 / item.inputs["M"]
    return {"implied E[sqrt mu]^2 per day": implied, "ratio L2/L1": 8 / implied}


@WIKI.computes("L3.Gbps")
def _bits(item: Item) -> Any:
    bits = 8 * 25_000 / item.inputs["omega"]
    return [99e3 * bits / 1e9, 4.6e6 * bits / 1e9]


@WIKI.computes("L3.wiki.inconsistent")
def _largest_possible_mean(item: Item) -> Any:
    """Each class at its upper end: half at 8 a year, 40 % at 1 a week, 8 % at 1 a day, 2 % at the top."""
    share = np.array([0.5, 0.4, 0.08, 0.02])
    most = np.array([8 / 365.25, 1 / 7, 1.0, item.inputs["max mu/day"]])
    return {
        "max possible E[mu]/day": float(share @ most),
        "max possible E[sqrt mu]^2": float(share @ np.sqrt(most)) ** 2,
    }


@WIKI.computes("L3.GWB.mean")
def _mean_of_the_fit(item: Item) -> Any:
    return {
        "10y/44296 h": 10 * 365.25 * 24 / 44296,
        "Pareto(1.4,.93) mean h": Pareto(1.4, 0.93).mean,
        "Pareto(1.5,.93) mean h": Pareto(1.5, 0.93).mean,
    }


@WIKI.computes("L3.GWB.pareto")
def _polls_for_the_fit(item: Item) -> Any:
    fits = {alpha: Pareto(alpha, item.inputs["beta_h"]) for alpha in (1.4, 1.5)}
    level = 1 - item.inputs["p"]
    return {f"alpha={a}": 24 * sync_rate_for(u, freshness=level) for a, u in fits.items()} | {
        f"staleness at 8/day, alpha={a}": staleness(u, 8 / 24, STALE) for a, u in fits.items()
    }


@WIKI.computes("L3.GWB.poisson")
def _polls_if_poisson(item: Item) -> Any:
    level, mean = 1 - item.inputs["p"], item.inputs["mean_h"]
    return {
        "mu=1/1.86h": 24 * sync_rate_for(1 / mean, freshness=level),
        "mu=1.86 per HOUR": 24 * sync_rate_for(mean, freshness=level),
    }


@WIKI.computes("L3.Hurst")
def _hurst(item: Item) -> Any:
    return 1 - item.inputs["gamma"] / 2
