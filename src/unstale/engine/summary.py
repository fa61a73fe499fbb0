"""What is going on, for those who look on: the fleet as the engine believes it to be at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import Outlook, even_freshness, outlook
from unstale.core.learning.state import kept
from unstale.keeper.scheduler import Integers, Scheduler

#: sources that are looked at to tell how the whole fleet stands
ENOUGH = 20_000


@dataclass(frozen=True, slots=True)
class _Held:
    beliefs: Floats
    last: Floats
    found: Floats
    settings: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """How a fleet stands: `rows` of the scheduler with what is believed of them, and the mean freshness by weight.

    `even` is the freshness if all were polled equally often for the same budget, as far as rates are known.
    """

    rows: Integers
    outlook: Outlook
    fresh: float
    even: float


def summary(scheduler: Scheduler, now: float, budget: float) -> FleetSummary:
    """The fleet at a moment; of a large one every so manieth source."""
    active = np.flatnonzero(~scheduler.paused)
    rows = active[:: -(-len(active) // ENOUGH) or 1]
    columns = scheduler.learner.columns
    held = _Held(
        columns.rows[rows], scheduler.answered[rows], columns.found[rows], {"learner": kept(scheduler.learner)}
    )
    seen = outlook(held, now)
    weight = scheduler.weight[rows]
    total = float(weight.sum())
    if total <= 0.0:
        return FleetSummary(rows, seen, 0.0, 0.0)
    interval = float(columns.cost[active].sum()) / budget
    return FleetSummary(rows, seen, float(weight @ seen.fresh) / total, even_freshness(held, weight, interval))
