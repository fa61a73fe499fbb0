"""Collections and lone sources in one optimum: the price that spends the budget, and the bound that certifies it.

Rules of this file:
1. At a price each collection and each lone source answers alone.
2. Spending falls as the price rises, so the budget is met by halving; where it jumps, two plans share the time.
3. The bound trusts nothing the solver remembered: every collection is asked again on a finer grid of intervals. For
   noisy signals it takes what pushed or exact ones would bring, whichever is less: so it holds for every policy.
4. Freshness only, and no caps of hosts. A source is a member of one collection at most; members have no bounds of their
   own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.fleet import Fleet
from unstale.core.market import Market
from unstale.core.signals.answers import GRID, CollectionMarket, CollectionTable, Rows
from unstale.core.signals.noisy import doubt_for
from unstale.core.values import PoissonFreshness
from unstale.errors import InfeasibleError, require, sentence

#: the certificate looks at so many times more intervals than the solver
_FINER = 8
#: a price is found to this share of itself
_CLOSE = 1e-13
#: prices below it are nothing
_FREE = 1e-200


@dataclass(frozen=True, slots=True, eq=False)
class CollectedFleet:
    """A fleet, the collection of each of its sources (−1: none), and the collections."""

    fleet: Fleet
    member: Rows
    table: CollectionTable

    def __post_init__(self) -> None:
        listed = self.member >= 0
        value = self.fleet.value
        require(
            isinstance(value, PoissonFreshness) or not listed.any(),
            "objective",
            type(value).__name__,
            "is not freshness with Poisson changes, which collections need",
            "leave the collections out",
        )
        for name, bound, free in (
            ("max_interval", self.fleet.least_rate, 0.0),
            ("min_interval", self.fleet.most_rate, np.inf),
        ):
            bounded = np.zeros(len(listed), bool) if bound is None else listed & (bound != free)
            require(
                not bounded.any(),
                name,
                f"of source {int(np.argmax(bounded))}",
                "is set on a member of a collection",
                "set it on the collection instead",
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    price: float
    listing_rate: Floats
    sync_rate: Floats
    fresh: Floats
    spent: float


@dataclass(frozen=True)
class CollectedPlan:
    """How often to list every collection and how often each source is polled on average, at which price.

    `sync_rate` counts a member's polls after signals and its blind polls; where two plans share the time, it is a mean.
    """

    problem: CollectedFleet
    budget: float
    price: float
    listing_rate: Floats
    sync_rate: Floats
    freshness: Floats

    @cached_property
    def spent(self) -> float:
        listed = float(self.problem.table.cost @ self.listing_rate)
        return listed + self.problem.fleet.spending(self.sync_rate)

    @cached_property
    def weighted_freshness(self) -> float:
        weight = np.broadcast_to(np.asarray(self.problem.fleet.weights(), float), self.freshness.shape)
        return float(weight @ self.freshness)

    @cached_property
    def bound(self) -> float:
        """No policy that keeps the budget has more weighted freshness than this.

        D = price·budget + Σ over collections of the most that any interval leaves + Σ over lone sources of what they
        leave [docs/theory/signals.md, (4)].
        """
        return self.price * self.budget + _Asking(self.problem).left(self.price)

    @property
    def gap(self) -> float:
        """What another plan could add at most, as a share of the weight."""
        weight = np.broadcast_to(np.asarray(self.problem.fleet.weights(), float), self.freshness.shape)
        return max(self.bound - self.weighted_freshness, 0.0) / max(float(weight.sum()), 1e-300)


class _Asking:
    """The whole fleet at a price and surcharges."""

    def __init__(self, problem: CollectedFleet) -> None:
        fleet = problem.fleet
        n, self.problem, self.market = len(fleet), problem, Market(fleet)
        self.lone, self.listed = np.flatnonzero(problem.member < 0), np.flatnonzero(problem.member >= 0)
        self.weight, self.cost = self.market.weight, self.market.cost
        rate = fleet.value.change_rate if isinstance(fleet.value, PoissonFreshness) else np.zeros(n)
        self.rate = np.broadcast_to(np.asarray(rate, np.float64), (n,))
        self.collections = CollectionMarket(
            self.rate[self.listed], self.weight[self.listed], problem.member[self.listed], problem.table
        )

    def answer(self, price: float) -> _Answer:
        problem, fleet = self.problem, self.problem.fleet
        due, listing = price * self.cost, price * problem.table.cost
        rate, fresh = np.zeros(len(fleet)), np.zeros(len(fleet))
        rate[self.lone] = self.market.rates(due[self.lone], self.lone)[0]
        with np.errstate(divide="ignore"):
            fresh[self.lone] = 1.0 - fleet.value.take(self.lone).staleness(1.0 / rate[self.lone])
        listing_rate = np.zeros(len(problem.table))
        if len(problem.table):
            got = self.collections.answer(due[self.listed], listing)
            rate[self.listed], fresh[self.listed], listing_rate = got.rate, got.fresh, 1.0 / got.interval
        spent = float(self.cost @ rate + problem.table.cost @ listing_rate)
        return _Answer(price, listing_rate, rate, fresh, spent)

    def left(self, price: float) -> float:
        """Σ of the most that any policy leaves of weighted freshness at this price, source by source."""
        problem, fleet = self.problem, self.problem.fleet
        due, listing = price * self.cost, price * problem.table.cost
        rate = self.market.rates(due[self.lone], self.lone)[0]
        with np.errstate(all="ignore"):
            fresh = 1.0 - fleet.value.take(self.lone).staleness(1.0 / rate)
        total = float(self.weight[self.lone] @ fresh - due[self.lone] @ rate)
        if not len(problem.table):
            return total
        exact = replace(problem.table, recall=np.ones(len(problem.table)), precision=np.ones(len(problem.table)))
        asked = CollectionMarket(self.rate[self.listed], self.weight[self.listed], problem.member[self.listed], exact)
        gain = asked.answer(due[self.listed], listing, GRID * _FINER).left
        if self.collections.noisy.any():
            gain = np.minimum(gain, self._pushed(due[self.listed]))
        return total + float(gain.sum())

    def _pushed(self, due: Floats) -> Floats:
        """What each collection's members would bring if its signals were pushed and free."""
        m = self.collections
        with np.errstate(all="ignore"):
            per = np.where(m.weight > 0, due / m.weight, np.inf)
        live = (m.rate > 0) & (m.weight > 0)
        table = m.table
        doubt = np.zeros(len(per))
        rows = np.flatnonzero(live)
        doubt[rows] = doubt_for(per[rows], m.rate[rows], table.recall[m.group[rows]], table.precision[m.group[rows]])
        return np.asarray(np.bincount(m.group, m.weight * np.exp(-doubt), len(table)))


def plan_collected(problem: CollectedFleet, budget: float) -> CollectedPlan:
    """The listing polls and polls of sources that keep a fleet freshest within a budget.

    Maximises Σ weight·freshness subject to Σ cost·rate ≤ budget, listing polls included.
    The price is the one at which answers spend the budget; `gap` says what any other policy could still add: 0 up to
    rounding for exact signals. Known Poisson rates. [docs/theory/signals.md, (1) to (4) and (7)].

    >>> rate, weight = np.array([0.2, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    >>> one = CollectionTable(*(np.array([x]) for x in (1.0, 0.0, np.inf, 1.0, 1.0)))
    >>> fleet = Fleet.of(PoissonFreshness(rate), weight=weight)
    >>> made = plan_collected(CollectedFleet(fleet, np.zeros(5, np.intp), one), 4.0)
    >>> round(made.price, 9), round(1 / float(made.listing_rate[0]), 9), round(made.weighted_freshness, 8)
    (0.377524247, 0.652001658, 3.81892551)
    """
    goal = number("budget", budget, above=0, remedy="give the cost all polls together may have per unit of time")
    return _met(problem, goal, fresh=False)


def least_collected(problem: CollectedFleet, freshness: float) -> CollectedPlan:
    """The plan of least budget, listing polls included, whose weighted mean freshness is at least `freshness`.

    >>> one = CollectionTable(*(np.array([x]) for x in (1.0, 0.0, np.inf, 1.0, 1.0)))
    >>> fleet = Fleet.of(PoissonFreshness([0.2, 0.5, 1.0, 2.0, 8.0]), weight=[1.0, 1.0, 2.0, 1.0, 1.0])
    >>> problem = CollectedFleet(fleet, np.zeros(5, np.intp), one)
    >>> round(least_collected(problem, 3.81892551 / 6).spent, 6)
    4.0
    """
    target = number("target freshness", freshness, above=0, most=1, remedy="try 0.9")
    weight = np.broadcast_to(np.asarray(problem.fleet.weights(), float), (len(problem.fleet),))
    return _met(problem, target * float(weight.sum()), fresh=True)


def _met(problem: CollectedFleet, goal: float, fresh: bool) -> CollectedPlan:
    """The plan at the price where spending, or weighted freshness, which both fall as it rises, meets the goal."""
    asking = _Asking(problem)

    def have(answer: _Answer) -> float:
        return float(asking.weight @ answer.fresh) if fresh else answer.spent

    low = high = asking.answer(_first(asking, 1.0 if fresh else goal))
    while have(low) < goal:
        low = asking.answer(low.price / 4.0)
        if low.price < _FREE:
            require(not fresh, "target freshness", goal, "cannot be reached, bounds forbid it", "lower it")
            # Bounds stop the polls before the budget does.
            return _planned(problem, goal, replace(low, price=0.0), low, 0.0)
    while have(high) > goal:
        high = asking.answer(high.price * 4.0)
        if high.price > 1.0 / _FREE:
            need = high.spent
            if fresh:
                return _planned(problem, need, high, high, 0.0)
            raise InfeasibleError(
                sentence(
                    "budget",
                    f"{goal:g}",
                    f"cannot meet the longest intervals, which need {need:g}",
                    f"raise it to {need:g}",
                ),
                least_budget=need,
            )
    while high.price - low.price > _CLOSE * high.price and abs(have(high) - goal) > 1e-13 * goal:
        middle = asking.answer(float(np.sqrt(low.price * high.price)))
        if middle.price in (low.price, high.price):
            break
        low, high = (middle, high) if have(middle) > goal else (low, middle)
    more = have(low) - have(high)
    share = min(max((goal - have(high)) / more, 0.0), 1.0) if more > 0 else 0.0
    budget = high.spent + share * (low.spent - high.spent) if fresh else goal
    return _planned(problem, budget, high, low, share)


def _planned(problem: CollectedFleet, budget: float, dear: _Answer, cheap: _Answer, share: float) -> CollectedPlan:
    def mixed(a: Floats, b: Floats) -> Floats:
        return np.asarray(a + share * (b - a))

    return CollectedPlan(
        problem,
        budget,
        dear.price,
        mixed(dear.listing_rate, cheap.listing_rate),
        mixed(dear.sync_rate, cheap.sync_rate),
        mixed(dear.fresh, cheap.fresh),
    )


def _first(asking: _Asking, budget: float) -> float:
    """A price of the right kind: what polls are worth if all sources share the budget evenly."""
    every = max(float(asking.cost.sum()) / budget, 1e-300)
    with np.errstate(all="ignore"):
        value = asking.problem.fleet.value.value(np.full(len(asking.weight), every))
        worth = asking.weight * value / asking.cost
    found = float(np.nan_to_num(worth, nan=0.0, posinf=0.0).mean())
    return found if found > 0 else 1.0
