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
from unstale.core.signals.aged_look import look_aged
from unstale.core.signals.choices import Mind, due_times, look, pending, renew_rates, worth_polling_of
from unstale.core.signals.columns import collection_columns, member_columns
from unstale.core.signals.discovery import sooner
from unstale.core.signals.hearing import distinct, hear, taught_all
from unstale.core.signals.pricing import price_near
from unstale.core.signals.scalars import plain_table
from unstale.core.signals.trust import CREDIT, PROVEN, judge, unproven
from unstale.keeper.overlap import Overlap

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
#: what counts of new members keep from listing to listing
_FINDS = 0.9


class Signals:
    """Collections and their members by rows of a learner's fleet.

    Members of collection g are `which[starts[g]:starts[g+1]]`; `home` is the collection of each row, -1: none. Of whom
    others tell besides, `overlap` keeps what they do.
    """

    def __init__(
        self,
        learner: Learner,
        parts: Sequence[Integers],
        cost: Floats,
        entries: Floats,
        now: float,
        push: Bits | None = None,
    ) -> None:
        self._learner, self._aged = learner, learner.objective == "age"
        #: what a signal is worth is known for freshness and age alone: for other objectives nobody is listened to
        self._deaf = learner.objective not in ("freshness", "age")
        count = len(learner.columns.last)
        self.home = np.full(count, -1, np.int64)
        own, beside = list[Integers](), list[tuple[Integers, int]]()
        for g, part in enumerate(parts):
            free = self.home[part] < 0
            own.append(part[free])
            beside.append((part[~free], g))
            self.home[part[free]] = g
        self.which = np.concatenate([*own, np.empty(0, np.int64)]).astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in own])]).astype(np.int64)
        self.overlap = Overlap(beside, now)
        self.members = member_columns(count, now)
        #: who has a signal of another collection alone: its home has not said so, and is not judged by it
        self._lent = np.zeros(count, np.bool_)
        self.members.rate[:] = 1.0 / learner.scale
        self.collections = collection_columns(cost, entries, now, push)
        self.fleet = np.zeros(5)
        self._budget = max(float(learner.columns.cost.sum()) / learner.scale, 1e-300)
        scale = learner.scale
        self.trial = max(float(cost.sum()) / (_TRIAL * self._budget), scale)
        #: the longest time between listings of each collection: on trial, or while it is new
        self.pause = np.full(len(parts), self.trial)
        #: what the price that was found last will cost, what of it at once, and that price
        self.foretold = self.at_once = self._price = 0.0
        #: seconds that a plan looks ahead at the least
        self.ahead = 0.0
        least = max(0.5 * float(cost[cost > 0.0].min(initial=1.0)) / self._budget, 1e-4 * scale)
        self._grid = np.geomspace(least, max(self.trial, 3.0 * scale, 2.0 * least), _GRID)
        self._table = plain_table()
        self._settle()

    def told(self, g: int, now: float, rows: Integers, told: Floats, hole: float, price: float) -> Integers:
        """A listing poll told that these members changed at these times; who of them is worth a poll at once."""
        whole, mind, before = self.which[self.starts[g] : self.starts[g + 1]], self.mind(), self.collections.asof[g]
        told, own = np.minimum(told, now), self.home[rows] == g
        if not hear(g, now, rows[own], told[own], hole, whole, mind):
            return np.empty(0, np.int64)
        self._lent[rows[own]] = False
        rising = [distinct(rows[own])] if self.collections.used[g] else []
        if not own.all():
            rising += self._heard_beside(g, rows[~own], told[~own], float(before))
        last, found = self._learner.columns.last, [np.empty(0, np.int64)]
        for some in rising:
            awake = some[np.isfinite(last[some])]
            if len(awake):
                found.append(awake[worth_polling_of(awake, self.home[awake[0]], now, price, mind)])
        return np.concatenate(found)

    def _heard_beside(self, g: int, rows: Integers, told: Floats, before: float) -> list[Integers]:
        """A collection told of rows that are at home elsewhere: if it is trusted they have a signal, home by home."""
        pairs = self.overlap.heard(g, rows, told, before, self._learner.columns.last)
        if not self.collections.trusted[g] or not len(pairs):
            return []
        rows, told, members = self.overlap.row[pairs], self.overlap.words.told[pairs], self.members
        # What is known already is no second signal.
        new = told > members.told[rows]
        rows, told = rows[new], told[new]
        self._lent[rows] |= members.signals[rows] == 0
        members.signals[rows] = np.where(members.signals[rows] == 0, 1, members.signals[rows])
        members.told[rows] = told
        homes = self.home[rows]
        return [rows[homes == home] for home in np.unique(homes).tolist() if self.collections.used[home]]

    def learn(self, rows: Integers, polled_at: Floats, changed: Bits, modified: Floats) -> Floats:
        """Teach what polls found; the times of the signals by which beliefs were taught, NaN elsewhere."""
        by, alone = np.full(len(rows), np.nan), self.home[rows] < 0
        self._learner.observe(rows[alone], polled_at[alone], changed[alone], modified[alone])
        mine, homes = rows[~alone], self.home[rows[~alone]]
        self.overlap.taught(mine, polled_at[~alone], changed[~alone], self.mind())
        self.members.signals[mine[self._lent[mine]]] = 0
        self._lent[mine] = False
        by[~alone] = taught_all(mine, homes, polled_at[~alone], changed[~alone], modified[~alone], self.mind())
        return by

    def review(self) -> None:
        """Look at the fleet as a whole; where signals have proved good, half-lives are counted in changes."""
        self._learner.review()
        self.half_lives()

    def half_lives(self) -> None:
        """Half-lives in changes where signals have proved good, else in mean intervals."""
        learner = self._learner
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
        if self.overlap.move(self.home, mind):
            self.settle_homes()
        self._settle()
        renew_rates(self.starts, self.which, mind)
        trusted = collections.trusted.copy()
        # A listing that fails tells nothing: its members are on their own until it is back.
        collections.trusted[dead | self._deaf] = False

        def spending(price: float) -> float:
            spent = self._look(price, mind) * (until - now)
            self._price = price
            spent += float((collections.cost * (1.0 / self.intervals() - 1.0 / self._told_interval()))[~dead].sum()) * (
                until - now
            )
            self.at_once = pending(price, now, self.starts, self.which, mind)
            spent += self.at_once
            idle = ~collections.used & ~dead
            spent += float((collections.cost / self.pause)[idle].sum()) * (until - now)
            alone = np.flatnonzero(awake & ~self.listed())
            return spent + expected_cost(alone, price, now, until, columns, mind.shared, mind.timing, mind.at)

        farthest = _FARTHEST if collections.trusted.any() else _FREE
        price = price_near(guess, farthest, spending, max(cost, 1e-9))
        self.foretold = spending(price)
        self._look_ahead()
        collections.trusted[:] = trusted
        return price

    def _look(self, price: float, mind: Mind) -> float:
        """Set intervals and levels at a price; what will be spent per second."""
        if self._aged:
            return float(look_aged(price, self.starts, self.which, self._grid, mind))
        return float(look(price, self.starts, self.which, self._grid, self._table, mind))

    def put_aside(self, now: float = np.inf) -> float:
        """What of the budget is kept until now for polls that the next listings will bring; without it, at the most.

        Those polls come at once, so what they cost is saved from listing to listing: it is neither spare nor lost.
        """
        collections, mine = self.collections, self._awaited()
        waited = np.clip(now - collections.asof[mine], 0.0, self.intervals()[mine])
        return float((collections.told_cost[mine] * waited).sum())

    def _look_ahead(self) -> None:
        """The next plan looks ahead from one listing to the next at the least: what those bring comes at once."""
        collections, mine = self.collections, self._awaited()
        if mine.any():
            share = collections.told_cost[mine]
            self.ahead = min(float((self.intervals()[mine] * share).sum() / share.sum()), self._learner.scale)
        else:
            # Else who is not worth a listing at today's price may be at the next one's.
            self.ahead = 0.0

    def _awaited(self) -> Bits:
        """The collections whose listings are waited for."""
        mine: Bits = self.collections.used & (self.collections.told_cost > 0.0) & ~self.collections.push
        return mine

    def settle_homes(self) -> None:
        """Members by collections, after some have moved or joined."""
        self.which = np.flatnonzero(self.home >= 0)
        self.which = self.which[np.argsort(self.home[self.which], kind="stable")]
        self.starts = np.searchsorted(self.home[self.which], np.arange(len(self.pause) + 1)).astype(np.int64)

    def members_due(self, rows: Integers, now: float, price: float) -> Floats:
        """When these members of collections in use are due."""
        return due_times(rows, self.home[rows], now, price, self.mind())

    def intervals(self) -> Floats:
        """How long each collection is left alone between listing polls."""
        told, collections = self._told_interval(), self.collections
        if not collections.joined.any() or self._price <= 0.0:
            return told
        with np.errstate(invalid="ignore"):
            finds = np.where(collections.over > 0.0, collections.joined / collections.over, 0.0)
        # Whoever names new members without end takes no more of the budget than a collection that is new.
        least = np.minimum(told, collections.cost / (_NEW * self._budget))
        return np.maximum(sooner(told, finds, self._price * collections.cost), least)

    def found(self, g: int, worth: float, elapsed: float) -> None:
        """A listing poll has found new members that are worth so much, after so long."""
        collections = self.collections
        collections.joined[g] = _FINDS * collections.joined[g] + worth
        collections.over[g] = _FINDS * collections.over[g] + elapsed

    def _told_interval(self) -> Floats:
        """The same for what they tell of known members alone."""
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
            self._aged,
        )

    def _settle(self) -> None:
        """How long each collection may go without a listing poll: on trial, or while it is new."""
        new = np.array([unproven(g, self.collections) for g in range(len(self.pause))], dtype=np.bool_)
        often = float(self.collections.cost[new].sum()) / (_NEW * self._budget)
        self.pause[:] = np.where(self.collections.push, np.inf, np.where(new, often, self.trial))
