"""The price of a fleet of millions in one pass over it, right to about 1e-11.

What a fleet spends is smooth in the price, but for the sources about to be abandoned. One pass keeps these few one by
one and sums the others up in narrow cells by four moments, as a sketch does; the price that spends the budget is then
found without another look at the fleet. Where abandonment will be is known from a sample, well enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.kernels.numpy_pass import HIGHEST, LOWEST
from unstale.core.kernels.passes import PassColumns, compiled_for, in_threads, spent_by_log
from unstale.core.kernels.root import bound
from unstale.core.roots.passes import log_ratio, search
from unstale.core.sketch import Sketch, SketchPoints
from unstale.core.sketch_cells import cell_of

Rows = NDArray[np.int64]

#: one source in so many tells where to look, but at least and at most so many, and the price may lie so far from there
EVERY, LEAST, MOST, MISSED = 50, 100_000, 200_000, 0.06
#: sources within this of abandonment are kept one by one: far enough for cells of a seventh of a percent beyond it
MARGIN = 0.08
#: one source in so many may be kept, in fleets that are all alike it would be everyone
FEW = 8
# sources per table: bounds rounding, and how much one thread takes at a time
_PART = 1 << 22


def near_price(columns: PassColumns, budget: float) -> tuple[float, float] | None:
    """The price that spends the budget, and by how many percent spending falls per percent of it.

    None if it takes another way: nothing is compiled, there are sources that need care, the sample was not like the
    fleet, or too many sources are about to be abandoned at once.
    """
    size = columns.change_rate.size
    if compiled_for(size) is None:
        return None
    start = _sampled(columns, budget)
    few = None if start is None else _model(columns, start)
    if start is None or few is None:
        return None
    root = search(lambda price: spent_by_log(price, few, size), budget, start, rtol=1e-13)
    total, slope = spent_by_log(root.price, few, size)
    if not abs(log_ratio(root.price, start)) < MISSED or total == 0.0:
        return None
    return root.price, -slope / total


def _model(columns: PassColumns, price: float) -> PassColumns | None:
    """Few sources that spend what the fleet does at any price near this one."""
    from unstale.core.kernels.numba_near import NEAR_BITS, near_table

    size, bins, rest = columns.change_rate.size, 2048 << NEAR_BITS, 52 - NEAR_BITS
    low, high = (1.0 - MARGIN) / price, (1.0 + MARGIN) / price

    def part(i: int) -> tuple[Rows, Floats, Floats, Floats] | None:
        mine = PassColumns(*(c[i * _PART : (i + 1) * _PART] for c in columns))
        room = mine.change_rate.size + 1
        # untouched memory costs nothing
        table, mass, weight = np.zeros((bins, 4)), np.empty(room), np.empty(room)
        first, last, apart, refused = near_table(*mine, low, high, table, mass, weight)
        if refused or apart > room // FEW:
            return None
        used = first + np.flatnonzero(table[first : last + 1, 0])
        return used, table[used], mass[:apart].copy(), weight[:apart].copy()

    found = in_threads(part, -(-size // _PART), size)
    parts = [each for each in found if each is not None]
    if len(parts) < len(found):
        return None
    used, moments, _, _ = parts[0]
    if len(parts) > 1:
        table = np.zeros((bins, 4))
        for cells, sums, _, _ in parts:
            table[cells] += sums
        used = np.unique(np.concatenate([cells for cells, *_ in parts]))
        moments = table[used]
    far = SketchPoints(Sketch(cell_of(used << rest, rest), moments))
    there = far.mass > 0.0
    mass, u = far.mass[there], far.u[there]
    _, _, masses, weights = zip(*parts, strict=True)
    return PassColumns(np.concatenate([mass, *masses]), np.concatenate([mass / u, *weights]), np.empty(0))


def _sampled(columns: PassColumns, budget: float) -> float | None:
    """About the price, from sources taken evenly from all over the fleet; None if none of them can be polled."""
    size = columns.change_rate.size
    step = max(size // min(max(size // EVERY, LEAST), MOST), 1)
    rate, weight, cost = (c[::step] for c in columns)
    taken = rate.size
    with np.errstate(all="ignore"):
        u = (cost * rate if cost.size else rate) / weight
        usual = (u > LOWEST) & (u < HIGHEST) & (np.minimum(rate, weight) > 0.0)
    if not usual.any():
        return None
    some = PassColumns(rate[usual], weight[usual], cost[usual] if cost.size else cost)
    share = budget * taken / size
    return search(lambda price: spent_by_log(price, some, size), share, bound(some, share), rtol=1e-3).price
