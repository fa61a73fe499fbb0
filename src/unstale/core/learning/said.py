"""What polls of many sources said, read from their rows: the evidence behind the prior and behind intervals.

Rules of this file:
1. A row that an older version kept has beliefs and no such numbers: what its slowest half-life knows is taken then.
2. Without late polls what is believed is a Gamma, and its quantiles are; only the others need their density.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.evidence import Evidence
from unstale.core.learning.mixture import SAID


def said(rows: Floats, half_lives: int) -> Evidence:
    """The evidence that polls of each source gave, without a prior.

    >>> said(np.array([[2.0, 5.0, 0.0, 1.0, 3.0, 4.0, 9.0]]), 1).late.tolist()
    [4.0]
    """
    shape, exposure, late, span = np.zeros((SAID, len(rows)))
    if rows.shape[1] >= 3 * half_lives + SAID:
        shape, exposure, late, span = np.array(rows[:, 3 * half_lives : 3 * half_lives + SAID].T)
    older = (shape == 0.0) & (exposure == 0.0) & (late == 0.0)
    shape[older], exposure[older] = rows[older, 0], rows[older, half_lives]
    return Evidence(shape, exposure, late, np.where(late > 0.0, span, 1.0))


def rates_between(seen: Evidence, prior: Floats, level: float) -> tuple[Floats, Floats]:
    """The rates between which each change rate lies with probability `level`, with equal tails.

    >>> low, high = rates_between(Evidence(*np.array([[2.0], [1.0], [0.0], [1.0]])), np.array([1.0, 1.0]), 0.9)
    >>> [round(float(x[0]), 4) for x in (low, high)]
    [0.4088, 3.1479]
    """
    from scipy.special import gammaincinv

    levels = 0.5 - level / 2, 0.5 + level / 2
    known = seen._replace(shape=prior[0] + seen.shape, exposure=prior[1] + seen.exposure)
    low, high = np.empty_like(known.shape), np.empty_like(known.shape)
    for which, found in ((known.late == 0.0, False), (known.late > 0.0, True)):
        part = Evidence(*(column[which] for column in known))
        if not found:
            low[which], high[which] = (gammaincinv(part.shape, x) / part.exposure for x in levels)
        elif len(part.late):
            low[which], high[which] = part.quantiles(part.late.shape, *levels)
    return low, high
