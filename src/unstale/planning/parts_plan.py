"""The plan of a fleet in parts: what was decided, what it comes to, and how it is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unstale.core.certificate import slack
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """The price, and what is spent; where spending jumps, a share of the plan is that of the next price below."""

    price: float
    spent: float
    cheaper: float = 0.0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class MeasuredPlan:
    """What a plan comes to: Σ weight·freshness of it and its rivals, and the worst residuals of its certificate."""

    spent: float
    freshness: float
    uniform: float
    proportional: float
    abandoned: int
    stationary: float
    at_bounds: float
    hosts: float


def together(measured: Sequence[MeasuredPlan]) -> MeasuredPlan:
    """What several plans come to as one."""
    return MeasuredPlan(
        spent=math.fsum(m.spent for m in measured),
        freshness=math.fsum(m.freshness for m in measured),
        uniform=math.fsum(m.uniform for m in measured),
        proportional=math.fsum(m.proportional for m in measured),
        abandoned=sum(m.abandoned for m in measured),
        stationary=max(m.stationary for m in measured),
        at_bounds=max(m.at_bounds for m in measured),
        hosts=max(m.hosts for m in measured),
    )


@dataclass(frozen=True, slots=True)
class PartsPlan:
    """The plan of a fleet in parts, in numbers per day; its intervals are in the files that were written."""

    objective: str
    sources: int
    budget: float
    decision: Decision
    measured: MeasuredPlan
    #: Σ weight
    weight: float
    #: how often the fleet was read until the price was known
    passes: int
    files: int

    @property
    def price(self) -> float:
        """Weighted staleness that one more unit of budget per day would remove."""
        return self.decision.price

    @property
    def spent(self) -> float:
        return self.measured.spent

    def summary(self) -> dict[str, Any]:
        """The plan in numbers, as that of one table has them."""
        fresh = {
            k: getattr(self.measured, k) / self.weight if self.weight else 1.0
            for k in ("freshness", "uniform", "proportional")
        }
        return {
            "objective": self.objective,
            "sources": self.sources,
            "price": self.price,
            "spent": self.spent,
            "budget": self.budget,
            "freshness": fresh["freshness"],
            "freshness_uniform": fresh["uniform"],
            "freshness_proportional": fresh["proportional"],
            "abandoned": self.measured.abandoned,
            "certificate": {
                "budget": slack(self.spent, self.budget, self.price),
                "stationary": self.measured.stationary,
                "at_bounds": self.measured.at_bounds,
                "hosts": self.measured.hosts,
            },
        }
