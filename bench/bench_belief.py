"""One observation of each of a million sources against the bare NumPy passes it cannot do without.

The bare update of a changed source is a logarithm and an exponential per source; that of an unchanged one an addition.
Neither checks its input.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv

from harness import Table
from unstale.core.belief import Belief
from unstale.core.learning.columns import LearnerColumns
from unstale.core.learning.gamma import after_change
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.said import rates_between, said

SOURCES = 1_000_000


def note_and_interval(table: Table) -> None:
    """What it costs the learner to keep what polls said, beside beliefs alone, and to read intervals from it."""
    count, turn = 50_000, iter(range(1, 1_000_000))
    learner, which, found = Learner(count, 1.0), np.arange(count), np.ones(count, dtype=np.bool_)
    wide, narrow = learner.columns, learner.columns._replace(rows=np.zeros((count, 3 * len(HALF_LIVES))))
    spread = np.random.default_rng(1).uniform(0.95, 1.05, count)

    def observe(columns: LearnerColumns) -> None:
        learner.columns = columns
        learner.observe(which, columns.last + spread * (1.0 + 0.1 * (next(turn) % 3)), found)

    table.measure(
        "a late poll",
        {"beliefs alone": lambda: observe(narrow), "Learner.observe": lambda: observe(wide)},
        reference="beliefs alone",
        rounds=9,
    )
    seen, prior = said(wide.rows, len(HALF_LIVES)), learner.shared.prior
    shape, exposure = prior[0] + wide.rows[:, 0], prior[1] + wide.rows[:, len(HALF_LIVES)]
    table.measure(
        "a 90 % interval",
        {
            "of a Gamma": lambda: [gammaincinv(shape, level) / exposure for level in (0.05, 0.95)],
            "of what polls said": lambda: rates_between(seen, prior, 0.9),
        },
        reference="of a Gamma",
        rounds=5,
    )


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
    note_and_interval(table)
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
