"""Collections and lone sources at a price: each of them answers alone, and so does the bound of all policies.

Rules of this file:
1. The bound trusts nothing the solver remembered: every collection is asked again on a finer grid of intervals. For
   noisy signals it takes what pushed or exact ones would bring, whichever is less: so it holds for every policy.
2. Freshness, or age with exact signals and no caps of hosts. Members have no bounds of their own. Those of several
   collections are answered by `overlapping_market`: freshness, exact signals and no caps of hosts.
3. A host whose cap binds has a surcharge (`hosts`), which listing polls at it pay too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.market import Market
from unstale.core.signals.aged_market import AgedMarket
from unstale.core.signals.answers import GRID, CollectionMarket, CollectionTable, Rows
from unstale.core.signals.hosts import surcharges
from unstale.core.signals.noisy import doubt_for
from unstale.core.signals.overlapping_market import OverlappingMarket
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.errors import require
from unstale.frozen import dataclass

#: the certificate looks at so many times more intervals than the solver
_FINER = 8


@dataclass(frozen=True, slots=True, eq=False)
class CollectedFleet:
    """A fleet, the collection of each of its sources (−1: none), and the collections."""

    fleet: Fleet
    member: Rows
    table: CollectionTable
    #: the host of each collection, as a row of the fleet's caps; -1: none of them
    host: Rows | None = None
    #: further collections of each source, a column each, -1 where there are no more
    others: Rows | None = None

    def __post_init__(self) -> None:
        listed = self.member >= 0
        value = self.fleet.value
        require(
            isinstance(value, PoissonFreshness | PoissonAge) or not listed.any(),
            "objective",
            type(value).__name__,
            "is neither freshness nor age with Poisson changes, which collections need",
            "leave the collections out",
        )
        exact = bool(((self.table.recall == 1.0) & (self.table.precision == 1.0)).all())
        require(
            exact or (isinstance(value, PoissonFreshness) and self.others is None),
            "recall or precision",
            "below 1",
            "is planned for freshness and sources of one collection each",
            "leave them out",
        )
        require(
            self.others is None or isinstance(value, PoissonFreshness),
            "source",
            "in several collections",
            "is planned for freshness alone",
            "name one collection for each source",
        )
        require(
            self.fleet.cap is None or (isinstance(value, PoissonFreshness) and self.others is None),
            "collections",
            "for age, or with sources in several",
            "are planned without caps of hosts",
            "leave the caps out",
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
class CollectedAnswer:
    """How often everything is polled at a price, how fresh that keeps it and what it spends."""

    price: float
    listing_rate: Floats
    sync_rate: Floats
    fresh: Floats
    spent: float
    surcharge: Floats


class CollectedFleetMarket:
    """The whole fleet at a price and surcharges."""

    def __init__(self, problem: CollectedFleet) -> None:
        fleet = problem.fleet
        n, self.problem, self.market = len(fleet), problem, Market(fleet)
        self.lone, self.listed = np.flatnonzero(problem.member < 0), np.flatnonzero(problem.member >= 0)
        self.weight, self.cost = self.market.weight, self.market.cost
        value = fleet.value
        known = value.change_rate if isinstance(value, PoissonFreshness | PoissonAge) else np.zeros(n)
        self.rate = np.broadcast_to(np.asarray(known, np.float64), (n,))
        rate, weight, member = self.rate[self.listed], self.weight[self.listed], problem.member[self.listed]
        self.collections: CollectionMarket | AgedMarket | OverlappingMarket
        if problem.others is not None:
            groups = np.column_stack([member, problem.others[self.listed]])
            self.collections = OverlappingMarket(rate, weight, groups, problem.table)
        elif isinstance(fleet.value, PoissonAge):
            self.collections = AgedMarket(rate, weight, member, problem.table)
        else:
            self.collections = CollectionMarket(rate, weight, member, problem.table)

    def answer(self, price: float) -> CollectedAnswer:
        cap = self.problem.fleet.cap
        if cap is None:
            return self._at(price, np.empty(0))
        enough, short = surcharges(lambda s: self._loads(self._at(price, s)), cap, price)
        return self._shared(self._at(price, enough), self._at(price, short), cap)

    def _shared(self, rare: CollectedAnswer, often: CollectedAnswer, cap: Floats) -> CollectedAnswer:
        """Where the polls at a host jump over its cap, both answers share the time there."""
        problem, fleet = self.problem, self.problem.fleet
        assert fleet.host is not None
        less, more = self._loads(rare), self._loads(often)
        with np.errstate(all="ignore"):
            share = np.where(more > less, np.clip((cap - less) / (more - less), 0.0, 1.0), 0.0)
        # Members go with their collection, wherever they are.
        home = np.full(len(problem.table), -1) if problem.host is None else problem.host
        listing = np.where(home >= 0, share[home], 0.0)
        own = share[fleet.host]
        if len(problem.table):
            own = np.where(problem.member >= 0, listing[problem.member], own)
        listing_rate = rare.listing_rate + listing * (often.listing_rate - rare.listing_rate)
        rate, fresh = (a + own * (b - a) for a, b in ((rare.sync_rate, often.sync_rate), (rare.fresh, often.fresh)))
        spent = float(self.cost @ rate + problem.table.cost @ listing_rate)
        return CollectedAnswer(rare.price, listing_rate, rate, fresh, spent, rare.surcharge)

    def _loads(self, answer: CollectedAnswer) -> Floats:
        """Polls per unit of time at every host."""
        fleet, host = self.problem.fleet, self.problem.host
        assert fleet.host is not None
        assert fleet.cap is not None
        load = np.bincount(fleet.host, answer.sync_rate, len(fleet.cap))
        if host is not None:
            load = load + np.bincount(host[host >= 0], answer.listing_rate[host >= 0], len(fleet.cap))
        return np.asarray(load)

    def _dues(self, price: float, surcharge: Floats) -> tuple[Floats, Floats]:
        """What polls of sources, and of collections, must bring."""
        problem = self.problem
        due, listing = price * self.cost, price * problem.table.cost
        if len(surcharge):
            assert problem.fleet.host is not None
            due = due + surcharge[problem.fleet.host]
            if problem.host is not None:
                listing = listing + np.where(problem.host >= 0, surcharge[problem.host], 0.0)
        return due, listing

    def _at(self, price: float, surcharge: Floats) -> CollectedAnswer:
        problem, fleet = self.problem, self.problem.fleet
        due, listing = self._dues(price, surcharge)
        rate, fresh = np.zeros(len(fleet)), np.zeros(len(fleet))
        rate[self.lone] = self.market.rates(due[self.lone], self.lone)[0]
        with np.errstate(divide="ignore"):
            fresh[self.lone] = 1.0 - fleet.value.take(self.lone).staleness(1.0 / rate[self.lone])
        listing_rate = np.zeros(len(problem.table))
        if len(problem.table):
            got = self.collections.answer(due[self.listed], listing)
            rate[self.listed], fresh[self.listed], listing_rate = got.rate, got.fresh, 1.0 / got.interval
        spent = float(self.cost @ rate + problem.table.cost @ listing_rate)
        return CollectedAnswer(price, listing_rate, rate, fresh, spent, surcharge)

    def left(self, price: float, surcharge: Floats) -> float:
        """Σ of the most that any policy leaves of weighted freshness at these prices, source by source."""
        problem, fleet = self.problem, self.problem.fleet
        due, listing = self._dues(price, surcharge)
        rate = self.market.rates(due[self.lone], self.lone)[0]
        with np.errstate(all="ignore"):
            fresh = 1.0 - fleet.value.take(self.lone).staleness(1.0 / rate)
        total = weighted(self.weight[self.lone], fresh) - float(due[self.lone] @ rate)
        if not len(problem.table):
            return total
        if isinstance(self.collections, OverlappingMarket):
            return total + self.collections.bound(due[self.listed], listing)
        if isinstance(self.collections, AgedMarket):
            return total + float(self.collections.answer(due[self.listed], listing, GRID * _FINER).left.sum())
        exact = replace(problem.table, recall=np.ones(len(problem.table)), precision=np.ones(len(problem.table)))
        asked = CollectionMarket(self.rate[self.listed], self.weight[self.listed], problem.member[self.listed], exact)
        gain = asked.answer(due[self.listed], listing, GRID * _FINER).left
        if self.collections.noisy.any():
            gain = np.minimum(gain, _pushed(self.collections, due[self.listed]))
        return total + float(gain.sum())


def weighted(weight: Floats, fresh: Floats) -> float:
    """Σ weight·fresh, where what has no weight may be as stale as it likes."""
    some = weight > 0.0
    return float(weight[some] @ fresh[some])


def _pushed(m: CollectionMarket, due: Floats) -> Floats:
    """What each collection's members would bring if its signals were pushed and free."""
    with np.errstate(all="ignore"):
        per = np.where(m.weight > 0, due / m.weight, np.inf)
    live = (m.rate > 0) & (m.weight > 0)
    table = m.table
    doubt = np.zeros(len(per))
    rows = np.flatnonzero(live)
    doubt[rows] = doubt_for(per[rows], m.rate[rows], table.recall[m.group[rows]], table.precision[m.group[rows]])
    return np.asarray(np.bincount(m.group, m.weight * np.exp(-doubt), len(table)))
