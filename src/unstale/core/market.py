"""Sources answering prices: what each is polled at, and what hosts whose cap binds charge on top.

Rules of this file:
1. A poll must be worth price·cost, plus its host's surcharge: 0, unless the host's cap binds.
2. Answers fall as the price rises, the sum at a host never exceeds its cap, and both come with derivatives.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet, Rows
from unstale.core.kernels.hosts import HostSums
from unstale.core.roots.meeting import ADJACENT, HUGE, TINY, meet
from unstale.frozen import dataclass


@dataclass(slots=True)
class MarketAnswer:
    """What the whole fleet does at one price."""

    price: float
    rates: Floats
    surcharge: Floats | None
    spent: float
    slope: float


class Market:
    """Sources answering prices. Host surcharges are kept between questions: the next price is near the last."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.weight = np.broadcast_to(np.asarray(fleet.weights(), float), (len(fleet),))
        self.cost = np.broadcast_to(np.asarray(fleet.costs(), float), (len(fleet),))
        self.worthless = (self.weight <= 0) | (fleet.value.limit() <= 0)
        if fleet.cap is not None and fleet.host is not None:
            # Rows sorted by host, so that a few hosts are a few slices.
            self.by_host: Rows = np.argsort(fleet.host, kind="stable")
            self.edges = np.searchsorted(fleet.host[self.by_host], np.arange(len(fleet.cap) + 1))
            self.cheapest = np.full(len(fleet.cap), np.inf)
            used = self.edges[:-1] < self.edges[1:]
            self.cheapest[used] = np.minimum.reduceat(self.cost[self.by_host], self.edges[:-1][used])
            # What each host's cheapest poll had to be worth when last asked, at which price, and how it moves.
            self.level, self.asked, self.drift = np.zeros((3, len(fleet.cap)))
            self.turn = False
            self.sums = HostSums.of(fleet, np.where(self.worthless, 0.0, self.weight), self.by_host, self.edges)
            with np.errstate(invalid="ignore"):
                self.leaves = np.where(self.worthless, 0.0, self.weight * fleet.value.limit())

    def rates(self, due: Floats, rows: Rows | slice = slice(None)) -> tuple[Floats, Floats]:
        """Sync rates when a poll of each source must be worth `due`, and their derivatives in `due`."""
        fleet, weight, worthless = self.fleet, self.weight[rows], self.worthless[rows]
        value = fleet.value if isinstance(rows, slice) else fleet.value.take(rows)
        with np.errstate(all="ignore"):
            # Even a free poll is only taken where it is worth something.
            needed = np.where(worthless, np.inf, due / weight)
            rate, slope = value.response(needed)
            slope /= np.where(worthless, 1.0, weight)
        if fleet.least_rate is not None:
            low = fleet.least_rate[rows]
            slope = np.where(rate < low, 0.0, slope)
            rate = np.maximum(rate, low)
        if fleet.most_rate is not None:
            high = fleet.most_rate[rows]
            slope = np.where(rate > high, 0.0, slope)
            rate = np.minimum(rate, high)
        return rate, slope

    def sated(self) -> float:
        """What is spent, caps of hosts aside, when nobody gains from another poll: mostly inf, as polls always pay."""
        fleet = self.fleet
        with np.errstate(all="ignore"):
            most = np.where(self.worthless, 0.0, 1.0 / fleet.value.free())
        if fleet.most_rate is not None:
            most = np.minimum(most, fleet.most_rate)
        if fleet.least_rate is not None:
            most = np.maximum(most, fleet.least_rate)
        return float(np.dot(self.cost, most))

    def answer(self, price: float) -> MarketAnswer:
        with np.errstate(over="ignore"):
            due = price * self.cost
        rate, slope = self.rates(due)
        spent_slope = slope * self.cost**2
        surcharge = None
        if self.fleet.cap is not None and self.fleet.host is not None:
            surcharge = np.zeros(len(self.fleet.cap))
            held = _sums(self.fleet.host, rate, len(self.fleet.cap)) > self.fleet.cap
            if held.any():
                self._hold(price, held, rate, spent_slope, surcharge)
        with np.errstate(invalid="ignore"):
            spent = float(np.dot(self.cost, rate))
        return MarketAnswer(price, rate, surcharge, spent, float(spent_slope.sum()))

    def approach(self, price: float, budget: float, steps: int = 12) -> float:
        """A price near the root, with host levels near theirs: Newton on all of them together.

        It walks towards the answer but guarantees nothing; the bracketed search that follows does.
        """
        fleet, host = self.fleet, self.fleet.host
        if fleet.cap is None or host is None:
            return price
        n, surcharge = len(fleet.cap), np.zeros(len(fleet.cap))
        for _ in range(steps):
            rate, slope = self.rates(price * self.cost + surcharge[host])
            spent, dear = float(np.dot(self.cost, rate)), float(np.dot(self.cost**2, slope))
            total, plain, costly = (_sums(host, x, n) for x in (rate, slope, slope * self.cost))
            held = ((surcharge > 0) | (total > fleet.cap)) & (plain < 0)
            with np.errstate(all="ignore"):
                # Held hosts stay at their caps: d(total) = plain·d(surcharge) + costly·d(price) = cap − total.
                missing = np.where(held, (fleet.cap - total) / plain, 0.0)
                follow = np.where(held, costly / plain, 0.0)
                step = (budget - spent - np.dot(costly, missing)) / (dear - np.dot(costly, follow))
            if not np.isfinite(step):
                break
            new = float(np.clip(price + step, price / 4, price * 4))
            surcharge = np.clip(surcharge + missing - follow * (new - price), surcharge / 4, 4 * surcharge + 4 * new)
            done = abs(new - price) <= 1e-3 * price
            price = new
            if done:
                break
        self.level = np.where(surcharge > 0, price * self.cheapest + surcharge, 0.0)
        self.asked[:] = price
        return price

    def _hold(
        self, price: float, held: NDArray[np.bool_], rate: Floats, spent_slope: Floats, surcharge: Floats
    ) -> None:
        """Raise the surcharge of each held host until its sources fit its cap, in place."""
        assert self.fleet.cap is not None
        hosts = np.flatnonzero(held)
        cap, floor = self.fleet.cap[hosts], price * self.cheapest[hosts]

        # The unknown is what the host's cheapest poll must be worth: with equal costs it does not move with
        # the price at all, so the level found last time is the answer this time.
        def at(level: Floats, which: Rows) -> tuple[Rows, Rows, Floats, Floats]:
            first = self.edges[hosts[which]]
            sizes = self.edges[hosts[which] + 1] - first
            rows, seat = self.by_host[_ranges(first, sizes)], np.repeat(np.arange(len(which)), sizes)
            due = price * self.cost[rows] + np.maximum(level - floor[which], 0.0)[seat]
            return rows, seat, *self.rates(due, rows)

        def total(level: Floats, which: Rows) -> tuple[Floats, Floats]:
            extra = np.maximum(level - floor[which], 0.0)
            if self.sums is not None and (found := self.sums.at(price, extra, hosts[which])) is not None:
                return found
            _, seat, rates, slopes = at(level, which)
            return _sums(seat, rates, len(which)), _sums(seat, slopes, len(which))

        leaving: dict[int, tuple[list[float], list[float]]] = {}
        expected = self.level[hosts] + (price - self.asked[hosts]) * self.drift[hosts]
        start = np.where(expected > floor, expected, np.where(floor > 0, floor * 2.0, 1.0))
        root = meet(total, cap, start, low=floor, edge=lambda *at: self._edge(price, hosts, leaving, *at))
        every = np.arange(len(hosts))
        rows, seat, rates, slopes = at(np.where(root.jump, root.high, root.at), every)
        if root.jump.any():
            jumps = np.flatnonzero(root.jump)
            _, chair, above, _ = at(root.low[jumps], jumps)
            below = rates[root.jump[seat]]
            less, more = (_sums(chair, r, len(jumps)) for r in (below, above))
            share = np.clip((cap[jumps] - less) / np.maximum(more - less, TINY), 0.0, 1.0)
            rates[root.jump[seat]] = below + share[chair] * (above - below)
        self.level[hosts] = np.where(root.jump, root.high, root.at)
        surcharge[hosts] = np.maximum(self.level[hosts] - floor, 0.0)
        rate[rows] = rates
        # Within a held host a dearer fleet price only moves polls from dear sources to cheap ones.
        cost = self.cost[rows]
        weighted, plain = (_sums(seat, x, len(hosts)) for x in (slopes * cost, slopes))
        with np.errstate(all="ignore"):
            pull = np.nan_to_num(weighted / plain)
        spent_slope[rows] = slopes * cost * (cost - pull[seat])
        self.asked[hosts], self.drift[hosts] = price, self.cheapest[hosts] - pull

    def _edge(
        self,
        price: float,
        hosts: Rows,
        leaving: dict[int, tuple[list[float], list[float]]],
        low: Floats,
        high: Floats,
        at: Floats,
        step: Floats,
        which: Rows,
    ) -> Floats:
        """Where to look next inside each host's bracket, knowing at which levels its sources leave.

        A leaving source drops from a fortieth of its change rate to nothing, and just before that its rate falls
        like one over the logarithm of the distance. So first the bracket is cut at a leaving level, then the
        logarithm of the distance to the next one is searched, by Newton and by halving in turn.
        """
        found: list[float] = []
        self.turn = not self.turn
        columns = (column.tolist() for column in (hosts[which], low, high, at, step))
        for h, below, above, here, newton_step in zip(*columns, strict=True):
            if h not in leaving:
                leaving[h] = self._leaving(price, h)
            levels, just_before = leaving[h]
            first = bisect_right(levels, below)
            inside = bisect_left(just_before, above, first) - first
            if inside:
                found.append(just_before[first + inside // 2])
            elif first < len(levels):
                level = just_before[first]
                distance = level - here
                newton = level - distance * np.exp(-newton_step / distance) if self.turn and distance > 0 else np.nan
                halved = level - np.sqrt((level - below) * max(level - above, level * ADJACENT))
                found.append(newton if below < newton < above else halved)
            else:
                found.append(np.nan)
        return np.array(found)

    def _leaving(self, price: float, h: int) -> tuple[list[float], list[float]]:
        """The levels at which sources of a host leave, and just before each: it may drop a bit earlier."""
        rows = self.by_host[self.edges[h] : self.edges[h + 1]]
        levels = self.leaves[rows] - price * (self.cost[rows] - self.cheapest[h])
        levels = np.sort(levels[levels < HUGE])
        return levels.tolist(), (levels * (1 - 4 * ADJACENT)).tolist()


def _sums(group: Rows, values: Floats, n: int) -> Floats:
    """Σ values of each group."""
    return np.asarray(np.bincount(group, values, n), dtype=np.float64)


def _ranges(starts: Rows, sizes: Rows) -> Rows:
    """The concatenation of arange(start, start + size)."""
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes))
