"""One observation of each of a million sources against the bare NumPy passes it cannot do without.

The bare update of a changed source is a logarithm and an exponential per source; that of an unchanged one an addition.
Neither checks its input.
"""

from __future__ import annotations

import numpy as np

from harness import Table
from unstale.core.belief import Belief
from unstale.core.learning.gamma import after_change

SOURCES = 1_000_000


def main() -> None:
    rng = np.random.default_rng(0)
    shape, exposure, elapsed = rng.lognormal(0, 1.5, (3, SOURCES))
    belief = Belief(shape, exposure)
    table = Table("belief", "one observation of each of a million sources")
    medians = table.measure(
        "changed",
        {
            "bare": lambda: np.expm1(-shape * np.log1p(elapsed / exposure)),
            "Belief.changed": lambda: belief.changed(elapsed),
        },
        reference="bare",
        rounds=9,
    )
    table.fact("changed: seconds", round(medians["Belief.changed"], 4), "0.1")
    table.measure(
        "unchanged",
        {"bare": lambda: exposure + elapsed, "Belief.unchanged": lambda: belief.unchanged(elapsed)},
        reference="bare",
        rounds=9,
    )
    table.measure(
        "still fresh?",
        {"bare": lambda: (1 + elapsed / exposure) ** -shape, "Belief.freshness": lambda: belief.freshness(elapsed)},
        reference="bare",
        rounds=9,
    )
    rows = range(0, SOURCES, SOURCES // 1000)
    mine = belief.changed(elapsed)
    off = max(
        abs(a / b - 1)
        for i in rows
        for a, b in zip(
            after_change(shape[i], exposure[i], elapsed[i]),
            (np.asarray(mine.shape)[i], np.asarray(mine.exposure)[i]),
            strict=True,
        )
    )
    table.fact("columns against single sources, relative", f"{off:.1e}", "1e-14")
    table.write()


if __name__ == "__main__":
    main()
