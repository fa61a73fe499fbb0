"""The price of a poll: one number per budget, one more per host whose cap binds.

Rules of this file:
1. At a price every source answers alone: its interval is the one after which a poll is worth what it costs.
2. A budget or a target only decides the price; spending falls and staleness rises as the price rises.
3. Where no price meets the budget (sources jump in or out together), the two plans on either side of the jump
   are mixed: both are optimal at that price, and so is every mixture, because staleness is linear between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats, number
from unstale.core.fleet import Fleet, Rows
from unstale.core.plan import Plan
from unstale.core.roots import ADJACENT, HUGE, TINY, meet
from unstale.errors import InfeasibleError, InputError, sentence


def plan(fleet: Fleet, budget: float) -> Plan:
    """The sync rates that keep the fleet freshest within a budget.

    Minimises Σ weight·staleness(sync_rate) subject to Σ cost·sync_rate ≤ budget, each host's Σ sync_rate ≤ cap
    and each source's bounds. Optimal because staleness is convex in the sync rate [003 eq. 49, G.1 in docs].
    If polling pays nothing more at any price the rest of the budget stays unspent and the price is 0.

    >>> from unstale.core.values import PoissonFreshness
    >>> plan(Fleet.of(PoissonFreshness([1, 2, 3, 4, 5])), 5.0).sync_rate.round(2).tolist()
    [1.15, 1.36, 1.35, 1.14, 0.0]
    """
    budget = number("budget", budget, least=0, remedy="give the cost all polls together may have per unit of time")
    _feasible(fleet, budget)
    fast = _fast_plan(fleet, budget)
    if fast is not None:
        return fast
    return _meet(_Market(fleet), budget)


def least_budget(fleet: Fleet, staleness: float) -> Plan:
    """The plan of least budget whose fleet staleness (weighted mean penalty) is at most `staleness`.

    The same price decides: staleness rises with it. Refused if even polling without a budget stays above.

    >>> from unstale.core.values import PoissonFreshness
    >>> fleet = Fleet.of(PoissonFreshness([1, 2, 3, 4, 5]))
    >>> round(least_budget(fleet, 1 - 0.373888699274).spent, 6)
    5.0
    """
    target = number("target staleness", staleness, above=0, remedy="give the largest mean penalty you accept")
    _feasible(fleet, np.inf)
    return _meet(_Market(fleet), target, by_staleness=True)


def needed(fleet: Fleet) -> float:
    """The budget that the longest intervals need, whatever the price."""
    return 0.0 if fleet.least_rate is None else fleet.spending(fleet.least_rate)


def _feasible(fleet: Fleet, budget: float) -> None:
    if fleet.least_rate is None:
        return
    need = needed(fleet)
    if need > budget * (1 + 1e-12):
        rows = int(np.count_nonzero(fleet.least_rate))
        raise InfeasibleError(
            sentence("budget", f"{budget:g}", f"cannot meet the longest intervals, which need {need:g}",
                     f"raise it to {need:g} or lengthen max_interval on {rows} sources"),
            least_budget=need,
        )  # fmt: skip
    if fleet.cap is not None and fleet.host is not None:
        used = np.bincount(fleet.host, fleet.least_rate, len(fleet.cap))
        if np.any(over := used > fleet.cap * (1 + 1e-12)):
            h = int(np.argmax(over))
            name = h if fleet.host_names is None else fleet.host_names[h]
            raise InfeasibleError(
                sentence(f"cap of host {name}", f"{fleet.cap[h]:g}",
                         f"cannot meet the longest intervals of its sources, which need {used[h]:g}",
                         "raise the cap or lengthen max_interval"),
            )  # fmt: skip


def _fast_plan(fleet: Fleet, budget: float) -> Plan | None:
    """The fused passes, where they apply: freshness of Poisson sources with nothing but a budget."""
    from unstale.core.values import PoissonFreshness

    value = fleet.value
    if not (fleet.unbounded and isinstance(value, PoissonFreshness) and value.order == "fixed" and budget > 0):
        return None
    from unstale.core import kernels

    weight = np.broadcast_to(np.float64(1.0), len(fleet)) if fleet.weight is None else fleet.weight
    # A pass over a small fleet costs nothing; over a hundred million, one that only polishes is left out.
    rtol = 1e-12 if len(fleet) <= 100_000 else 1e-11
    root, rates = kernels.plan(value.change_rate, weight, fleet.cost, budget, rtol=rtol)
    if not root.converged and root.price > 0:
        if not np.isfinite(root.jump):
            return None
        cheaper = kernels.rates(float(np.nextafter(root.price, 0.0)), value.change_rate, weight, fleet.cost)
        rates += (budget - root.spent) / root.jump * (cheaper - rates)
    return Plan(fleet, budget, root.price, None, rates)


@dataclass(slots=True)
class _Answer:
    """What the whole fleet does at one price."""

    price: float
    rates: Floats
    surcharge: Floats | None
    spent: float
    slope: float


class _Market:
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

    def answer(self, price: float) -> _Answer:
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
        return _Answer(price, rate, surcharge, spent, float(spent_slope.sum()))

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
            _, seat, rates, slopes = at(level, which)
            return _sums(seat, rates, len(which)), _sums(seat, slopes, len(which))

        expected = self.level[hosts] + (price - self.asked[hosts]) * self.drift[hosts]
        start = np.where(expected > floor, expected, np.where(floor > 0, floor * 2.0, 1.0))
        root = meet(total, cap, start, low=floor, edge=lambda *at: self._edge(price, hosts, *at))
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
        self, price: float, hosts: Rows, low: Floats, high: Floats, at: Floats, step: Floats, which: Rows
    ) -> Floats:
        """Where to look next inside each host's bracket, knowing at which levels its sources leave.

        A leaving source drops from a fortieth of its change rate to nothing, and just before that its rate falls
        like one over the logarithm of the distance. So first the bracket is cut at a leaving level, then the
        logarithm of the distance to the next one is searched, by Newton and by halving in turn.
        """
        found = np.full(len(which), np.nan)
        self.turn = not self.turn
        for k, h in enumerate(hosts[which]):
            rows = self.by_host[self.edges[h] : self.edges[h + 1]]
            level = self.leaves[rows] - price * (self.cost[rows] - self.cheapest[h])
            level = np.sort(level[(level > low[k]) & (level < HUGE)]) * (1 - 4 * ADJACENT)  # it may drop a bit earlier
            inside = np.searchsorted(level, high[k])
            if inside:
                found[k] = level[inside // 2]
            elif len(level):
                distance = level[0] - at[k]
                newton = level[0] - distance * np.exp(-step[k] / distance) if self.turn and distance > 0 else np.nan
                halved = level[0] - np.sqrt((level[0] - low[k]) * max(level[0] - high[k], level[0] * ADJACENT))
                found[k] = newton if low[k] < newton < high[k] else halved
        return found


def _sums(group: Rows, values: Floats, n: int) -> Floats:
    """Σ values of each group."""
    return np.asarray(np.bincount(group, values, n), dtype=np.float64)


def _ranges(starts: Rows, sizes: Rows) -> Rows:
    """The concatenation of arange(start, start + size)."""
    ends = np.cumsum(sizes)
    return np.asarray(np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes))


def _meet(market: _Market, target: float, by_staleness: bool = False) -> Plan:
    """The plan at the price whose spending (or fleet staleness) meets the target."""
    fleet = market.fleet
    total_weight = float(market.weight.sum())

    def staleness(answer: _Answer) -> float:
        return Plan(fleet, answer.spent, answer.price, answer.surcharge, answer.rates).fleet_staleness

    if not by_staleness and needed(fleet) >= target:
        return Plan(fleet, target, _shutting(fleet), None, _floor(fleet))
    if by_staleness and staleness(idle := _Answer(_shutting(fleet), _floor(fleet), None, 0.0, 0.0)) <= target:
        return Plan(fleet, fleet.spending(idle.rates), idle.price, None, idle.rates)

    goal = 1.0 / target if by_staleness else target
    # The answers on either side of the goal, nearest so far: asked again they might round differently.
    sides: dict[bool, _Answer] = {}

    def total(price: Floats, _: Rows) -> tuple[Floats, Floats]:
        answer = market.answer(float(price[0]))
        have, slope = answer.spent, answer.slope
        if by_staleness:
            # The inverse of staleness falls with the price: dΣweight·staleness = −price·dspent.
            have = 1.0 / staleness(answer)
            slope = answer.price * answer.slope / total_weight * have**2
        sides[have > goal] = answer
        return np.array([have]), np.array([slope])

    start = _first_guess(market, None if by_staleness else target)
    if not by_staleness:
        start = market.approach(start, target)
    root = meet(total, np.array([goal]), np.array([start]))
    if root.high[0] <= TINY:
        return _without_end(market, target, by_staleness)
    if not root.jump[0]:
        found = next(answer for answer in sides.values() if answer.price == root.at[0])
        return Plan(fleet, found.spent if by_staleness else target, found.price, found.surcharge, found.rates)
    if root.low[0] >= HUGE or root.low[0] < 1e-300:
        raise InputError(
            sentence("budget" if not by_staleness else "target staleness", f"{target:g}",
                     "gives a poll a price that no number can hold", "count in another unit of time"))  # fmt: skip
    dear, cheap = sides[False], sides[True]
    if by_staleness:
        a, b = staleness(dear), staleness(cheap)
        share = (a - target) / (a - b) if a > b else 1.0
    else:
        share = (target - dear.spent) / (cheap.spent - dear.spent)
    rates = dear.rates + share * (cheap.rates - dear.rates)
    return Plan(fleet, fleet.spending(rates) if by_staleness else target, dear.price, dear.surcharge, rates)


def _without_end(market: _Market, target: float, by_staleness: bool) -> Plan:
    """Polls for nothing: bounds and caps stop the sources before the budget does."""
    free = market.answer(0.0)
    plan = Plan(market.fleet, free.spent if by_staleness else target, 0.0, free.surcharge, free.rates)
    if by_staleness and plan.fleet_staleness > target:
        least = plan.fleet_staleness
        raise InputError(
            sentence("target staleness", f"{target:g}", f"cannot be reached, the bounds and caps leave {least:g}",
                     "raise the target or the caps, or shorten min_interval"))  # fmt: skip
    return plan


def _floor(fleet: Fleet) -> Floats:
    return np.zeros(len(fleet)) if fleet.least_rate is None else fleet.least_rate


def _shutting(fleet: Fleet) -> float:
    """The least price at which nobody wants more than its bound: what the first extra poll would be worth."""
    with np.errstate(all="ignore"):
        start = np.inf if fleet.least_rate is None else 1.0 / fleet.least_rate
        worth = fleet.weights() * fleet.value.value(np.broadcast_to(start, (len(fleet),))) / fleet.costs()
    worth = np.nan_to_num(np.asarray(worth), nan=0.0, posinf=np.inf)
    return float(worth.max(initial=0.0))


def _first_guess(market: _Market, budget: float | None) -> float:
    """A price of the right kind: what polls are worth when every source gets an equal share of the budget."""
    some = np.arange(0, len(market.weight), max(len(market.weight) // 1000, 1))
    even = 1.0 if budget is None else max(float(market.cost.sum()) / budget, 1e-300)
    with np.errstate(all="ignore"):
        value = market.fleet.value.take(some).value(np.full(len(some), even))
        worth = market.weight[some] * value / market.cost[some]
    worth = worth[np.isfinite(worth) & (worth > 0)]
    return float(np.exp(np.mean(np.log(worth)))) if len(worth) else 1.0
