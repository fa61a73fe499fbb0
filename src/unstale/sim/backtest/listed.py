"""Our policy where one look tells about many sources: listing polls and polls of members, decided by one price.

Rules of this file:
1. A listing shows what `sees` made of the trace, never the trace; every listing poll is paid for.
2. Between two looks at the price collections stand alone, and each is played from listing to listing.
3. Collections that are not trusted or do not pay are polled on trial, and their members as if there were none.
"""

from __future__ import annotations

import numpy as np

from unstale.core import orders
from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers, expected_cost
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.signals.choices import Mind, look, pending, renew_rates
from unstale.core.signals.pricing import price_near
from unstale.core.signals.scalars import plain_table
from unstale.core.signals.trust import collection_columns, judge, member_columns, unproven
from unstale.sim.backtest.listed_kernels import World, play, room
from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.sees import Sees, Shown, shown
from unstale.sim.backtest.setting import Setting

#: looks at the price over the window, and at the fleet as a whole
_LOOKS, _REVIEWS = 400, 40
#: trial listings take at most this share of the budget, those of collections that are new another
_TRIAL, _NEW = 0.005, 0.05
#: half-lives compete in units of the mean interval, or of this many mean gaps where signals show every change
_UNIT = 0.3
#: intervals that are tried for a listing
_GRID = 32
#: what was spent too little is spent within so many looks; more than so many looks' worth is forgiven
_REPAID, _FORGIVEN = 25.0, 10.0
#: what was saved can be spent at once up to so many looks' worth
_SAVED = 4.0
#: what the ratio of spent to foretold keeps from look to look
_KEPT = 0.96
#: in logarithms: the price moves no further in one look while signals are used, for what they bring is only guessed,
#: and while they are not
_FARTHEST, _FREE = 0.7, 12.0


def listed(setting: Setting, polls_per_change: float, seed: int, sees: Sees) -> tuple[Polls, Floats]:
    """The polls of a learner that sees signals, and the listing polls: a row of time and cost for each."""
    told = shown(setting, sees, seed)
    return _Player(setting, polls_per_change, seed, sees, told).play()


class _Player:
    def __init__(self, setting: Setting, polls_per_change: float, seed: int, sees: Sees, told: Shown) -> None:
        n = len(setting)
        self.setting, self.told = setting, told
        self.world = World(
            setting.trace.starts,
            setting.trace.times,
            setting.trace.starts[:-1].copy(),
            sees.modified,
            told.starts,
            told.which,
            told.told_at,
            told.shown_at,
            told.member,
            told.signals_from,
            told.signals_from.copy(),
            sees.liar == "always",
        )
        self.budget = setting.budget(polls_per_change)
        mean = n / self.budget
        self.mean = mean
        self.learner = Learner(n, mean, start=setting.start, weight=setting.weight, objective=setting.objective)
        rng = np.random.default_rng(seed)
        self.learner.columns.head_start[:] = mean * ((orders.phases(np.full(n, mean)) + rng.random()) % 1.0)
        count = len(told.starts) - 1
        cost = np.full(count, sees.cost)
        self.lists = sees.listing
        self.members = member_columns(n, setting.start)
        self.members.rate[:] = 1.0 / mean
        self.collections = collection_columns(cost, np.full(count, float(sees.entries)), setting.start)
        self.fleet = np.zeros(5)
        self.listed = np.zeros(n, np.bool_)
        self.listed[told.which] = True
        self.trial = max(float(cost.sum()) / (_TRIAL * self.budget), mean)
        #: the longest time between listings of each collection: on trial, or while it is new
        self._pause = np.full(count, self.trial)
        self.grid = np.geomspace(max(0.5 * sees.cost / self.budget, 1e-4 * mean), max(self.trial, 3.0 * mean), _GRID)
        #: the first listings come at once, but not all of them
        self.collections.due[:] = setting.start + min(mean, self.trial) * 0.1 * rng.random(count)
        if not sees.listing:
            self.collections.trusted[:] = False
            self.collections.due[:] = np.inf
        self.table, self.row = plain_table(), np.zeros(self.learner.columns.rows.shape[1])

    def play(self) -> tuple[Polls, Floats]:
        setting, learner, told = self.setting, self.learner, self.told
        span, n = setting.end - setting.start, len(setting)
        price = 0.5 * learner.typical_price()
        which, times, listings = [np.empty(0, np.int64)], [np.empty(0)], [np.empty((0, 2))]
        owed, spent_lately, foretold_lately = 0.0, 2.0, 2.0
        each = self.budget * span / _LOOKS
        left = 0.0
        for k in range(_LOOKS):
            now, until = setting.start + span * k / _LOOKS, setting.start + span * (k + 1) / _LOOKS
            if k and k % (_LOOKS // _REVIEWS) == 0:
                learner.review()
                unit = self.mean
                if self.collections.used.any():
                    unit = min(unit, _UNIT / float(self.members.rate[self.listed].mean()))
                learner.shared.half_lives[:] = unit * np.array(HALF_LIVES)
            if self.lists:
                judge(self.collections, self.fleet)
                new = np.array([unproven(g, self.collections) for g in range(len(self._pause))])
                often = float(self.collections.cost[new].sum()) / (_NEW * self.budget)
                self._pause[:] = np.where(new, often, self.trial)
            renew_rates(told.starts, told.which, self._mind())
            correction = min(max(spent_lately / foretold_lately, 0.3), 3.0)
            left = min(left, _SAVED * each) + each
            wanted = self.budget * min(max(1.0 - owed / _REPAID, 0.5), 1.5) / correction
            if not self.collections.trusted.any():
                # What falls due is counted, not guessed: spend what there is.
                wanted = max(left, 0.01) / (until - now)
            price = self._price(wanted, price, now, until)
            foretold_now = self._foretold(price, now, until)
            if self.lists:
                self._appoint(now)
            # At another price they may be worth a poll: who was signalled is looked at again.
            self.members.check[self.members.signals > 0] = 0.0
            rows, at, listing = self._played(now, until, price, left, k)
            which.append(rows)
            times.append(at)
            listings.append(listing)
            spent = float(len(rows) + listing[:, 1].sum())
            left -= spent
            owed = min(max(owed + spent / each - 1.0, -_FORGIVEN), _FORGIVEN)
            spent_lately = _KEPT * spent_lately + spent / each
            foretold_lately = _KEPT * foretold_lately + foretold_now / self.budget
        polled, source = np.concatenate(times), np.concatenate(which)
        order = np.lexsort((polled, source))
        polls = Polls(np.searchsorted(source[order], np.arange(n + 1)), polled[order])
        return polls, np.concatenate(listings)

    def _foretold(self, price: float, now: float, until: float) -> float:
        """What will be spent per second at a price; sets intervals and levels."""
        told = self.told
        mind = self._mind()
        spent = look(price, told.starts, told.which, self.grid, self.table, mind)
        spent += pending(price, now, told.starts, told.which, mind) / (until - now)
        rows = np.flatnonzero(~(self.listed & self._used()))
        if len(rows):
            due = expected_cost(rows, price, now, until, mind.columns, mind.shared, mind.timing, mind.at)
            spent += due / (until - now)
        idle = ~self.collections.used & self.lists
        return spent + float((self.collections.cost / self._pause)[idle].sum())

    def _used(self) -> np.ndarray:
        used = np.zeros(len(self.setting), np.bool_)
        used[self.told.which] = np.repeat(self.collections.used, np.diff(self.told.starts))
        return used

    def _price(self, wanted: float, guess: float, now: float, until: float) -> float:
        """The price at which so much will be spent per second, no further from the last than one look allows."""
        farthest = _FARTHEST if self.collections.trusted.any() else _FREE
        return price_near(guess, farthest, lambda price: self._foretold(price, now, until), wanted)

    def _appoint(self, now: float) -> None:
        """When each collection is listed next: an interval after the last time, and on trial at least."""
        collections = self.collections
        pause = np.minimum(collections.interval, self._pause)
        first = collections.asof <= self.setting.start
        collections.due[:] = np.where(
            first, np.minimum(collections.due, now + pause), np.maximum(collections.asof + pause, now)
        )
        np.minimum(collections.interval, self._pause, out=collections.interval)

    def _mind(self) -> Mind:
        learner = self.learner
        return Mind(
            learner.columns,
            learner.shared,
            learner.timing,
            self.members,
            self.collections,
            self.fleet,
            learner._room,
            self.row,
        )

    def _played(
        self, now: float, until: float, price: float, left: float, look: int
    ) -> tuple[Integers, Floats, Floats]:
        # Turns begin elsewhere at each look: nobody is always the last whom the budget reaches.
        turn = int(look * 0.6180339887498949 * len(self.setting)) % len(self.setting)
        made = room(int(left) + len(self.collections.cost) + 1, left, turn)
        play(now, until, price, self.world, self._mind(), made)
        polls, listings = made.many
        if polls > len(made.which) or listings > len(made.which):
            raise RuntimeError("more polls in one look than a budget can mean")
        return made.which[:polls], made.polled[:polls], made.listing[:listings]
