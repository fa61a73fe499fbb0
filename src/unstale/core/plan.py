"""A plan: rates, price, and the certificate by which anyone can check that it is optimal."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unstale.core.certificate import Certificate, certify
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.frozen import dataclass

__all__ = ["Certificate", "Plan"]


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
        return certify(self.fleet, self.budget, self.price, self.host_price, self.sync_rate)
