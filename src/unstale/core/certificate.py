"""The certificate of a plan: how far it is from the optimum, by its columns alone.

Rules of this file:
1. Nothing the solver remembered is trusted, and nothing is taken for granted: what is no number, or of another
   length, is infinitely far from the optimum.
2. The conditions are those of a convex problem, so together they suffice: rates within their bounds, hosts within
   their caps, spending within the budget; no price without scarcity; nobody gains by moving.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.frozen import dataclass

#: a rate so near to a bound stands at it, and a gap so small is not looked into
_NEAR = 1e-12
#: a rate is right to so much: where value rises steeply from 0, a rounding of the rate is a large gap
_ROUNDING = 2.0**-50


@dataclass(frozen=True, slots=True)
class Certificate:
    """Residuals of the optimality conditions, all relative, all 0 for a perfect plan, inf for what is none.

    budget      |spent − budget| / budget while the price is above 0, else how far spending exceeds the budget
    stationary  |weight·value − due| / due over sources that are free to move, due = price·cost + surcharge
    at_bounds   how far a rate leaves its bounds, or an abandoned or bounded source would rather move, relative to due
    hosts       how far a host exceeds its cap, or pays a surcharge without filling it
    """

    budget: float
    stationary: float
    at_bounds: float
    hosts: float

    @property
    def worst(self) -> float:
        return max(self.budget, self.stationary, self.at_bounds, self.hosts)


def certify(fleet: Fleet, budget: float, price: float, host_price: Floats | None, sync_rate: Floats) -> Certificate:
    """The residuals of rates, price and surcharges as the optimum of a fleet under a budget.

    >>> from unstale.core.values import PoissonFreshness
    >>> fleet = Fleet.of(PoissonFreshness([1.0, 1.0]), shortest=2.0)
    >>> certify(fleet, 1.0, 0.0, None, np.array([0.5, 0.5])).worst, certify(fleet, 2.0, 0.0, None, np.ones(2)).at_bounds
    (0.0, 1.0)
    """
    rate = np.asarray(sync_rate, dtype=np.float64)
    caps = 0 if fleet.cap is None else len(fleet.cap)
    extra = np.zeros(caps) if host_price is None else np.asarray(host_price, dtype=np.float64)
    shapes = rate.shape == (len(fleet),) and extra.shape == (caps,)
    columns = (rate, extra, np.asarray(fleet.weights()), np.asarray(fleet.costs()), np.array([budget]))
    if not (shapes and price >= 0 and all(np.all(np.isfinite(c) & (c >= 0)) for c in columns)):
        return Certificate(np.inf, np.inf, np.inf, np.inf)
    with np.errstate(all="ignore"):
        due = np.broadcast_to(price * np.asarray(fleet.costs(), float), rate.shape)
        due = due + extra[fleet.host] if caps else due
        stationary, rather = _sources(fleet, rate, due)
        return Certificate(
            budget=slack(fleet.spending(rate), budget, price),
            stationary=_worst(stationary),
            at_bounds=max(_worst(rather), _worst(_outside(fleet, rate))),
            hosts=_worst(_hosts(fleet, rate, extra)),
        )


def slack(spent: float, budget: float, price: float) -> float:
    """How far spending is from a budget that has a price, or beyond one that has none."""
    over = np.float64(spent) / budget - 1.0 if budget > 0 or spent > 0 else np.float64(0.0 if budget == 0 else np.inf)
    return _worst(np.atleast_1d(np.abs(over) if price > 0 else np.where(over < 0, 0.0, over)))


def _sources(fleet: Fleet, rate: Floats, due: Floats) -> tuple[Floats, Floats]:
    """How far sources that are free to move are from what is due, and those at a bound beyond it."""
    low = np.zeros(len(rate)) if fleet.least_rate is None else fleet.least_rate
    high = np.full(len(rate), np.inf) if fleet.most_rate is None else fleet.most_rate
    at_low, at_high = rate <= low * (1 + _NEAR), rate >= high * (1 - _NEAR)
    weight = np.broadcast_to(np.asarray(fleet.weights(), float), rate.shape)

    def gap(rows: NDArray[np.intp] | slice, stretch: float) -> Floats:
        value = fleet.value if isinstance(rows, slice) else fleet.value.take(rows)
        # a source that nobody reads is worth nothing, however stale
        worth = weight[rows] * np.where(weight[rows] == 0, 0.0, value.value(stretch / rate[rows]))
        off = np.where(np.isinf(due[rows]) & np.isfinite(worth), -1.0, (worth - due[rows]) / due[rows])
        return np.where(worth == due[rows], 0.0, off)

    found = gap(slice(None), 1.0)
    inner = ~at_low & ~at_high
    doubtful = np.flatnonzero(inner & (np.abs(found) > _NEAR))
    if len(doubtful):
        between = (gap(doubtful, 1 - _ROUNDING) <= 0) & (gap(doubtful, 1 + _ROUNDING) >= 0)
        found[doubtful[between]] = 0.0
    # At its lower bound a source may be worth less than due, at its upper bound more, never the reverse.
    stuck = ~inner & ~(at_low & at_high)
    rather = np.where(at_high, -found, found)[stuck]
    return np.abs(found[inner]), np.where(rather < 0, 0.0, rather)


def _outside(fleet: Fleet, rate: Floats) -> Floats:
    """How far rates leave their bounds."""
    below, above = np.zeros_like(rate), np.zeros_like(rate)
    if fleet.least_rate is not None:
        below = np.where(rate >= fleet.least_rate, 0.0, 1.0 - rate / fleet.least_rate)
    if fleet.most_rate is not None:
        above = np.where(rate <= fleet.most_rate, 0.0, rate / fleet.most_rate - 1.0)
    return np.fmax(below, above) + 0.0 * (below + above)


def _hosts(fleet: Fleet, rate: Floats, extra: Floats) -> Floats:
    if fleet.cap is None or fleet.host is None:
        return np.zeros(1)
    over = np.bincount(fleet.host, rate, len(fleet.cap)) / fleet.cap - 1.0
    return np.where(extra > 0, np.abs(over), np.where(over < 0, 0.0, over))


def _worst(residuals: Floats) -> float:
    """The largest; what is no number is infinitely bad."""
    return float(np.where(np.isnan(residuals), np.inf, residuals).max(initial=0.0))
