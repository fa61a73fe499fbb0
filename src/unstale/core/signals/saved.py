"""How many polls a collection saves: those that it would take to keep its members as fresh without it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats

#: below this staleness the series is better than the closed form, whose two parts cancel
_NEARLY = 1e-5


def polls_for(change_rate: ArrayLike, freshness: ArrayLike) -> Floats:
    """Even polls per unit of time that keep copies so fresh: λ/x where (1 − e^(−x))/x = freshness.

    x = z + W(−z·e^(−z)), z = 1/freshness, W the main branch of Lambert's function; 2ε + 4ε²/3 for a staleness ε near 0.
    More freshness takes more polls, and all of it infinitely many. Poisson changes; 0 where nothing is fresh.

    >>> polls_for(1.0, 0.8).round(9).tolist()
    2.154184672
    """
    rate, fresh = np.asarray(change_rate, np.float64), np.asarray(freshness, np.float64)
    stale = 1.0 - fresh
    with np.errstate(all="ignore"):
        z = 1.0 / fresh
        x = np.where(stale < _NEARLY, 2.0 * stale + 4.0 / 3.0 * stale**2, z + special.lambertw(-z * np.exp(-z)).real)
        return np.where(fresh > 0.0, rate / x, 0.0)
