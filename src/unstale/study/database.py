"""Many copies at once: freshness and age of a fleet under given sync rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers
from unstale.core.poisson_orders import Order, order_age, order_freshness
from unstale.errors import require


def fleet_freshness(
    change_rate: ArrayLike, sync_rate: ArrayLike, weight: ArrayLike = 1.0, order: Order = "fixed"
) -> float:
    """Weighted mean freshness of Poisson sources: what a random request, drawn by weight, finds.

    `Σ weight·order_freshness(change_rate, sync_rate)/Σ weight` [000 definitions 1, 3].

    >>> round(fleet_freshness([4.0, 3.0, 2.0], [3.0, 3.0, 3.0]), 12)
    0.638099008898
    """
    return _mean(np.asarray(order_freshness(change_rate, sync_rate, order)), weight)


def fleet_age(change_rate: ArrayLike, sync_rate: ArrayLike, weight: ArrayLike = 1.0, order: Order = "fixed") -> float:
    """Weighted mean age of Poisson sources.

    `Σ weight·order_age(change_rate, sync_rate)/Σ weight`; inf if a source of weight is never polled.
    [000 definitions 2, 4].

    >>> round(fleet_age([4.0, 3.0, 2.0], [4.0, 3.0, 2.0]), 12)
    0.047710201799
    """
    return _mean(np.asarray(order_age(change_rate, sync_rate, order)), weight)


def _mean(values: Floats, weight: ArrayLike) -> float:
    w = np.broadcast_to(numbers("weight", weight, least=0), values.shape)
    require(np.sum(w) > 0, "weight", float(np.sum(w)), "must have a sum above 0", "give some source a weight")
    # an abandoned source of no weight may have infinite age: it is left out, not multiplied
    return float(np.sum(values[w > 0] * w[w > 0]) / np.sum(w))
