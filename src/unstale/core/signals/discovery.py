"""Looking for new members: what a look at a collection is worth because of those whom nobody knows yet."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats


def sooner(interval: Floats, finds: Floats, listing_due: Floats) -> Floats:
    """How long to leave collections alone that find new members besides telling of known ones.

    A member that nobody knows is stale until it is found. If members worth `finds` per unit of time appear, a look
    after T is worth finds·T²/2 because of them: the law of missed changes, alone poll every √(2·listing_due/finds).
    What a listing tells of known members is worth about T² too, so both together give 1/T² = 1/interval² + 1/alone².
    `listing_due` is what a listing poll must bring. Exact for short intervals; the interval is never longer than
    either. [docs/theory/signals.md, (10)].

    >>> sooner(np.array([3.0, 3.0]), np.array([0.0, 0.5]), np.array([4.0, 4.0])).tolist()
    [3.0, 2.4]
    """
    with np.errstate(divide="ignore"):
        alone = np.sqrt(2.0 * listing_due / finds)
        return np.asarray(np.where(finds > 0.0, 1.0 / np.sqrt(interval**-2.0 + alone**-2.0), interval))
