"""The event loop driven by the scheduler, and the same world written in SimPy with the same one, in one run."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from harness import Table
from unstale.core.fleet import Fleet
from unstale.core.price import plan
from unstale.core.processes import Poisson
from unstale.core.values import PoissonFreshness
from unstale.keeper import Answer, Outcome
from unstale.sim.loop import run
from unstale.sim.measure import Measured
from unstale.sim.policies import ScheduledPolicy
from unstale.sim.world import World

SOURCES, HORIZON = 1000, 100.0
#: polls per second that sources which share nothing are to be played with
LEAST = 500_000.0


class InOrder:
    """The scheduler as one whose sources may depend on each other: told every poll by itself, in the order of time."""

    def __init__(self, price: float, rates: np.ndarray[Any, Any]) -> None:
        self._policy = ScheduledPolicy(price, rates)
        self.start, self.next = self._policy.start, self._policy.next


def in_simpy(rates: np.ndarray[Any, Any], price: float) -> float:
    """The fleet's freshness: a process for the changes and one for the polls of each source."""
    env = simpy.Environment()
    fresh_since: list[float | None] = [0.0] * len(rates)
    fresh = [0.0] * len(rates)
    streams = [np.random.default_rng([1, i]) for i in range(len(rates))]

    def changing(i: int) -> Generator[Any, Any, None]:
        rng, mean = streams[i], 1.0 / rates[i]
        while True:
            yield env.timeout(rng.exponential(mean))
            since = fresh_since[i]
            if since is not None:
                fresh[i] += env.now - since
                fresh_since[i] = None

    policy = ScheduledPolicy(price, rates)
    first = policy.start(World([Poisson(r) for r in rates]), HORIZON, streams)

    def polling(i: int, due: float) -> Generator[Any, Any, None]:
        while due < HORIZON:
            yield env.timeout(due - env.now)
            changed = fresh_since[i] is None
            if changed:
                fresh_since[i] = env.now
            answer = Answer.CHANGED if changed else Answer.UNCHANGED
            due = policy.next(i, Outcome(i, answer, env.now), env.now, streams[i])

    for i, due in enumerate(first):
        env.process(changing(i))
        env.process(polling(i, due))
    env.run(HORIZON)
    left = sum(HORIZON - since for since in fresh_since if since is not None)
    return (sum(fresh) + left) / (HORIZON * len(rates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rates = np.random.default_rng(1).lognormal(0, 1, SOURCES)
    price = plan(Fleet.of(PoissonFreshness(rates)), 3.0 * SOURCES).price
    world = World([Poisson(r) for r in rates])
    runs: list[Measured] = []
    simulated: list[float] = []

    def ours(policy: type[ScheduledPolicy] | type[InOrder] = ScheduledPolicy) -> None:
        runs.append(run(world, policy(price, rates), HORIZON, seed=1))
        runs[-1].freshness  # noqa: B018  the measure is made when it is asked for

    table = Table("loop", f"{SOURCES:,} sources polled by the scheduler for {HORIZON:g} time units")
    seconds = table.measure(
        "one run with its freshness",
        {
            "SimPy": lambda: simulated.append(in_simpy(rates, price)),
            "event loop": ours,
            "event loop, one poll at a time": lambda: ours(InOrder),
        },
        reference="SimPy",
        rounds=options.rounds,
    )
    polls, mine = len(runs[0].log.source), runs[0].freshness.fleet
    busy = {row["candidate"]: polls / row["cpu_seconds"] for row in table.rows}
    table.fact("polls per second of a core, event loop", f"{busy['event loop']:,.0f}", f"at least {LEAST:,.0f}")
    table.fact("polls per second of a core, one at a time", f"{busy['event loop, one poll at a time']:,.0f}", "-")
    table.fact("times faster than SimPy", f"{seconds['SimPy'] / seconds['event loop']:.1f}", "at least 10")
    table.fact("freshness, ours", f"{mine.value:.5f} ± {mine.error:.5f}", "-")
    table.fact("freshness, SimPy", f"{simulated[0]:.5f}", "within 5 of our errors")
    table.write()


if __name__ == "__main__":
    main()
