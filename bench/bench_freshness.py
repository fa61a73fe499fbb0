"""Freshness of ten million Poisson sources against the bare NumPy expression.

The bare expression neither checks its input nor survives a rate of 0, and loses digits for rare changes.
"""

from __future__ import annotations

import numpy as np

from harness import Table
from unstale.core.staleness import age, freshness

SOURCES = 10_000_000


def main() -> None:
    rng = np.random.default_rng(0)
    rate = rng.gamma(0.5, 2.0, SOURCES)
    sync = rng.gamma(2.0, 1.0, SOURCES)
    table = Table("freshness", "freshness of ten million Poisson sources")
    table.measure(
        "one sync rate",
        {"bare": lambda: (1 - np.exp(-rate)) / rate, "freshness": lambda: freshness(rate, 1.0)},
        reference="bare",
        rounds=9,
    )

    def bare() -> object:
        r = rate / sync
        return (1 - np.exp(-r)) / r

    table.measure(
        "a sync rate each",
        {"bare": bare, "freshness": lambda: freshness(rate, sync), "age": lambda: age(rate, sync)},
        reference="bare",
        rounds=9,
    )
    table.write()


if __name__ == "__main__":
    main()
