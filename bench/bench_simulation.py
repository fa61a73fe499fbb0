"""Simulated events per second, a fleet of a million sources for a month, and the same world in SimPy."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from harness import Table
from unstale.core.poisson_orders import order_freshness
from unstale.core.processes import Constant, Poisson
from unstale.sim import kernels
from unstale.sim.copy import simulate_copy
from unstale.sim.fleet_run import simulate_fleet


def in_simpy(rate: float, interval: float, horizon: float, seed: int) -> tuple[float, int]:
    """One copy as SimPy's manual would have it: a process for the changes, one for the polls. Freshness, events."""
    env, rng = simpy.Environment(), random.Random(seed)
    fresh, since, stale, events = 0.0, 0.0, False, 0

    def changing() -> Generator[Any, Any, None]:
        nonlocal fresh, stale, events
        while True:
            yield env.timeout(rng.expovariate(rate))
            events += 1
            if not stale:
                fresh += env.now - since
                stale = True

    def polling() -> Generator[Any, Any, None]:
        nonlocal fresh, since, stale, events
        while True:
            yield env.timeout(interval)
            events += 1
            if not stale:
                fresh += env.now - since
            since, stale = env.now, False

    env.process(changing())
    env.process(polling())
    env.run(until=horizon)
    return fresh / horizon, events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sources", type=int, default=1_000_000)
    options = parser.parse_args()
    table = Table("simulation", "Simulation: one copy, a fleet, and SimPy beside them")
    simulate_copy(Poisson(1.0), Constant(1.0), polls_count=1000)  # compile before the clock starts

    # The same world: changes of rate 1, polls every unit, compared per event.
    polls, small = 20_000_000, 100_000
    seconds = table.measure(
        "one copy",
        {
            f"SimPy, {2 * small:,} events": lambda: in_simpy(1.0, 1.0, small, 1),
            f"compiled, {2 * polls:,} events": lambda: simulate_copy(Poisson(1.0), Constant(1.0), polls_count=polls),
        },
        reference=f"SimPy, {2 * small:,} events",
        rounds=options.rounds,
    )
    theirs, ours = seconds.values()
    run = simulate_copy(Poisson(1.0), Constant(1.0), polls_count=polls)
    per_second = (run.polls + run.changes) / ours
    table.fact("million events per second, compiled", f"{per_second / 1e6:.0f}", "20 or more")
    busy = table.rows[-1]["cpu_seconds"]
    table.fact("million events per second of one core, compiled", f"{(run.polls + run.changes) / busy / 1e6:.0f}", "-")
    table.fact("million events per second, SimPy", f"{2 * small / theirs / 1e6:.2f}", "-")
    table.fact("times SimPy", f"{per_second / (2 * small / theirs):.0f}", "50 or more")
    fresh, _ = in_simpy(1.0, 1.0, small, 1)
    table.fact("freshness: formula, ours, SimPy", f"0.63212, {run.freshness}, {fresh:.4f}", "-")

    n = options.sources
    rng = np.random.default_rng(1)
    rate, sync = rng.lognormal(0.19, 1.0, n), rng.lognormal(-0.21, 1.0, n)
    begin = time.perf_counter()
    fleet = simulate_fleet(rate, sync, "fixed", horizon=15.0, seed=1, runs=2)  # thirty days of each source
    took = time.perf_counter() - begin
    z = fleet.fleet_freshness.z(float(np.mean(order_freshness(rate, sync))))
    table.fact(f"{n:,} sources × 30 days, events", f"{fleet.events:.3g}", "about 1e8")
    table.fact(f"{n:,} sources × 30 days, seconds", f"{took:.1f}", "60")
    table.fact("freshness of that fleet, standard errors from the formula", f"{z:+.1f}", "within 5")
    table.fact("threads", str(kernels.THREADS), "2")
    table.write()


if __name__ == "__main__":
    main()
