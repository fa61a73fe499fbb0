"""A plan: rates, price, and the certificate by which anyone can check that it is optimal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Certificate:
    """Residuals of the optimality conditions, all relative, all 0 for a perfect plan [G.1 in docs].

    budget      |spent − budget| / budget, counted only while the price is above 0
    stationary  |weight·value − due| / due over sources that are free to move, due = price·cost + surcharge
    at_bounds   how much an abandoned or bounded source would rather move, relative to due
    hosts       how far a host exceeds its cap, or pays a surcharge without filling it
    """

    budget: float
    stationary: float
    at_bounds: float
    hosts: float

    @property
    def worst(self) -> float:
        return max(self.budget, self.stationary, self.at_bounds, self.hosts)


@dataclass(frozen=True)
class Plan:
    """How often to poll every source of a fleet, at which price; everything else follows on demand."""

    fleet: Fleet
    budget: float
    #: staleness that one more unit of budget would remove
    price: float
    #: what a poll pays on top at each host, 0 where the cap does not bind
    host_price: Floats | None
    sync_rate: Floats

    @cached_property
    def interval(self) -> Floats:
        """Time between polls; inf for an abandoned source."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.sync_rate

    @cached_property
    def spent(self) -> float:
        return self.fleet.spending(self.sync_rate)

    @cached_property
    def abandoned(self) -> NDArray[np.bool_]:
        """Sources that would gain from polls but get none: at this price no poll of theirs pays."""
        return np.asarray((self.sync_rate == 0) & (self.fleet.value.limit() > 0))

    @cached_property
    def staleness(self) -> Floats:
        """Expected long-run penalty of each source."""
        return self.fleet.value.staleness(self.interval)

    @cached_property
    def fleet_staleness(self) -> float:
        """Weighted mean penalty of the fleet, Σ weight·staleness / Σ weight."""
        weight = np.broadcast_to(np.asarray(self.fleet.weights(), float), self.sync_rate.shape)
        total = float(weight.sum())
        if total == 0:
            return 0.0
        # A source of weight 0 may be infinitely stale and still counts for nothing.
        return float(np.dot(weight, np.where(weight > 0, self.staleness, 0.0)) / total)

    @cached_property
    def due(self) -> Floats:
        """What a poll of each source must be worth: price·cost plus its host's surcharge."""
        due = np.broadcast_to(self.price * np.asarray(self.fleet.costs(), float), self.sync_rate.shape)
        if self.host_price is not None and self.fleet.host is not None:
            due = due + self.host_price[self.fleet.host]
        return due

    @cached_property
    def certificate(self) -> Certificate:
        """Recomputed from the columns alone; it trusts nothing the solver remembered."""
        fleet, rate, due = self.fleet, self.sync_rate, self.due
        n = len(rate)
        low = np.zeros(n) if fleet.least_rate is None else fleet.least_rate
        high = np.full(n, np.inf) if fleet.most_rate is None else fleet.most_rate
        with np.errstate(all="ignore"):
            worth = np.asarray(fleet.weights()) * fleet.value.value(self.interval)
            gap = np.where(worth == due, 0.0, (worth - due) / due)
        gap = np.nan_to_num(gap, nan=0.0, posinf=np.inf)
        inner = (rate > low) & (rate < high)
        # At its lower bound a source may be worth less than due, at its upper bound more, never the reverse.
        bounds = np.where(rate >= high, -gap, gap)[~inner & (low < high)]
        slack = abs(self.spent - self.budget) if self.price > 0 else max(self.spent - self.budget, 0.0)
        return Certificate(
            budget=slack / self.budget if self.budget > 0 else slack,
            stationary=float(np.abs(gap[inner]).max(initial=0.0)),
            at_bounds=float(bounds.max(initial=0.0)),
            hosts=self._host_residual(),
        )

    def _host_residual(self) -> float:
        fleet = self.fleet
        if fleet.cap is None or fleet.host is None or self.host_price is None:
            return 0.0
        used = np.bincount(fleet.host, self.sync_rate, len(fleet.cap))
        with np.errstate(invalid="ignore"):
            over = (used - fleet.cap) / fleet.cap
        residual = np.where(self.host_price > 0, np.abs(over), np.maximum(over, 0.0))
        return float(np.nan_to_num(residual).max(initial=0.0))
