"""What is going on, for those who look on: the fleet as the engine believes it to be at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import Outlook, even_freshness, outlook
from unstale.core.learning.state import kept
from unstale.keeper.fleet import FleetKeeper, Integers

#: sources that are looked at to tell how the whole fleet stands
ENOUGH = 20_000


@dataclass(frozen=True, slots=True)
class _Held:
    beliefs: Floats
    last: Floats
    found: Floats
    settings: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Sight:
    """How a fleet stands: `rows` of the keeper with what is believed of them, and the mean freshness by weight.

    `even` is the freshness if all were polled equally often for the same budget, as far as rates are known.
    """

    rows: Integers
    outlook: Outlook
    fresh: float
    even: float


def sight(keeper: FleetKeeper, now: float, budget: float) -> Sight:
    """The fleet at a moment; of a large one every so manieth source."""
    active = np.flatnonzero(~keeper.paused)
    rows = active[:: -(-len(active) // ENOUGH) or 1]
    columns = keeper.learner.columns
    held = _Held(columns.rows[rows], keeper.answered[rows], columns.found[rows], {"learner": kept(keeper.learner)})
    seen = outlook(held, now)
    weight = keeper.weight[rows]
    total = float(weight.sum())
    if total <= 0.0:
        return Sight(rows, seen, 0.0, 0.0)
    interval = float(columns.cost[active].sum()) / budget
    return Sight(rows, seen, float(weight @ seen.fresh) / total, even_freshness(held, weight, interval))
