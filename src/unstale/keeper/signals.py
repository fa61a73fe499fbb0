"""What collections told of their members, and what a price makes of it: the columns and decisions of signals.

Rules of this file:
1. One brain: a living fleet (`collected`) and the backtest decide by this; they differ in who makes the polls.
2. Members of a collection that is not trusted, does not pay or fails are due as if there were none.
3. All is columns beside the learner's; loops over members are compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers, expected_cost
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.signals.choices import Mind, due_times, look, pending, renew_rates, worth_polling_of
from unstale.core.signals.columns import collection_columns, member_columns
from unstale.core.signals.hearing import distinct, hear, taught_all
from unstale.core.signals.pricing import price_near
from unstale.core.signals.scalars import plain_table
from unstale.core.signals.trust import CREDIT, PROVEN, judge, unproven

#: trial listings take at most this share of the budget, those of collections that are new another
_TRIAL, _NEW = 0.005, 0.05
#: in logarithms: the price moves no further at once while signals are used, for what they bring is only guessed, and
#: while they are not
_FARTHEST, _FREE = 0.7, 12.0
#: intervals that are tried for a listing
_GRID = 32
#: half-lives compete in units of the mean interval, or of this many mean gaps where signals show every change: where
#: they are used, and have proved good
_UNIT = 0.3


class Signals:
    """Collections and their members by rows of a learner's fleet.

    Members of collection g are `which[starts[g]:starts[g+1]]`; `home` is the collection of each row, -1: none.
    """

    def __init__(self, learner: Learner, parts: Sequence[Integers], cost: Floats, entries: Floats, now: float) -> None:
        self._learner = learner
        count = len(learner.columns.last)
        self.which = np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        self.home = np.full(count, -1, np.int64)
        self.home[self.which] = np.repeat(np.arange(len(parts)), np.diff(self.starts))
        self.members = member_columns(count, now)
        self.members.rate[:] = 1.0 / learner.scale
        self.collections = collection_columns(cost, entries, now)
        self.fleet = np.zeros(5)
        self._budget = max(float(learner.columns.cost.sum()) / learner.scale, 1e-300)
        scale = learner.scale
        self.trial = max(float(cost.sum()) / (_TRIAL * self._budget), scale)
        #: the longest time between listings of each collection: on trial, or while it is new
        self.pause = np.full(len(parts), self.trial)
        #: what the price that was found last will cost
        self.foretold = 0.0
        least = max(0.5 * float(cost.min(initial=1.0)) / self._budget, 1e-4 * scale)
        self._grid = np.geomspace(least, max(self.trial, 3.0 * scale, 2.0 * least), _GRID)
        self._table = plain_table()
        self._settle()

    def told(self, g: int, now: float, rows: Integers, told: Floats, hole: float, price: float) -> Integers:
        """A listing poll told that these members changed at these times; who of them is worth a poll at once."""
        whole, mind = self.which[self.starts[g] : self.starts[g + 1]], self.mind()
        if not hear(g, now, rows, np.minimum(told, now), hole, whole, mind) or not self.collections.used[g]:
            return np.empty(0, np.int64)
        awake = distinct(rows[np.isfinite(self._learner.columns.last[rows])])
        return awake[worth_polling_of(awake, g, now, price, mind)]

    def learn(self, rows: Integers, polled_at: Floats, changed: Bits, modified: Floats) -> Floats:
        """Teach what polls found; the times of the signals by which beliefs were taught, NaN elsewhere."""
        by, alone = np.full(len(rows), np.nan), self.home[rows] < 0
        self._learner.observe(rows[alone], polled_at[alone], changed[alone], modified[alone])
        mine, homes = rows[~alone], self.home[rows[~alone]]
        by[~alone] = taught_all(mine, homes, polled_at[~alone], changed[~alone], modified[~alone], self.mind())
        return by

    def review(self) -> None:
        """Look at the fleet as a whole; where signals have proved good, half-lives are counted in changes."""
        learner = self._learner
        learner.review()
        unit = learner.scale
        if self.collections.used.any() and self.fleet[CREDIT] >= PROVEN:
            unit = min(unit, _UNIT / float(self.members.rate[self.which].mean()))
        learner.shared.half_lives[:] = unit * np.array(HALF_LIVES)

    def price_to(self, cost: float, now: float, until: float, guess: float, awake: Bits, dead: Bits) -> float:
        """The price at which polls and listing polls between now and `until` cost so much; sets all intervals.

        `awake` are the rows that wait for a poll and are no collection; a listing that is `dead` cannot be polled.
        """
        mind, collections, columns = self.mind(), self.collections, self._learner.columns
        judge(collections, self.fleet)
        self._settle()
        renew_rates(self.starts, self.which, mind)
        trusted = collections.trusted.copy()
        # A listing that fails tells nothing: its members are on their own until it is back.
        collections.trusted[dead] = False

        def spending(price: float) -> float:
            spent = look(price, self.starts, self.which, self._grid, self._table, mind) * (until - now)
            spent += pending(price, now, self.starts, self.which, mind)
            idle = ~collections.used & ~dead
            spent += float((collections.cost / self.pause)[idle].sum()) * (until - now)
            alone = np.flatnonzero(awake & ~self.listed())
            return spent + expected_cost(alone, price, now, until, columns, mind.shared, mind.timing, mind.at)

        farthest = _FARTHEST if collections.trusted.any() else _FREE
        price = price_near(guess, farthest, spending, max(cost, 1e-9))
        self.foretold = spending(price)
        collections.trusted[:] = trusted
        return price

    def members_due(self, rows: Integers, now: float, price: float) -> Floats:
        """When these members of collections in use are due."""
        return due_times(rows, self.home[rows], now, price, self.mind())

    def intervals(self) -> Floats:
        """How long each collection is left alone between listing polls."""
        shortest: Floats = np.minimum(self.collections.interval, self.pause)
        return shortest

    def listed(self) -> Bits:
        """Which rows go by signals now."""
        listed = np.zeros(len(self.home), np.bool_)
        listed[self.which] = np.repeat(self.collections.used, np.diff(self.starts))
        return listed

    def mind(self) -> Mind:
        """All that is known, as compiled functions take it."""
        learner = self._learner
        return Mind(
            learner.columns,
            learner.shared,
            learner.timing,
            self.members,
            self.collections,
            self.fleet,
            learner._room,
        )

    def _settle(self) -> None:
        """How long each collection may go without a listing poll: on trial, or while it is new."""
        new = np.array([unproven(g, self.collections) for g in range(len(self.pause))], dtype=np.bool_)
        often = float(self.collections.cost[new].sum()) / (_NEW * self._budget)
        self.pause[:] = np.where(new, often, self.trial)
