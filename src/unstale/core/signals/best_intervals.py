"""The best interval of many collections at once: a grid of each, then golden sections around its best point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats

_GOLDEN = 0.6180339887498949

#: what every collection leaves, each polled at its own interval
Left = Callable[[Floats], Floats]


def best_intervals(left: Left, tried: Floats, sections: int = 56) -> Floats:
    """Of every column of intervals the one that leaves most, polished between its neighbours; beyond grids: their ends.

    Assumes that `left` has one top between the neighbours of the best point tried.

    >>> best_intervals(lambda t: -np.abs(t - 3.0), np.geomspace(1.0, 8.0, 7)[:, None]).round(9).tolist()
    [3.0]
    """
    column = np.arange(tried.shape[1])
    best = np.argmax([left(t) for t in tried], axis=0)
    low = np.log(tried[np.maximum(best - 1, 0), column])
    high = np.log(tried[np.minimum(best + 1, len(tried) - 1), column])
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at, bt = left(np.exp(a)), left(np.exp(b))
    for _ in range(sections):
        right = bt > at
        low, high = np.where(right, a, low), np.where(right, high, b)
        new = np.where(right, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        worth = left(np.exp(new))
        a, at, b, bt = (
            np.where(right, b, new),
            np.where(right, bt, worth),
            np.where(right, new, a),
            np.where(right, worth, at),
        )
    found, polished = tried[best, column], np.exp(0.5 * (low + high))
    return np.asarray(np.where(left(polished) >= left(found), polished, found))
