"""The price of a poll: one number per budget, one more per host whose cap binds.

Rules of this file:
1. At a price every source answers alone: its interval is the one after which a poll is worth what it costs.
2. A budget or a target only decides the price; spending falls and staleness rises as the price rises.
3. Where no price meets the budget (sources jump in or out together), the two plans on either side of the jump
   are mixed: both are optimal at that price, and so is every mixture, because staleness is linear between them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unstale.core import kernels
from unstale.core.checks import LARGEST, Floats, extremes, number
from unstale.core.fleet import Fleet, Rows
from unstale.core.kernels.passes import output
from unstale.core.market import Market, MarketAnswer
from unstale.core.plan import Plan
from unstale.core.roots.meeting import HUGE, TINY, meet
from unstale.core.values import PoissonFreshness
from unstale.errors import InfeasibleError, InputError, require, sentence


def plan(fleet: Fleet, budget: float, out: Floats | None = None) -> Plan:
    """The sync rates that keep the fleet freshest within a budget.

    Minimises Σ weight·staleness(sync_rate) subject to Σ cost·sync_rate ≤ budget, each host's Σ sync_rate ≤ cap
    and each source's bounds. Optimal because staleness is convex in the sync rate [003 eq. 49, G.1 in docs].
    If polling pays nothing more at any price the rest of the budget stays unspent and the price is 0. `out` takes
    the rates: for a hundred million sources, room that is there already saves the time of finding it.

    >>> from unstale.core.values import PoissonFreshness
    >>> plan(Fleet.of(PoissonFreshness([1, 2, 3, 4, 5])), 5.0).sync_rate.round(2).tolist()
    [1.15, 1.36, 1.35, 1.14, 0.0]
    """
    budget = number("budget", budget, least=0, most=LARGEST, remedy="count in a shorter unit of time")
    feasible(fleet, budget)
    if out is not None:
        output(len(fleet), out)
    return _finite(_fast_plan(fleet, budget, out) or _written(_meet(Market(fleet), budget), out))


def least_budget(fleet: Fleet, staleness: float) -> Plan:
    """The plan of least budget whose fleet staleness (weighted mean penalty) is at most `staleness`.

    The same price decides: staleness rises with it. Refused if even polling without a budget stays above.

    >>> from unstale.core.values import PoissonFreshness
    >>> fleet = Fleet.of(PoissonFreshness([1, 2, 3, 4, 5]))
    >>> round(least_budget(fleet, 1 - 0.373888699274).spent, 6)
    5.0
    """
    target = number("target staleness", staleness, above=0, remedy="give the largest mean penalty you accept")
    feasible(fleet, np.inf)
    return _finite(_meet(Market(fleet), target, by_staleness=True))


def needed(fleet: Fleet) -> float:
    """The budget that the longest intervals need, whatever the price."""
    return 0.0 if fleet.least_rate is None else fleet.spending(fleet.least_rate)


def feasible(fleet: Fleet, budget: float) -> None:
    """InfeasibleError if a budget, or a host's cap, cannot meet the longest intervals."""
    if fleet.least_rate is None:
        return
    need = needed(fleet)
    if need > budget * (1 + 1e-12):
        rows = int(np.count_nonzero(fleet.least_rate))
        raise InfeasibleError(
            sentence(
                "budget",
                f"{budget:g}",
                f"cannot meet the longest intervals, which need {need:g}",
                f"raise it to {need:g} or lengthen max_interval on {rows} sources",
            ),
            least_budget=need,
        )
    if fleet.cap is not None and fleet.host is not None:
        used = np.bincount(fleet.host, fleet.least_rate, len(fleet.cap))
        if np.any(over := used > fleet.cap * (1 + 1e-12)):
            h = int(np.argmax(over))
            name = h if fleet.host_names is None else fleet.host_names[h]
            raise InfeasibleError(
                sentence(
                    f"cap of host {name}",
                    f"{fleet.cap[h]:g}",
                    f"cannot meet the longest intervals of its sources, which need {used[h]:g}",
                    "raise the cap or lengthen max_interval",
                ),
            )


def _written(found: Plan, out: Floats | None) -> Plan:
    """A plan whose rates stand in the column that the caller gave."""
    if out is None:
        return found
    out[:] = found.sync_rate
    return replace(found, sync_rate=out)


def _fast_plan(fleet: Fleet, budget: float, out: Floats | None) -> Plan | None:
    """The fused passes, where they apply: freshness of Poisson sources with nothing but a budget."""
    value = fleet.value
    if not (fleet.unbounded and isinstance(value, PoissonFreshness) and value.order == "fixed" and budget > 0):
        return None
    weight = np.broadcast_to(np.float64(1.0), len(fleet)) if fleet.weight is None else fleet.weight
    # A pass over a small fleet costs nothing; over a hundred million, one that only polishes is left out.
    rtol = 1e-12 if len(fleet) <= 100_000 else 1e-11
    root, rates = kernels.plan(value.change_rate, weight, fleet.cost, budget, rtol=rtol, out=out)
    if not root.converged and root.price > 0:
        if not np.isfinite(root.jump):
            return None
        cheaper = kernels.rates(float(np.nextafter(root.price, 0.0)), value.change_rate, weight, fleet.cost)
        rates += (budget - root.spent) / root.jump * (cheaper - rates)
    return Plan(fleet, budget, root.price, None, rates)


def _meet(market: Market, target: float, by_staleness: bool = False) -> Plan:
    """The plan at the price whose spending (or fleet staleness) meets the target."""
    fleet = market.fleet
    total_weight = float(market.weight.sum())

    def staleness(answer: MarketAnswer) -> float:
        return Plan(fleet, answer.spent, answer.price, answer.surcharge, answer.rates).fleet_staleness

    if not by_staleness and needed(fleet) >= target:
        return Plan(fleet, target, _shutting(fleet), None, _floor(fleet))
    if by_staleness and staleness(idle := MarketAnswer(_shutting(fleet), _floor(fleet), None, 0.0, 0.0)) <= target:
        return Plan(fleet, fleet.spending(idle.rates), idle.price, None, idle.rates)

    if not by_staleness and market.sated() <= target * (1 + 1e-12):
        return _without_end(market, target, by_staleness)

    goal = 1.0 / target if by_staleness else target
    # The answers on either side of the goal, nearest so far: asked again they might round differently.
    sides: dict[bool, MarketAnswer] = {}

    def total(price: Floats, _: Rows) -> tuple[Floats, Floats]:
        answer = market.answer(float(price[0]))
        have, slope = answer.spent, answer.slope
        if by_staleness:
            # The inverse of staleness falls with the price: dΣweight·staleness = −price·dspent.
            now = staleness(answer)
            have = 1.0 / now if now > 0 else np.inf
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
            sentence(
                "budget" if not by_staleness else "target staleness",
                f"{target:g}",
                "gives a poll a price that no number can hold",
                "count in another unit of time",
            )
        )
    dear, cheap = sides[False], sides[True]
    if by_staleness:
        a, b = staleness(dear), staleness(cheap)
        share = (a - target) / (a - b) if a > b else 1.0
    else:
        share = (target - dear.spent) / (cheap.spent - dear.spent)
    rates = dear.rates + share * (cheap.rates - dear.rates)
    return Plan(fleet, fleet.spending(rates) if by_staleness else target, dear.price, dear.surcharge, rates)


def _without_end(market: Market, target: float, by_staleness: bool) -> Plan:
    """Polls for nothing: bounds, caps or harmless ages stop the sources before the budget does."""
    free = market.answer(0.0)
    plan = Plan(market.fleet, free.spent if by_staleness else target, 0.0, free.surcharge, free.rates)
    if by_staleness and plan.fleet_staleness > target:
        least = plan.fleet_staleness
        raise InputError(
            sentence(
                "target staleness",
                f"{target:g}",
                f"cannot be reached, the bounds and caps leave {least:g}",
                "raise the target or the caps, or shorten min_interval",
            )
        )
    return plan


def _finite(made: Plan) -> Plan:
    """The plan, if its rates are numbers: what overflows is refused."""
    most = extremes(made.sync_rate)[1] if len(made.sync_rate) else 0.0
    require(
        most <= LARGEST, "sync_rate", f"{most:g}", f"must be at most {LARGEST:g}", "count in a shorter unit of time"
    )
    return made


def _floor(fleet: Fleet) -> Floats:
    return np.zeros(len(fleet)) if fleet.least_rate is None else fleet.least_rate


def _shutting(fleet: Fleet) -> float:
    """The least price at which nobody wants more than its bound: what the first extra poll would be worth."""
    with np.errstate(all="ignore"):
        start = np.inf if fleet.least_rate is None else 1.0 / fleet.least_rate
        worth = fleet.weights() * fleet.value.value(np.broadcast_to(start, (len(fleet),))) / fleet.costs()
    worth = np.nan_to_num(np.asarray(worth), nan=0.0, posinf=np.inf)
    return float(worth.max(initial=0.0))


def _first_guess(market: Market, budget: float | None) -> float:
    """A price of the right kind: what polls are worth when every source gets an equal share of the budget."""
    some = np.arange(0, len(market.weight), max(len(market.weight) // 1000, 1))
    even = 1.0 if budget is None else max(float(market.cost.sum()) / budget, 1e-300)
    with np.errstate(all="ignore"):
        value = market.fleet.value.take(some).value(np.full(len(some), even))
        worth = market.weight[some] * value / market.cost[some]
    worth = worth[np.isfinite(worth) & (worth > 0)]
    return float(np.exp(np.mean(np.log(worth)))) if len(worth) else 1.0
