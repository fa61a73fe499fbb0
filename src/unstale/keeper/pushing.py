"""Pushed signals: what is said of sources without a poll is followed as far as its word has proved good.

Rules of this file:
1. A channel (a person or a program that hints, a WebSub hub, a webhook) is a collection without a source: its number is
   below 0. Whoever it first tells of joins it.
2. A channel that is trusted is followed where a poll is worth its price; one that is new, within a part of the budget;
   one that has told lies, within a very small part, so that it can win trust back.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers
from unstale.core.signals.choices import worth_polling_of
from unstale.core.signals.pushed import hear_push
from unstale.core.signals.trust import unproven
from unstale.keeper.signals import Signals

#: shares of the budget for polls that follow a channel: while it is new, and once it was found untrue
_NEW, _UNTRUE = 0.05, 0.005
#: polls that one found untrue may save up
_SAVED = 5.0
#: before anything was found a channel is taken to leave half of all changes unsaid, as sure as so many changes make
_UNSAID = 2.0


class PushedSignals(Signals):
    """Collections of which the last are channels: `channels[name's number]` is the place of each."""

    channels: dict[int, int]

    def begin_channels(self) -> None:
        """Nothing was pushed yet: a whole round of polls may follow before it is known what the word is worth."""
        push, columns = self.collections.push, self.collections
        columns.silent[push] = columns.watched[push] = _UNSAID
        columns.allowed[push] = float(self._learner.columns.cost.sum())

    def attend(self, now: float) -> None:
        """Channels have told of all time up to now."""
        push, asof = self.collections.push, self.collections.asof
        asof[push] = np.maximum(asof[push], now)

    def push(self, channel: int, rows: Integers, now: float, price: float, joining: Bits) -> Bits:
        """A channel says that these rows have changed; which of them are to be polled at once.

        Those that are not `joining` (collections themselves) are followed and teach nothing.
        """
        g, mind = self.channels[channel], self.mind()
        self._earn(g, now)
        self.attend(now)
        self._join(g, rows[joining], now)
        own = joining & (self.home[rows] == g)
        hear_push(now, rows[own], mind)
        beside = rows[joining & ~own]
        if len(beside):
            self._heard_beside(g, beside, np.full(len(beside), now), -np.inf)
        if self.collections.used[g]:
            worth = np.ones(len(rows), np.bool_)
            awake = own & np.isfinite(self._learner.columns.last[rows])
            worth[awake] = worth_polling_of(rows[awake], g, now, price, mind)
            return worth
        cost = np.cumsum(self._learner.columns.cost[rows])
        follow: Bits = cost <= self.collections.allowed[g]
        self.collections.allowed[g] -= cost[follow].max(initial=0.0)
        return follow

    def _earn(self, g: int, now: float) -> None:
        """What polls may cost that follow a channel which is not trusted."""
        columns, cost = self.collections, self._learner.columns.cost
        new = columns.trusted[g] or unproven(g, columns)
        most = float(cost.sum()) if new else min(_SAVED * float(cost.mean()), float(cost.sum()))
        earned = (_NEW if new else _UNTRUE) * self._budget * max(now - columns.asof[g], 0.0)
        columns.allowed[g] = min(columns.allowed[g] + earned, most)

    def _join(self, g: int, rows: Integers, now: float) -> None:
        """Whoever is told of for the first time; what was before is time that the channel told nothing of."""
        last = self._learner.columns.last[rows]
        before: Floats = self.collections.uncovered[g] - np.where(np.isfinite(last), now - last, 0.0)
        free, other = self.home[rows] < 0, (self.home[rows] >= 0) & (self.home[rows] != g)
        self.home[rows[free]] = g
        self.members.uncovered[rows[free]] = before[free]
        if other.any():
            self.overlap.join(rows[other], g, before[other])
        if free.any():
            self.settle_homes()
