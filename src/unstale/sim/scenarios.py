"""Named worlds, each with the ways of polling worth comparing in it; times in days.

Rules of this file:
1. A scenario spends the same budget in every row, so that rows differ by how, not by how much.
2. What the formulas predict stands beside what was simulated; None where no formula claims to know.
3. Worlds of independent sources at fixed rates run in the compiled kernels, all others in the event loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unstale.core import price
from unstale.core.baselines import Rule, proportional, uniform, weight_proportional
from unstale.core.checks import Floats, number
from unstale.core.fleet import Fleet
from unstale.core.phase import jittered
from unstale.core.processes import Constant, Poisson, WeeklyPoisson
from unstale.core.processes.named import named
from unstale.core.staleness import age, freshness
from unstale.core.values import value_of
from unstale.core.windows import Windows
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.sim import loop
from unstale.sim.changes import Bursty
from unstale.sim.copy import checked_seed, simulate_copy
from unstale.sim.fleet_run import predicted, simulate_fleet
from unstale.sim.policies import OpenLoop, Policy
from unstale.sim.statistics import Estimate
from unstale.sim.world import Host, World

HOUR, WEEK = 1.0 / 24.0, 7.0


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """What one way of polling achieved, for the whole fleet and, where it makes sense, source by source."""

    name: str
    #: polls per day
    polls: float
    freshness: Estimate
    age: Estimate
    predicted_freshness: float | None = None
    predicted_age: float | None = None
    #: freshness of each source, and its prediction
    sources: Estimate | None = None
    predicted_sources: Floats | None = None
    #: what else there is to say of it
    note: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world with a moral."""

    name: str
    line: str
    build: Callable[[float, int], list[ScenarioRow]]

    def run(self, days: float = 30.0, seed: int = 1) -> list[ScenarioRow]:
        """Simulate every way of polling for so many days."""
        return self.build(number("days", days, above=0, remedy="try 30"), checked_seed(seed))


def scenario(name: str) -> Scenario:
    """The scenario of this name.

    >>> [row.name for row in scenario("five-sources").run(days=3)]
    ['optimal', 'uniform', 'proportional']
    """
    if name not in SCENARIOS:
        known = ", ".join(SCENARIOS)
        raise InputError(sentence("scenario", repr(name), "is not known", f"take one of {known}"))
    return SCENARIOS[name]


def _five_sources(days: float, seed: int) -> list[ScenarioRow]:
    rate = np.arange(1.0, 6.0)
    return _rules(rate, np.ones(5), 5.0, days, seed)


def _news(days: float, seed: int) -> list[ScenarioRow]:
    rng = np.random.default_rng(1)
    rate, weight = rng.lognormal(0.5, 1.8, 300), rng.pareto(1.3, 300) + 0.2
    return _rules(rate, weight, 600.0, days, seed, weight_proportional)


def _heavy_tail(days: float, seed: int) -> list[ScenarioRow]:
    """Bursts and long silences: Pareto gaps, planned for with and without knowing it."""
    rate, weight, kind = np.geomspace(0.2, 20.0, 40), np.ones(40), "pareto:1.5"
    known = Fleet.of(value_of("freshness", rate, changes=named(kind, 1.0)), weight=weight)
    blind = Fleet.of(value_of("freshness", rate), weight=weight)
    plans = {
        "knows the tail": price.plan(known, 80.0).sync_rate,
        "assumes Poisson": price.plan(blind, 80.0).sync_rate,
        "uniform": np.full(40, 2.0),
    }
    return [_fleet_row(name, rate, sync, weight, days, seed, kind) for name, sync in plans.items()]


def _phase_lock(days: float, seed: int) -> list[ScenarioRow]:
    """An hourly source polled hourly: the phase never moves, so the average is nobody's experience."""
    rows = []
    for name, polls in (
        ("every hour", Constant(HOUR)),
        ("jittered by 20 %", jittered(HOUR, 0.2)),
        ("at random", Poisson(1 / HOUR)),
    ):
        run = simulate_copy(Constant(HOUR), polls, horizon=64 * days, seed=seed)
        rows.append(
            ScenarioRow(
                name,
                run.polls / (64 * days),
                run.freshness,
                run.age,
                float(freshness(Constant(HOUR), polls)),
                float(age(Constant(HOUR), polls)),
            )
        )
    return rows


def _bursty(days: float, seed: int) -> list[ScenarioRow]:
    """Forty sources that sleep for days and wake for hours: fresher than their mean rate lets expect, and the
    plan that takes them for Poisson abandons too many."""
    rate = np.geomspace(1.0, 20.0, 40)
    sources = [Bursty(0.1 * r, 9.1 * r, 1.8, 0.2) for r in rate]
    laws = [one.as_poisson() for one in sources]
    optimal = price.plan(Fleet.of(value_of("freshness", rate)), 160.0).sync_rate
    rows = []
    for name, sync in (("assumes Poisson", optimal), ("uniform", np.full(40, 4.0))):
        # Each is a mixture of two Poisson laws to whoever polls it: freshness and age are so, too.
        parts = [predicted([law[0][k] for law in laws], sync) for k in (0, 1)]
        share = np.array([law[1] for law in laws]).T
        fresh, old = (share[0] * slow + share[1] * fast for slow, fast in zip(*parts, strict=True))
        blind = float(np.mean(predicted(rate, sync)[0]))
        note = f"without bursts, at the same mean rates, {100 * blind:.2f} % would be fresh"
        row = _loop_row(name, World(sources), OpenLoop(sync), days, seed, (fresh, old))
        rows.append(replace(row, note=note))
    return rows


def _weekly(days: float, seed: int) -> list[ScenarioRow]:
    """Changes in office hours only, eight a day on five days: polls at night are wasted."""
    hours = np.zeros(168)
    for day in range(5):
        hours[24 * day + 9 : 24 * day + 17] = 1.0
    world = World([WeeklyPoisson(40 / WEEK, hours, week=WEEK)] * 8)
    weeks = np.arange(math.ceil(days / WEEK))[:, None] * WEEK + np.arange(5)
    office = Windows((weeks + 9 * HOUR).ravel(), (weeks + 17.5 * HOUR).ravel())
    polls = np.full(8, 100 / WEEK)
    return [
        _loop_row("around the clock", world, OpenLoop(polls), days, seed),
        _loop_row("in office hours", world, OpenLoop(polls, windows=office), days, seed),
    ]


def _outage(days: float, seed: int) -> list[ScenarioRow]:
    """Two hosts of twenty sources; one is down for a tenth of the time."""
    rate = np.tile(np.geomspace(0.5, 10.0, 20), 2)
    down = [(0.45 * days, 0.55 * days)]
    optimal = price.plan(Fleet.of(value_of("freshness", rate)), 120.0).sync_rate
    rows = []
    for name, hosts in (("no outage", [Host(), Host()]), ("one host down", [Host(), Host(outages=down)])):
        world = World([Poisson(r) for r in rate], host=np.repeat([0, 1], 20), hosts=hosts)
        formulas = predicted(rate, optimal) if name == "no outage" else None
        rows.append(_loop_row(name, world, OpenLoop(optimal), days, seed, formulas))
    return rows


def _rules(rate: Floats, weight: Floats, budget: float, days: float, seed: int, *more: Rule) -> list[ScenarioRow]:
    """The optimal plan and what other software does with the same budget."""
    optimal = price.plan(Fleet.of(value_of("freshness", rate), weight=weight), budget).sync_rate
    rules = {rule.__name__.replace("_", " "): rule for rule in (uniform, proportional, *more)}
    plans = {"optimal": optimal} | {name: rule(rate, weight, 1.0, budget) for name, rule in rules.items()}
    return [_fleet_row(name, rate, sync, weight, days, seed) for name, sync in plans.items()]


def _fleet_row(
    name: str, rate: Floats, sync: Floats, weight: Floats, days: float, seed: int, kind: str = "poisson"
) -> ScenarioRow:
    run = simulate_fleet(rate, sync, horizon=days, seed=seed, process=kind, weight=weight, runs=200)
    fresh, old = predicted(rate, sync, process=kind)
    return ScenarioRow(
        name,
        float(run.polls.sum()) / run.time,
        run.fleet_freshness,
        run.fleet_age,
        float(np.average(fresh, weights=weight)),
        float(np.average(old, weights=weight)),
        run.freshness,
        fresh,
    )


def _loop_row(
    name: str, world: World, policy: Policy, days: float, seed: int, formulas: tuple[Floats, Floats] | None = None
) -> ScenarioRow:
    run = loop.run(world, policy, horizon=1.1 * days, warmup=0.1 * days, seed=seed)
    fresh, old = (None, None) if formulas is None else (float(np.mean(x)) for x in formulas)
    return ScenarioRow(name, float(run.polls.sum()) / days, run.freshness.fleet, run.age.fleet, fresh, old)


_ALL = (
    Scenario("five-sources", "five sources, five polls a day: the best plan abandons the fastest", _five_sources),
    Scenario("news", "300 sources of very different pace and weight", _news),
    Scenario("heavy-tail", "Pareto gaps, planned for with and without knowing it", _heavy_tail),
    Scenario("phase-lock", "an hourly source, polled in step, with jitter, and at random", _phase_lock),
    Scenario("bursty", "sources that sleep for days and wake for hours", _bursty),
    Scenario("weekly", "changes in office hours, polls around the clock or not", _weekly),
    Scenario("outage", "one of two hosts is down for a tenth of the time", _outage),
)
#: by name, in the order in which they teach
SCENARIOS = {each.name: each for each in _ALL}
