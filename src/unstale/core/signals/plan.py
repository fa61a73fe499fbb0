"""Collections and lone sources in one optimum: the price that spends the budget, and the bound that certifies it.

Rules of this file:
1. At a price each collection and each lone source answers alone.
2. Spending falls as the price rises, so the budget is met by halving; where it jumps, two plans share the time.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.signals.collected_market import CollectedAnswer, CollectedFleet, CollectedFleetMarket, weighted
from unstale.errors import InfeasibleError, require, sentence
from unstale.frozen import dataclass

#: a price is found to this share of itself
_CLOSE = 1e-13
#: or, where hosts have caps or collections share members, whose answers are found to eight digits, to this
_CAPPED = 1e-8
#: prices below it are nothing
_FREE = 1e-200


@dataclass(frozen=True)
class CollectedPlan:
    """How often to list every collection and how often each source is polled on average, at which price.

    `sync_rate` counts a member's polls after signals and its blind polls; where two plans share the time, it is a mean.
    Where the objective is age, `freshness` is 1 − mean age, and so are what follows from it: the bound and the gap.
    """

    problem: CollectedFleet
    budget: float
    price: float
    listing_rate: Floats
    sync_rate: Floats
    freshness: Floats
    #: what a poll must bring besides its price, by host; empty where no host has a cap
    surcharge: Floats = field(default_factory=lambda: np.empty(0))

    @cached_property
    def spent(self) -> float:
        listed = float(self.problem.table.cost @ self.listing_rate)
        return listed + self.problem.fleet.spending(self.sync_rate)

    @cached_property
    def weighted_freshness(self) -> float:
        weight = np.broadcast_to(np.asarray(self.problem.fleet.weights(), float), self.freshness.shape)
        return weighted(weight, self.freshness)

    @cached_property
    def bound(self) -> float:
        """No policy that keeps the budget has more weighted freshness than this.

        D = price·budget + Σ surcharge·cap over hosts + Σ over collections of the most that any interval leaves + Σ
        over lone sources of what they leave [docs/theory/signals.md, (4)].
        """
        cap = self.problem.fleet.cap
        busy = self.surcharge > 0.0
        capped = 0.0 if cap is None else float(self.surcharge[busy] @ cap[busy])
        return self.price * self.budget + capped + CollectedFleetMarket(self.problem).left(self.price, self.surcharge)

    @property
    def gap(self) -> float:
        """What another plan could add at most, as a share of the weight."""
        weight = np.broadcast_to(np.asarray(self.problem.fleet.weights(), float), self.freshness.shape)
        return max(self.bound - self.weighted_freshness, 0.0) / max(float(weight.sum()), 1e-300)


def plan_collected(problem: CollectedFleet, budget: float) -> CollectedPlan:
    """The listing polls and polls of sources that keep a fleet freshest within a budget.

    Maximises Σ weight·freshness subject to Σ cost·rate ≤ budget, listing polls included.
    The price is the one at which answers spend the budget; `gap` says what any other policy could still add: 0 up to
    rounding for exact signals. Known Poisson rates. [docs/theory/signals.md, (1) to (4) and (7)].

    >>> from unstale.core.fleet import Fleet
    >>> from unstale.core.signals.answers import CollectionTable
    >>> from unstale.core.values import PoissonFreshness
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

    >>> from unstale.core.fleet import Fleet
    >>> from unstale.core.signals.answers import CollectionTable
    >>> from unstale.core.values import PoissonFreshness
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
    asking = CollectedFleetMarket(problem)

    def have(answer: CollectedAnswer) -> float:
        return weighted(asking.weight, answer.fresh) if fresh else answer.spent

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
    close = _CLOSE if problem.fleet.cap is None and problem.others is None else _CAPPED
    while high.price - low.price > close * high.price and abs(have(high) - goal) > 1e-13 * goal:
        middle = asking.answer(float(np.sqrt(low.price * high.price)))
        if middle.price in (low.price, high.price):
            break
        low, high = (middle, high) if have(middle) > goal else (low, middle)
    more = have(low) - have(high)
    share = min(max((goal - have(high)) / more, 0.0), 1.0) if more > 0 else 0.0
    budget = high.spent + share * (low.spent - high.spent) if fresh else goal
    return _planned(problem, budget, high, low, share)


def _planned(
    problem: CollectedFleet, budget: float, dear: CollectedAnswer, cheap: CollectedAnswer, share: float
) -> CollectedPlan:
    def mixed(a: Floats, b: Floats) -> Floats:
        return np.asarray(a + share * (b - a))

    return CollectedPlan(
        problem,
        budget,
        dear.price,
        mixed(dear.listing_rate, cheap.listing_rate),
        mixed(dear.sync_rate, cheap.sync_rate),
        mixed(dear.fresh, cheap.fresh),
        dear.surcharge,
    )


def _first(asking: CollectedFleetMarket, budget: float) -> float:
    """A price of the right kind: what polls are worth if all sources share the budget evenly."""
    every = max(float(asking.cost.sum()) / budget, 1e-300)
    with np.errstate(all="ignore"):
        value = asking.problem.fleet.value.value(np.full(len(asking.weight), every))
        worth = asking.weight * value / asking.cost
    found = float(np.nan_to_num(worth, nan=0.0, posinf=0.0).mean())
    return found if found > 0 else 1.0
