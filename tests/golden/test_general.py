"""The general allocation result: forms, inverses, thresholds of abandonment, and convexity of staleness."""

from __future__ import annotations

import numpy as np

from support.golden import Entry, golden
from unstale.core.gamma2 import p2_inverse
from unstale.core.penalties import Constant, Deadline, Linear, Power, Saturating
from unstale.core.processes.constant import Constant as Even
from unstale.core.processes.pareto import Pareto
from unstale.core.processes.poisson import Poisson
from unstale.core.processes.uniform import Uniform
from unstale.core.processes.weibull import Weibull
from unstale.core.values import PoissonAge, PoissonFreshness, ProcessValue, Value


def at(value: Value, entry: Entry) -> float:
    return float(value.interval(np.array([entry.inputs["s"]]))[0])


@golden(prefix="G.P2inv.")
def test_inverse_of_p2(entry: Entry) -> None:
    entry.check(float(p2_inverse(entry.inputs["s"])))
    entry.check(at(PoissonFreshness([1.0]), entry))


@golden(prefix="G.ageinv.")
def test_age_interval_fixed(entry: Entry) -> None:
    entry.check(at(PoissonAge([1.0]), entry))


@golden(prefix="G.roinv.")
def test_freshness_interval_random(entry: Entry) -> None:
    entry.check(at(PoissonFreshness([1.0], "random"), entry))


@golden(prefix="G.roAinv.")
def test_age_interval_random(entry: Entry) -> None:
    entry.check(at(PoissonAge([1.0], "random"), entry))


@golden(prefix="G.prAinv.")
def test_age_interval_purely_random(entry: Entry) -> None:
    entry.check(at(PoissonAge([1.0], "purely-random"), entry))


@golden("G.threshold.poisson")
def test_thresholds_in_every_order(entry: Entry) -> None:
    processes = [Poisson(2.0), Even(3.0), Pareto(3.0, 1.0), Pareto(2.5, 1.0), Pareto(1.4, 0.93)]
    for order in ("fixed", "random", "purely-random"):
        entry.check([float(ProcessValue(p, [p.rate], Constant(), order).limit()[0]) for p in processes])


@golden("G.pareto3.alloc")
def test_pareto_interval_in_closed_form(entry: Entry) -> None:
    process = Pareto(3.0, entry.inputs["beta"])
    entry.check(float(ProcessValue(process, [process.rate], Constant()).interval(np.array([entry.inputs["nu/q"]]))[0]))


@golden("G.convex")
def test_staleness_is_convex_in_the_sync_rate(entry: Entry) -> None:
    rng = np.random.default_rng(entry.inputs["trials"])
    processes = [Poisson(1.0), Pareto(3.0, 1.0), Even(1.0), Weibull(0.7, 1.0), Uniform(0.5, 2.0)]
    penalties = [Constant(), Linear(), Power(0.5), Power(2.5), Saturating(0.7), Deadline(0.4)]
    worst, each = np.inf, entry.inputs["trials"] // (len(processes) * len(penalties))
    for process in processes:
        for penalty in penalties:
            value = ProcessValue(process, np.ones(3 * each), penalty)
            middle = np.exp(rng.uniform(-3, 3, each))
            step = middle * rng.uniform(0.05, 0.9, each)
            rate = np.concatenate([middle - step, middle, middle + step])
            low, here, high = np.split(value.staleness(1 / rate), 3)
            bend = np.min((low - 2 * here + high) / np.maximum(low, 1e-300))
            worst = min(worst, float(bend))
    assert worst >= -1e-12
    # convex, and not strictly: constant gaps polled less than once per gap are a straight line
    entry.check(worst)
