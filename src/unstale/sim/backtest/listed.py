"""Our policy where one look tells about many sources: listing polls and polls of members, decided by one price.

Rules of this file:
1. A listing shows what `sees` made of the trace, never the trace; every listing poll is paid for.
2. Between two looks at the price collections stand alone, and each is played from listing to listing.
3. What is decided is decided by `keeper.signals`, as in a living fleet; here is who polls, and what is left to spend.
"""

from __future__ import annotations

import numpy as np

from unstale.core import orders
from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers
from unstale.core.learning.learner import Learner
from unstale.keeper.signals import Signals
from unstale.sim.backtest.listed_kernels import World, play, room
from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.sees import Sees, Shown, shown
from unstale.sim.backtest.setting import Setting

#: looks at the price over the window, and at the fleet as a whole
_LOOKS, _REVIEWS = 400, 40
#: what was saved can be spent at once up to so many looks' worth; half of it is kept for when much changes at once, and
#: what is saved beside that half is spent, or saved again, within so many looks
_SAVED, _RESERVE, _REPAID = 4.0, 2.0, 3.0
#: what the ratio of spent to foretold keeps from look to look
_KEPT = 0.96


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
        self.learner = Learner(n, mean, start=setting.start, weight=setting.weight, objective=setting.objective)
        rng = np.random.default_rng(seed)
        self.learner.columns.head_start[:] = mean * ((orders.phases(np.full(n, mean)) + rng.random()) % 1.0)
        count = len(told.starts) - 1
        parts = [told.which[told.starts[g] : told.starts[g + 1]] for g in range(count)]
        self.signals = Signals(
            self.learner, parts, np.full(count, sees.cost), np.full(count, float(sees.entries)), setting.start
        )
        #: where there is no listing to poll, none is
        self.dead = np.full(count, not sees.listing)
        #: the first listings come at once, but not all of them
        first = setting.start + min(mean, self.signals.trial) * 0.1 * rng.random(count)
        self.signals.collections.due[:] = np.where(self.dead, np.inf, first)

    def play(self) -> tuple[Polls, Floats]:
        setting, signals = self.setting, self.signals
        span, n = setting.end - setting.start, len(setting)
        price = 0.5 * self.learner.typical_price()
        which, times, listings = [np.empty(0, np.int64)], [np.empty(0)], [np.empty((0, 2))]
        spent_lately, foretold_lately = 2.0, 2.0
        each = self.budget * span / _LOOKS
        left, everybody, dearest = 0.0, np.ones(n, np.bool_), float(signals.collections.cost.max(initial=0.0))
        for k in range(_LOOKS):
            now, until = setting.start + span * k / _LOOKS, setting.start + span * (k + 1) / _LOOKS
            if k and k % (_LOOKS // _REVIEWS) == 0:
                signals.review()
            correction = min(max(spent_lately / foretold_lately, 0.3), 3.0)
            # A listing that costs more than that must be saved for, or nobody would be polled while it waits.
            left = min(left, max(_SAVED * each, dearest) + signals.put_aside()) + each
            # As in a living fleet: what polls after the next listing will cost is saved until then.
            end = max(until, now + signals.ahead)
            spare = left - each * (1.0 + _RESERVE) - signals.put_aside(now)
            wanted = (self.budget * (end - now) + spare / _REPAID) / correction
            if not signals.collections.trusted.any():
                # What falls due is counted, not guessed: spend what there is.
                wanted, end = max(left, 0.01), until
            price = signals.price_to(wanted, now, end, price, everybody, self.dead)
            self._appoint(now)
            # At another price they may be worth a poll: who was signalled is looked at again.
            signals.members.check[signals.members.signals > 0] = 0.0
            rows, at, listing, short = self._played(now, until, price, left, k)
            which.append(rows)
            times.append(at)
            listings.append(listing)
            spent = float(len(rows) + listing[:, 1].sum())
            left -= spent
            # A look that ran out of budget says only that no less was worth a poll than foretold: a correction that
            # took what was left for what was worth it would ask for ever more.
            foretold = signals.at_once + (signals.foretold - signals.at_once) * (until - now) / (end - now)
            worth = max(spent, foretold) if short else spent
            spent_lately = _KEPT * spent_lately + worth / each
            foretold_lately = _KEPT * foretold_lately + foretold / each
        polled, source = np.concatenate(times), np.concatenate(which)
        order = np.lexsort((polled, source))
        polls = Polls(np.searchsorted(source[order], np.arange(n + 1)), polled[order])
        return polls, np.concatenate(listings)

    def _appoint(self, now: float) -> None:
        """When each collection is listed next: an interval after the last time, and on trial at least."""
        collections, pause = self.signals.collections, self.signals.intervals()
        first = collections.asof <= self.setting.start
        due = np.where(first, np.minimum(collections.due, now + pause), np.maximum(collections.asof + pause, now))
        collections.due[:] = np.where(self.dead, np.inf, due)
        collections.interval[:] = pause

    def _played(
        self, now: float, until: float, price: float, left: float, look: int
    ) -> tuple[Integers, Floats, Floats, bool]:
        # Turns begin elsewhere at each look: nobody is always the last whom the budget reaches.
        turn = int(look * 0.6180339887498949 * len(self.setting)) % len(self.setting)
        made = room(int(left) + len(self.dead) + 1, left, turn)
        play(now, until, price, self.world, self.signals.mind(), made)
        polls, listings = made.many
        if polls > len(made.which) or listings > len(made.which):
            raise RuntimeError("more polls in one look than a budget can mean")
        return made.which[:polls], made.polled[:polls], made.listing[:listings], bool(made.left[1])
