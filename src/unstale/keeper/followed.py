"""Signals where others plan: collections are gone by at a price that was published, and what they taught adds up.

Rules of this file:
1. Who holds a collection decides as whoever plans does: by the same price, the same intervals to choose from, and the
   same pace of listings on trial. Members and what polls of them teach are the holder's own.
2. What is learned of all collections together is a sum of what each holder has learned, within the bounds of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unstale.core.learning.columns import Bits, Integers
from unstale.core.signals.choices import renew_rates
from unstale.core.signals.trust import BEST, CREDIT, WORST, judge, unproven
from unstale.keeper.listing_pace import ListingPace
from unstale.keeper.pushing import PushedSignals


class FollowedSignals(PushedSignals):
    """Collections that go by a price which others find; `rows` are those of the collections that are sources,
    `numbers` those of all and of channels."""

    rows: Integers
    numbers: list[int]

    def go_on(self, since: Mapping[int, float]) -> None:
        """After a restart: collections have been listened to since then, by their numbers, and plans look ahead again.

        What was before is time that a collection told nothing of: nobody is judged by what he was not asked.
        """
        for g in np.flatnonzero(~self.collections.push).tolist():
            self.collections.since[g] = since.get(self.numbers[g], self.collections.since[g])
            rows = self.which[self.starts[g] : self.starts[g + 1]]
            before = self.collections.since[g] - self._learner.columns.last[rows]
            before = np.where(before > 0.0, np.where(np.isfinite(before), before, 0.0), 0.0)
            self.members.uncovered[rows] = self.collections.uncovered[g] - before
        self._renew()

    def _renew(self) -> None:
        """Believed rates, half-lives and the time that a plan looks ahead, as things stand."""
        renew_rates(self.starts, self.which, self.mind())
        self.half_lives()
        self._look_ahead()

    def tells_of(self, g: int) -> int:
        """How many members a collection or channel has."""
        return int(self.starts[g + 1] - self.starts[g]) + int((self.overlap.of == g).sum())

    def pace(self) -> ListingPace:
        """How often listings are polled, for those who hold them."""
        new = float(self.pause[self._on_probation()].max(initial=0.0))
        return ListingPace(self.trial, new, float(self._grid[0]), float(self._grid[-1]))

    def follow(self, price: float, failing: Bits, pace: ListingPace) -> float:
        """Set intervals and levels at a price; what members that go by signals and all listings cost per second."""
        collections = self.collections
        judge(collections, self.fleet)
        if self.overlap.move(self.home, self.mind()):
            self.settle_homes()
        self.trial = pace.trial
        self._settle()
        if pace.new > 0.0:
            self.pause[self._on_probation()] = pace.new
        self._grid = np.geomspace(pace.least, pace.most, len(self._grid))
        self._renew()
        dead = np.zeros(len(collections.cost), np.bool_)
        dead[: len(self.rows)] = failing[self.rows]
        trusted = collections.trusted.copy()
        collections.trusted[dead | self._deaf] = False
        spent = self._look(price, self.mind())
        self._price = price
        collections.trusted[:] = trusted
        more = collections.cost * (1.0 / self.intervals() - 1.0 / self._told_interval())
        idle = np.where(collections.used, 0.0, collections.cost / self.pause)
        return spent + float((more + idle)[~dead].sum())

    def _on_probation(self) -> Bits:
        """The collections that are listed more often than on trial, to learn what they are worth."""
        new = np.array([unproven(g, self.collections) for g in range(len(self.pause))], dtype=np.bool_)
        return new & ~self.collections.push


def added(kept: Sequence[float], before: Sequence[float], now: Sequence[float]) -> list[float]:
    """What was learned of all collections, with what somebody has learned since it was `before` as he knew it.

    >>> added([3.0, 4.0, 0.0, 0.0, 39.0], [2.0, 2.0, 1.0, 0.0, 30.0], [3.0, 3.0, 0.0, 0.0, 35.0])
    [4.0, 5.0, 0.0, 0.0, 40.0]
    """
    whole = [one + new - old for one, old, new in zip(kept, before, now, strict=True)]
    return [min(max(one, WORST), BEST) if place == CREDIT else max(one, 0.0) for place, one in enumerate(whole)]
