"""`python tests/support/compiled.py`: what numba compiles is compiled once, before three workers would each do it.

Beside lint, which needs one core alone. Who misses something here only loses time: it is compiled when it is needed.
"""

from __future__ import annotations

import numpy as np

import unstale
from unstale.core.carousel import carousel
from unstale.core.processes import Constant, Poisson
from unstale.core.trace import Trace
from unstale.sim.backtest.run import backtest
from unstale.sim.backtest.sees import Sees
from unstale.sim.copy import simulate_copy
from unstale.sim.fleet_run import simulate_fleet
from unstale.sim.replication import simulate_cascade, simulate_cooperation

DAY = 86_400.0


def brain() -> None:
    """The scheduler on a site of a few pages with a sitemap, which always tells of one of them."""
    pages, scheduler, now = [f"page {i}" for i in range(8)], unstale.Scheduler("16/day"), 0.0
    scheduler.add(pages, now)
    scheduler.add("sitemap", now)
    scheduler.collect("sitemap", pages, now)
    while now < 10 * DAY:
        for source in scheduler.take(now):
            changed = int(now) % 3 == 0
            scheduler.record(unstale.Outcome(source, "changed" if changed else "unchanged", now))
            if source == "sitemap":
                scheduler.listing(source, now, {pages[int(now) % 8]: now - 60.0})
        now += 3600.0


def simulators() -> None:
    """One copy, a fleet, replicas, and a history played again by every policy."""
    simulate_copy(Poisson(1.0), Constant(1.0), polls_count=200)
    simulate_fleet([1.0, 2.0], [1.0, 2.0], horizon=10.0)
    simulate_cascade(Poisson(1.0), [Constant(1.0), Constant(0.5)], horizon=50.0)
    simulate_cooperation(Poisson(1.0), Poisson(1.0), Poisson(3.0), 3, horizon=50.0)
    rng = np.random.default_rng(1)
    trace = Trace.coded(["a", "b"], np.repeat([0, 1], 60), np.sort(rng.uniform(0.0, 60 * DAY, (2, 60))).ravel())
    backtest(trace, polls_per_change=[1.0], sees=Sees())


if __name__ == "__main__":
    brain()
    simulators()
    unstale.plan(rates=np.linspace(0.1, 9.0, 3000), budget=500.0)
    carousel(np.linspace(0.1, 9.0, 30), 20_000)
