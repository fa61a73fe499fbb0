"""Who is polled first when more is due than can be polled, compiled: whoever is worth the most times its price.

Rules of this file:
1. When a source is due, a poll of it is worth its price: urgency 1. What it is worth after that is what its belief says
   of waiting longer. A value that can hardly grow any more, of a source that changes far faster than it can be polled,
   stays near 1: at the higher price that too little room means, it would not be polled at all.
2. `longest` is a promise, to be kept before much else: beyond it urgency grows without bound, so nobody waits for ever.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.bursts import span
from unstale.core.learning.column_due import urgencies_in_columns
from unstale.core.learning.columns import Integers, LearnerColumns, SharedTiming
from unstale.core.learning.compiled import in_columns
from unstale.core.learning.mixture import Scratch, Shared, gather, value


@in_columns(urgencies_in_columns)
def urgencies(
    which: Integers,
    late: Floats,
    price: float,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """How many times its price a poll of each of these sources is worth, `late` seconds after it fell due."""
    out, harm = np.empty(len(which)), shared.harm
    for k in range(len(which)):
        i, scale, factor = which[k], 1.0, 1.0
        even, then = columns.interval[i], columns.interval[i] + late[k]
        gather(columns.rows[i], shared, at)
        if timing.bursts.trusted and math.isfinite(columns.last[i]):
            factor = timing.bursts.factor[span(timing.bursts, columns.last[i] - columns.found[i])]
        if harm.scale_free:
            scale = factor
        else:
            for j in range(len(at.exposure)):
                at.exposure[j] /= factor
        before = value(at, shared, scale * even)[0]
        if columns.weight[i] > 0.0 and (even <= columns.shortest[i] or not math.isfinite(columns.found[i])):
            # It may not be polled as soon as it pays, or nothing is known of it: it may be worth more when it is due.
            before = min(before, price * columns.cost[i] / columns.weight[i] * scale ** (1.0 + harm.degree))
        worth = value(at, shared, scale * then)[0] / before if before > 0.0 else then / even
        out[k] = worth * max(then / columns.longest[i], 1.0)
    return out
