"""The price of what falls due in a living fleet: processor time of plans, each after a tenth was polled again.

With numba, and as a plain install does it: in a process that cannot import numba.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import numpy as np

from harness import Table
from unstale.core.learning.compiled import load
from unstale.core.learning.learner import Learner

SCALE = 3600.0
#: how many plans of a fleet, after a first one
PLANS = 5


class Living:
    """A fleet of which each source was polled once, and then a tenth between two plans."""

    def __init__(self, count: int) -> None:
        self._rng, self._count = np.random.default_rng(1), count
        self._learner = Learner(count, SCALE, weight=self._rng.lognormal(0.0, 1.0, count))
        self._now, self._price = 1.4 * SCALE, self._learner.typical_price()
        self._ids = np.arange(count)
        changed = self._rng.random(count) < 0.5
        self._learner.observe(self._ids, SCALE * self._rng.uniform(0.6, 1.4, count), changed)

    def poll(self) -> None:
        some = np.flatnonzero(self._rng.random(self._count) < 0.1)
        self._now += 0.1 * SCALE
        self._learner.observe(some, np.full(len(some), self._now), self._rng.random(len(some)) < 0.5)

    def plan(self) -> None:
        cost, until = 0.5 * self._count, self._now + SCALE
        self._price = self._learner.price_for(cost, self._now, until, self._price, ids=self._ids)


def timed(count: int) -> tuple[float, float, float]:
    """Seconds of the processor: learning what the first polls found, the first price, and a price after that."""
    begun = time.process_time()
    fleet = Living(count)
    learned = time.process_time()
    fleet.plan()
    first = time.process_time()
    later = []
    for _ in range(PLANS):
        fleet.poll()
        before = time.process_time()
        fleet.plan()
        later.append(time.process_time() - before)
    return learned - begun, first - learned, sorted(later)[PLANS // 2]


def plain(count: int) -> list[float]:
    """The same in a fresh process without numba."""
    code = "import sys; sys.modules['numba'] = None; import bench_plan; print(*bench_plan.timed(int(sys.argv[1])))"
    command = [sys.executable, "-c", code, f"{count}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, cwd=sys.path[0]).stdout
    return [float(each) for each in told.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, nargs="*", default=[20_000, 1_000_000])
    options = parser.parse_args()
    table = Table("plan", "Prices of what falls due in a living fleet")
    load()
    timed(3_000)
    bars = {20_000: ("-", "0.02"), 1_000_000: ("-", "1")}
    for count in options.sources:
        first, later = bars.get(count, ("-", "-"))
        learned, begun, planned = timed(count)
        table.fact(f"{count:,}: learning from a poll of each, CPU s", f"{learned:.3f}", "-")
        table.fact(f"{count:,}: the first price, CPU s", f"{begun:.3f}", first)
        table.fact(f"{count:,}: a price after a tenth was polled, CPU s", f"{planned:.4f}", later)
    learned, begun, planned = plain(20_000)
    table.fact("20,000 without numba: learning and the first price, CPU s", f"{learned + begun:.3f}", "1")
    table.fact("20,000 without numba: a price after a tenth was polled, CPU s", f"{planned:.3f}", "-")
    table.write()


if __name__ == "__main__":
    main()
