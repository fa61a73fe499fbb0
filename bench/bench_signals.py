"""A listing of a hundred thousand members, half of them changed, against one observation of each of them.

The brain takes up what the listing says and decides whom that makes worth a poll; polling as if there were no listing
would take a poll of every member, whose lesson alone is the reference here.
"""

from __future__ import annotations

import numpy as np

from harness import Table
from unstale.core.learning.learner import Learner
from unstale.keeper.collected import Collected, Group

MEMBERS, DAY = 100_000, 86_400.0


def main() -> None:
    ids = np.arange(MEMBERS + 1, dtype=np.int64)
    learner = Learner(MEMBERS + 1, DAY)
    learner.columns.last[:] = 0.0
    collected = Collected(learner, ids, [Group(MEMBERS, ids[:-1])], 0.0)
    collected.collections.credit[0], collected.fleet[4] = 40.0, 40.0
    rows = ids[:-1:2].copy()
    times = iter(np.arange(1, 1000) * 60.0)
    nobody, none = np.zeros(MEMBERS + 1, np.bool_), np.full(MEMBERS, np.nan)
    price = collected.price_for(1e3, 0.0, 60.0, learner.typical_price(), nobody)

    def listing() -> None:
        now = float(next(times))
        assert len(collected.hear(MEMBERS, now, rows, np.full(len(rows), now - 1.0), 0.0, price))

    def polls() -> None:
        at = np.full(MEMBERS, float(next(times)))
        learner.observe(ids[:-1], at, np.zeros(MEMBERS, np.bool_), none)

    table = Table("signals", "a listing of a hundred thousand members")
    table.measure(
        "taken up", {"a lesson of each member": polls, "the listing": listing}, reference="a lesson of each member"
    )
    spent = next(row["cpu_seconds"] for row in table.rows if row["candidate"] == "the listing")
    table.fact("seconds of processor for a million members told of", round(1e6 * spent / len(rows), 2), "2")
    members = collected.members
    table.fact("bytes kept of a member besides its belief", sum(column.itemsize for column in members), "40")
    table.write()


if __name__ == "__main__":
    main()
