"""Collections that share members, answering prices: how often each is listed, given how often the others are.

Rules of this file:
1. Exact signals, freshness. A member of one collection is answered as ever, blind polls included; one
   of several is polled when any of them tells (`overlapping.looked_after`), or as if alone where that is better.
2. Collections take turns; those that share no member have the same turn. Each turn leaves more, so turns end.
3. What collections leave together need not have one top: turns begin from several starts, and the best is taken. What
   that may miss is in the bound, which does not depend on it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.gamma2 import p2_inverse
from unstale.core.signals.answers import CollectionAnswer, CollectionTable, Rows
from unstale.core.signals.best_intervals import best_intervals
from unstale.core.signals.overlapping import look_worth, looked_after, most_left

_GRID, _SECTIONS, _ROUNDS, _ENOUGH = 24, 20, 30, 1e-10


class OverlappingMarket:
    """Members in columns; `groups` has a row for each, the collections that tell of it, -1 where there are no more."""

    def __init__(self, change_rate: Floats, weight: Floats, groups: Rows, table: CollectionTable) -> None:
        self.rate, self.weight, self.groups, self.table = change_rate, weight, groups, table
        self.who, place = np.nonzero(groups >= 0)
        self.which = groups[self.who, place]
        self.turns = _turns(groups, len(table))
        #: where turns ended at the last price, which is near the next
        self.last: Floats | None = None

    def answer(self, due: Floats, listing_due: Floats) -> CollectionAnswer:
        """What every collection does when polls must be worth this much."""
        at = _MembersDue(self.rate, self.weight, due)
        slowest = float(np.max(at.plain, initial=0.0))
        never, seldom = np.full(len(self.table), np.inf), np.full(len(self.table), slowest if slowest > 0.0 else 1.0)
        starts = [never, seldom] if self.last is None else [self.last]
        ends = [self._settled(start, at, listing_due, slowest) for start in starts]
        interval = self.last = max(ends, key=lambda end: self._left(end, at, listing_due))
        rate, fresh = self._members(interval, at)
        return CollectionAnswer(interval, rate, fresh, np.zeros(len(self.table)))

    def bound(self, due: Floats, listing_due: Floats) -> float:
        """No policy leaves more: members share what looks at their collections cost (`overlapping.most_left`).

        Each pays what one more look is worth to it, where looks that cost so much are best: there collections that are
        looked at are paid just what they cost. Elsewhere shares are cut down to that, and the bound is looser.
        """
        from scipy.optimize import minimize  # half a second to import, and few need it

        count, size = len(self.table), len(self.rate)
        speed = np.bincount(self.which, (self.weight * self.rate)[self.who], count)
        unit = np.sqrt(np.maximum(speed, 1e-300) / listing_due)

        def harm(looks: Floats) -> tuple[float, Floats]:
            often = np.asarray(np.bincount(self.who, (looks * unit)[self.which], size), np.float64)
            left, worth = look_worth(self.rate, self.weight, due, often)
            asked = np.bincount(self.which, worth[self.who], count)
            return float((looks * unit) @ listing_due - left.sum()), (listing_due - asked) * unit

        found = minimize(
            harm, np.ones(count), jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * count, options={"ftol": 1e-15}
        )
        often = np.asarray(np.bincount(self.who, (found.x * unit)[self.which], size), np.float64)
        worth = look_worth(self.rate, self.weight, due, often)[1]
        asked = np.bincount(self.which, worth[self.who], count)
        paid = np.ones(size)
        np.minimum.at(paid, self.who, np.minimum(listing_due / np.maximum(asked, 1e-300), 1.0)[self.which])
        return float(most_left(self.rate, self.weight, due, worth * paid).sum())

    def _settled(self, start: Floats, at: _MembersDue, listing_due: Floats, slowest: float) -> Floats:
        table = self.table
        interval = np.minimum(np.maximum(start, table.shortest), table.longest)
        speed = np.bincount(self.which, (self.weight * self.rate)[self.who], len(table))
        low = np.sqrt(listing_due / np.maximum(speed, 1e-300))
        high = np.maximum(8.0 * slowest, 4.0 * low)
        steps = low * (high / low) ** np.linspace(0.0, 1.0, _GRID)[:, None]
        steps, before = np.clip(steps, table.shortest, table.longest), -np.inf
        for _ in range(_ROUNDS):
            for turn in self.turns:
                interval = self._turn(turn, interval, steps, at, listing_due)
            now = self._left(interval, at, listing_due)
            if len(self.turns) == 1 or now - before <= _ENOUGH * abs(now):
                break
            before = now
        return interval

    def _turn(self, turn: Rows, interval: Floats, steps: Floats, at: _MembersDue, listing_due: Floats) -> Floats:
        mine = np.isin(self.which, turn)
        rows, group = self.who[mine], np.searchsorted(turn, self.which[mine])
        part, groups, now = at.take(rows), self.groups[rows], interval.copy()

        def left(t: Floats) -> Floats:
            now[turn] = t
            rate, fresh = part.members(_looks(groups, now))
            own = part.weight * fresh - part.due * rate
            return np.asarray(np.bincount(group, own, len(turn)) - listing_due[turn] / t)

        found = best_intervals(left, steps[:, turn], _SECTIONS)
        never = ~np.isfinite(self.table.longest[turn]) & (left(np.full(len(turn), np.inf)) >= left(found))
        now[turn] = np.where(never, np.inf, found)
        return now

    def _left(self, interval: Floats, at: _MembersDue, listing_due: Floats) -> float:
        rate, fresh = self._members(interval, at)
        return float(self.weight @ fresh - at.due @ rate - (listing_due / interval).sum())

    def _members(self, interval: Floats, at: _MembersDue) -> tuple[Floats, Floats]:
        return at.members(_looks(self.groups, interval))


class _MembersDue:
    """Members at one set of dues."""

    def __init__(self, rate: Floats, weight: Floats, due: Floats) -> None:
        with np.errstate(all="ignore"):
            share = np.where(weight > 0.0, due * rate / weight, np.inf)
        self.weight, self.due = weight, due
        self.polled, self.still = (share < 1.0) & (rate > 0.0), (rate == 0.0) & (weight > 0.0)
        self.rate, self.theta = np.where(self.polled, rate, 1.0), 1.0 - np.where(self.polled, share, 0.5)
        self.y = p2_inverse(1.0 - self.theta)
        #: plain intervals of those that are polled
        self.plain = np.where(self.polled, self.y / self.rate, 0.0)

    def take(self, rows: Rows) -> _MembersDue:
        out = object.__new__(_MembersDue)
        for name, column in vars(self).items():
            setattr(out, name, column[rows])
        return out

    def members(self, looks: Floats) -> tuple[Floats, Floats]:
        """Polls per unit of time and freshness of members that are looked at so often by each of their collections."""
        kept, often = looked_after(self.rate, looks), looks.sum(axis=1)
        with np.errstate(all="ignore"):
            # polled when any collection tells, or as if there were none
            told = self.theta * kept > np.exp(-self.y)
            rate = np.where(told, self.rate * kept, self.rate / self.y)
            fresh = np.where(told, kept, -np.expm1(-self.y) / self.y)
            # looked at by one collection alone: even windows, with blind polls
            one, x = (looks > 0.0).sum(axis=1) == 1, self.rate / often
            total, m = x - np.log(self.theta), np.ones(len(x))
            m = np.maximum(np.floor(total / self.y), 1.0)
            m = np.where(self._window(m + 1.0, total) > self._window(m, total), m + 1.0, m)
            # the blind polls are total/m apart, and what is left of the window ends with the listing
            last = x - (m - 1.0) * total / m
            polls = (m - 1.0 - np.expm1(-last)) / x
            held = (-np.expm1(-total / m) * (m - 1.0) - np.expm1(-last)) / x
        rate, fresh = np.where(one, self.rate * polls, rate), np.where(one, held, fresh)
        return np.where(self.polled, rate, 0.0), np.where(self.polled, fresh, np.where(self.still, 1.0, 0.0))

    def _window(self, m: Floats, total: Floats) -> Floats:
        return np.asarray(m * (self.theta - np.exp(-total / m)))


def _looks(groups: Rows, interval: Floats) -> Floats:
    return np.asarray(np.where(groups >= 0, 1.0 / interval[groups], 0.0))


def _turns(groups: Rows, count: int) -> list[Rows]:
    """Collections in as few turns as come to hand, those that share a member in different ones."""
    near: list[set[int]] = [set() for _ in range(count)]
    for row in {tuple(row) for row in groups.tolist() if sum(g >= 0 for g in row) > 1}:
        shared = {g for g in row if g >= 0}
        for g in shared:
            near[g] |= shared - {g}
    turn: NDArray[np.intp] = np.full(count, -1, np.intp)
    for g in range(count):
        taken = {int(turn[h]) for h in near[g]}
        turn[g] = next(k for k in range(count + 1) if k not in taken)
    return [np.flatnonzero(turn == k) for k in range(int(turn.max(initial=-1)) + 1)]
