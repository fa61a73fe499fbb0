"""Collections answering prices: how often each is listed, how its members are polled, and what that brings.

Rules of this file:
1. Members are Poisson and rates are known. `due` is what a poll of a member must be worth, `listing_due` what a listing
   poll must: price·cost plus a surcharge each.
2. A collection whose signals neither lie nor keep silent is answered exactly, blind polls included (`exact.window`);
   a noisy one by the lower estimate of `noisy.listed_freshness`, its members polled at a doubt or as if alone.
3. Never to list is one of the answers, unless a longest interval forbids it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.gamma2 import p2_inverse
from unstale.core.signals.noisy import CERTAIN, mean_cycle, value
from unstale.frozen import dataclass

Rows = NDArray[np.intp]
#: intervals tried before the best is polished
GRID = 64
_ROUNDS, _STEPS = 12, 60
#: points of the table that turns dues into doubts
_POINTS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class CollectionTable:
    """Collections in columns: what a listing poll costs, its bounds, and the noise of its signals."""

    cost: Floats
    shortest: Floats
    longest: Floats
    recall: Floats
    precision: Floats

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class CollectionAnswer:
    """Listing intervals (inf: never), polls per unit of time and freshness of each member, and what is left over.

    `left` is weighted freshness less all dues, per collection.
    """

    interval: Floats
    rate: Floats
    fresh: Floats
    left: Floats


class CollectionMarket:
    """Members in columns, asked again and again at other dues; `group` is the collection of each."""

    def __init__(self, change_rate: Floats, weight: Floats, group: Rows, table: CollectionTable) -> None:
        self.rate, self.weight, self.group, self.table = change_rate, weight, group, table
        noisy = (table.recall < 1.0) | (table.precision < 1.0)
        self.noisy = noisy[group]

    def answer(self, due: Floats, listing_due: Floats, grid: int = GRID) -> CollectionAnswer:
        """What every collection does when polls must be worth this much."""
        at = _At(self, due)
        tried = self._tried(at, listing_due, grid)
        best = tried[np.argmax([at.left(t, listing_due) for t in tried], axis=0), np.arange(len(listing_due))]
        interval = self._polished(at, best, listing_due)
        left = at.left(interval, listing_due)
        never = (left <= 0.0) & ~np.isfinite(self.table.longest)
        interval = np.where(never, np.inf, interval)
        return at.answered(interval, np.where(never, 0.0, left))

    def _tried(self, at: _At, listing_due: Floats, grid: int) -> Floats:
        """From the shortest interval that may pay to far beyond the longest plain one, within bounds; by collection."""
        count = len(self.table)
        with np.errstate(all="ignore"):
            speed = np.bincount(self.group, np.where(at.polled, self.weight * at.fresh * self.rate, 0.0), count)
            low = np.sqrt(2.0 * listing_due / speed)
            plain = np.where(at.polled, at.plain / self.rate, 0.0)
        high = np.zeros(count)
        np.maximum.at(high, self.group, plain)
        low = np.where(np.isfinite(low) & (low > 0.0), low, 1.0)
        high = np.maximum(8.0 * high, 4.0 * low)
        step = np.linspace(0.0, 1.0, grid)[:, None]
        return np.asarray(np.clip(low * (high / low) ** step, self.table.shortest, self.table.longest))

    def _polished(self, at: _At, interval: Floats, listing_due: Floats) -> Floats:
        """Climb: find the best interval for the blind polls of the last one, and again, until both agree."""
        best, most = interval, at.left(interval, listing_due)
        for _ in range(_ROUNDS):
            kind = at.kinds(interval)
            t = np.log(interval)
            for _ in range(_STEPS):
                have, slope = at.marginal(np.exp(t), kind)
                with np.errstate(all="ignore"):
                    # Newton on logarithms of both: the value of a listing grows like a power of its interval
                    step = np.log(listing_due / have) * have / slope
                step = np.clip(np.nan_to_num(step, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
                t = t + step
                if np.abs(step).max(initial=0.0) < 1e-14:
                    break
            interval = np.clip(np.exp(np.clip(t, -690.0, 690.0)), self.table.shortest, self.table.longest)
            left = at.left(interval, listing_due)
            better = left > most
            if not better.any():
                break
            best, most = np.where(better, interval, best), np.where(better, left, most)
            interval = best
        return best


class _At:
    """Members at one set of dues."""

    def __init__(self, market: CollectionMarket, due: Floats) -> None:
        self.m, self.due = market, due
        rate, weight = market.rate, market.weight
        with np.errstate(all="ignore"):
            share = np.where(weight > 0, due * rate / weight, np.inf)
        #: worth polling at all; the rest is fresh for ever, or abandoned
        self.polled = (share < 1.0) & (rate > 0.0)
        self.share = np.where(self.polled, share, 0.5)
        self.plain = p2_inverse(self.share)
        self.fresh, self.cycle = 1.0 - self.share, np.ones(len(rate))
        for recall, precision in _distinct(market):
            rows = np.flatnonzero(_is(market, recall, precision) & self.polled)
            doubt, cycle = _doubts(self.share[rows], recall, precision)
            self.fresh[rows], self.cycle[rows] = np.exp(-doubt), cycle / rate[rows]
        self.without = np.where(self.polled, np.exp(-self.plain), 0.0)
        self.base = np.where((rate == 0.0) & (weight > 0), 1.0, self.without) * weight

    def kinds(self, interval: Floats) -> Floats:
        """Polls in a window of this length, the one after a signal included; 0 for who does better alone."""
        x = self.m.rate * interval[self.m.group]
        total = x - np.log(self.fresh)
        many = np.maximum(np.floor(total / np.maximum(self.plain, 1e-300)), 1.0)
        more = self._brought(many + 1.0, x) > self._brought(many, x)
        count = np.where(self.m.noisy, 1.0, np.where(more, many + 1.0, many))
        worse = self._brought(count, x) <= x * self.without
        return np.where(self.polled & ~(self.m.noisy & worse), count, 0.0)

    def _brought(self, count: Floats, x: Floats) -> Floats:
        """A window's value in mean gaps and units of weight: count·(fresh − e^(−K/count)) without cancelling."""
        with np.errstate(all="ignore"):
            n = np.maximum(count, 1.0)
            return np.asarray(n * self.fresh * -np.expm1(-x / n - np.log(self.fresh) * (1.0 - 1.0 / n)))

    def left(self, interval: Floats, listing_due: Floats) -> Floats:
        """What each collection brings per unit of time beyond plain polling, its listing polls paid."""
        kind, x = self.kinds(interval), self.m.rate * interval[self.m.group]
        with np.errstate(all="ignore"):
            more = np.where(kind > 0, self._brought(kind, x) / x - self.without, 0.0) * self.m.weight
        return np.asarray(np.bincount(self.m.group, more, len(self.m.table)) - listing_due / interval)

    def marginal(self, interval: Floats, kind: Floats) -> tuple[Floats, Floats]:
        """Φ(T) of each collection for given kinds, and its slope in log T."""
        x = self.m.rate * interval[self.m.group]
        with np.errstate(all="ignore"):
            n = np.maximum(kind, 1.0)
            stretch = np.exp(-x / n + np.log(self.fresh) / n)
            unit = np.where(kind > 0, self.m.weight / self.m.rate, 0.0)
            have = unit * (self._brought(n, x) - x * stretch)
            slope = unit * x * x / n * stretch
        count = len(self.m.table)
        return _sums(self.m.group, have, count), _sums(self.m.group, slope, count)

    def answered(self, interval: Floats, left: Floats) -> CollectionAnswer:
        m = self.m
        listed = np.isfinite(interval)
        span = np.where(listed, interval, 1.0)
        kind = np.where(listed[m.group], self.kinds(span), 0.0)
        x = m.rate * span[m.group]
        with np.errstate(all="ignore"):
            last = np.exp(-x / kind - np.log(self.fresh) * (1.0 - 1.0 / kind))
            exact = (kind - last) / span[m.group]
            noisy = -np.expm1(-x) / x / self.cycle
            with_it = np.where(m.noisy, noisy, exact)
            rate = np.where(kind > 0, with_it, np.where(self.polled, m.rate / self.plain, 0.0))
            brought = np.where(kind > 0, self._brought(kind, x) / x, self.without)
            fresh = np.where(self.polled, brought + self.due * rate / m.weight, 0.0)
        fresh = np.where((m.rate == 0.0), 1.0, fresh)
        whole = np.bincount(m.group, self.base, len(m.table)) + left
        return CollectionAnswer(interval, rate, fresh, np.asarray(whole))


def _sums(group: Rows, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(group, values, count), dtype=np.float64)


def _distinct(market: CollectionMarket) -> list[tuple[float, float]]:
    table = market.table
    pairs = {(float(r), float(p)) for r, p in zip(table.recall, table.precision, strict=True)}
    return sorted(pairs - {(1.0, 1.0)})


def _is(market: CollectionMarket, recall: float, precision: float) -> NDArray[np.bool_]:
    table = market.table
    return np.asarray(((table.recall == recall) & (table.precision == precision))[market.group])


@lru_cache(maxsize=64)
def _table(recall: float, precision: float) -> tuple[Floats, Floats]:
    """Doubts and what a poll is worth at them, of a member that changes once per unit of time."""
    doubt = np.geomspace(1e-9, CERTAIN, _POINTS)
    return doubt, np.maximum.accumulate(value(doubt, 1.0, recall, precision))


def _doubts(share: Floats, recall: float, precision: float) -> tuple[Floats, Floats]:
    """The doubt at which a poll is worth `share` of its limit, and the mean cycle in gaps: only the share matters."""
    doubt, worth = _table(recall, precision)
    found = np.exp(np.interp(share, worth, np.log(doubt)))
    for _ in range(2):
        cycle = mean_cycle(found, 1.0, recall, precision)
        with np.errstate(all="ignore"):
            moved = found + (share - value(found, 1.0, recall, precision)) * np.exp(found) / cycle
        close = np.abs(moved - found) < 0.01 * found
        found = np.where(close, moved, found)
    return found, mean_cycle(found, 1.0, recall, precision)
