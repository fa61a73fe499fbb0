"""A backtest of 2,000 sources with a million changes and a million polls: seconds for each policy."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np

from harness import Table
from unstale.core.trace import Trace
from unstale.sim.backtest.polls import measure
from unstale.sim.backtest.run import POLICIES, trial
from unstale.sim.backtest.setting import Setting
from unstale.sim.backtest.uniform import uniform

SOURCES, CHANGES, DAYS = 2000, 1_000_000, 365
#: seconds of the processor that any policy may take
BAR = 4.0


def setting() -> Setting:
    """Poisson sources of very different pace."""
    rng = np.random.default_rng(1)
    share = rng.lognormal(0, 1.5, SOURCES)
    counts = rng.multinomial(CHANGES, share / share.sum())
    source = np.repeat(np.arange(SOURCES), counts)
    times = rng.uniform(0.0, DAYS * 86_400.0, CHANGES)
    return Setting.of(Trace.coded([f"s{i}" for i in range(SOURCES)], source, times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    world, names = setting(), options.policies.split(",")
    small = Setting.of(world.trace.take(range(20)))
    for name in names:
        trial(small, name, 1.0, 1)
    polls = uniform(world, 1.0, 1)
    table = Table("backtest", f"{len(world):,} sources, {len(world.trace.times):,} changes, {len(polls.times):,} polls")
    bare = "measuring alone (numpy)"
    candidates: dict[str, Callable[[], object]] = {bare: partial(measure, world, polls)}
    candidates |= {name: partial(trial, world, name, 1.0, 1) for name in names}
    table.measure("play, match and measure", candidates, reference=bare, rounds=options.rounds)
    busy = {row["candidate"]: row["cpu_seconds"] for row in table.rows}
    slowest = max(names, key=lambda name: busy[name])
    table.fact(f"slowest policy ({slowest}), CPU s", f"{busy[slowest]:.2f}", f"{BAR:g}")
    table.write()


if __name__ == "__main__":
    main()
