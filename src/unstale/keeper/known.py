"""A scheduler whose rates are known and do not change: polls teach nothing, the price alone decides."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.core.learning.mixture import parts
from unstale.keeper.rows import Integers
from unstale.keeper.scheduler import Scheduler

#: changes as good as seen of a rate that is known: the value of a poll is then exact to nine digits
SURE = 1e9
#: stands for never, in any unit of time
NEVER = 1e100


def known_rates(
    change_rate: Floats,
    price: float,
    ids: Integers,
    *,
    weight: Floats,
    cost: Floats,
    shortest: Floats,
    longest: Floats,
    objective: str = "freshness",
) -> Scheduler:
    """The scheduler of sources with these change rates at a price: an abandoned one is due after `longest`.

    Rates, times and price are in one unit, whichever: nothing here knows of hours or weeks.

    >>> one = np.ones(1)
    >>> scheduler = known_rates(2.0 * one, 0.25, np.array([0]), weight=one, cost=one, shortest=0 * one, longest=9 * one)
    >>> round(float(scheduler.learner.waits_of([0], 0.25)[0]), 6)
    0.839173
    """
    changing = change_rate > 0.0
    scale = float(1.0 / np.median(change_rate[changing])) if changing.any() else 1.0
    # What never changes is worth no poll, however cheap.
    learner = Learner(len(ids), scale, weight=np.where(changing, weight, 0.0), cost=cost, objective=objective)
    columns = learner.columns
    columns.shortest[:] = np.maximum(shortest, 1e-9 * scale)
    columns.longest[:] = np.maximum(np.minimum(longest, NEVER), columns.shortest)
    shape, exposure, _ = parts(columns.rows)
    shape[:] = SURE - learner.shared.prior[0]
    exposure[:] = (SURE / np.where(changing, change_rate, 1.0 / scale) - learner.shared.prior[1])[:, None]
    scheduler = Scheduler.of(learner, ids, due=np.full(len(ids), np.inf))
    scheduler.learns, scheduler.price = False, price
    return scheduler
