"""What the sources of each host are polled at together, compiled: asked dozens of times for a plan with caps.

Rules of this file:
1. The same to the last bit as `Market.rates` and sums of it: no multiplication is fused with an addition here, and
   sources are added up one after the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.compiling import kept
from unstale.core.kernels.numba_pass import response

Rows = NDArray[np.intp]


def _host_totals(
    price: float,
    extra: Floats,
    first: Rows,
    last: Rows,
    by_host: Rows,
    change_rate: Floats,
    weight: Floats,
    cost: Floats,
    least: Floats,
    most: Floats,
    room: Floats,
    totals: Floats,
    slopes: Floats,
) -> bool:
    """Σ sync rates of hosts that charge `extra`, and the derivatives in it; whether any source was strange.

    A host's sources are those of by_host[first:last]; one that is worth nothing has weight 0 here. `room` has four rows
    of as many numbers as the largest host has sources. Bounds that nobody has are empty columns.
    """
    for k in range(extra.size):
        count = last[k] - first[k]
        rates, values, rate, slope = room[0, :count], room[1, :count], room[2, :count], room[3, :count]
        for i in range(count):
            j = by_host[first[k] + i]
            rates[i] = change_rate[j]
            values[i] = (price * cost[j] + extra[k]) / weight[j] if weight[j] > 0.0 else np.inf
        if response(rates, values, rate, slope):
            return True
        total, moves = 0.0, 0.0
        for i in range(count):
            j = by_host[first[k] + i]
            polled, move = rate[i], slope[i] / (weight[j] if weight[j] > 0.0 else 1.0)
            if least.size:
                move = 0.0 if polled < least[j] else move
                polled = max(polled, least[j])
            if most.size:
                move = 0.0 if polled > most[j] else move
                polled = min(polled, most[j])
            total += polled
            moves += move
        totals[k], slopes[k] = total, moves
    return False


host_totals = kept(_host_totals, nogil=True, error_model="numpy")
