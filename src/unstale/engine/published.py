"""What a planner publishes: what workers need to know of the fleet as a whole, and how all of them stand."""

from __future__ import annotations

import json
from collections.abc import Sequence

from unstale.engine.config import EngineConfig
from unstale.engine.plan_in_parts import LargePlan
from unstale.engine.pricing import surcharges_of
from unstale.engine.published_plan import PLAN
from unstale.keeper.scheduler import Scheduler
from unstale.ports import CrewMember, Price


def told_plan(
    config: EngineConfig,
    crew: Sequence[CrewMember],
    scheduler: Scheduler,
    known: Price | None,
    now: float,
    took: float | None,
    parts: LargePlan | None,
) -> dict[str, bytes]:
    """Two settings in plain JSON; of a fleet in parts the scheduler has a sample."""
    plan = {
        "at": now,
        "price": scheduler.price,
        "scale": scheduler.learner.scale,
        "dearest": float(scheduler.learner.columns.cost.max()) if parts is None else parts.census.dearest,
        "rate": config.rate,
        "burst": config.burst,
        "objective": config.objective,
        "in_parts": parts is not None,
        "cost_in": config.cost_in,
        "listings": None if parts is not None or scheduler.collected is None else scheduler.collected.pace(),
    }
    facts = [member.facts for member in crew]
    view = {
        "at": now,
        "owner": config.owner,
        "sources": len(scheduler.ids) if parts is None else parts.census.sources,
        "budget": config.budget,
        "settled": config.settled,
        "price": scheduler.price,
        "workers": len(facts),
        "took": took,
        "surcharges": surcharges_of(scheduler, config.hosts) if parts is None else parts.surcharges,
        "fresh": known.fresh if known else 0.0,
        "even": known.even if known else 0.0,
        **{
            name: sum(one.get(name, 0) for one in facts)
            for name in ("polls", "changed", "unchanged", "failed", "spent", "in_flight")
        },
    }
    return {PLAN: json.dumps(plan).encode(), "engine": json.dumps(view).encode()}
