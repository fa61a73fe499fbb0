"""Collections answering prices when harm grows with age: how often each is listed, and how its members are polled.

Rules of this file:
1. Signals are exact. What a member costs under even listings is `aged_told.told_cost`, told copies left to age and
   blind polls included; without listings it is polled plainly.
2. `fresh` of an answer is 1 − mean age, so that prices, budgets and bounds are reckoned as for freshness.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.signals.aged_told import ToldAge
from unstale.core.signals.answers import GRID, CollectionAnswer, CollectionTable, Rows
from unstale.core.signals.best_intervals import best_intervals


class AgedMarket:
    """Members in columns, asked again and again at other dues; `group` is the collection of each."""

    def __init__(self, change_rate: Floats, weight: Floats, group: Rows, table: CollectionTable) -> None:
        self.rate, self.weight, self.group, self.table = change_rate, weight, group, table
        self.live = np.flatnonzero((change_rate > 0.0) & (weight > 0.0))

    def answer(self, due: Floats, listing_due: Floats, grid: int = GRID) -> CollectionAnswer:
        """What every collection does when polls must be worth this much."""
        live, count, table = self.live, len(self.table), self.table
        rate, weight, group = self.rate[live], self.weight[live], self.group[live]
        told = ToldAge(due[live] * rate * rate / weight)

        def left(interval: Floats) -> Floats:
            saved = weight * (told.plain - told.cost(rate * interval[group])) / rate
            return np.asarray(np.bincount(group, saved, count) - listing_due / interval)

        low, high = np.full(count, np.inf), np.zeros(count)
        np.minimum.at(low, group, told.pushed / rate)
        np.maximum.at(high, group, 8.0 * told.longest / rate)
        idle = high == 0.0
        low, high = np.where(idle | (low <= 0.0), 1.0, low), np.where(idle, 2.0, high)
        step = np.linspace(0.0, 1.0, grid)[:, None]
        tried = np.clip(low * (np.maximum(high, 2.0 * low) / low) ** step, table.shortest, table.longest)
        interval = best_intervals(left, tried)
        saved = left(interval)
        never = (saved <= 0.0) & ~np.isfinite(table.longest)
        interval = np.where(never, np.inf, interval)
        cost, polls = told.cost(rate * interval[group]), told.polls(rate * interval[group])
        per, age = np.zeros(len(self.rate)), np.where(self.weight > 0.0, 0.0, np.inf)
        per[live], age[live] = rate * polls, (cost - told.share * polls) / rate
        fresh = 1.0 - np.where(self.rate > 0.0, age, 0.0)
        base = np.where(self.weight > 0.0, self.weight, 0.0)
        base[live] -= weight * told.plain / rate
        whole = np.bincount(self.group, base, count) + np.where(never, 0.0, saved)
        return CollectionAnswer(interval, per, fresh, np.asarray(whole))
