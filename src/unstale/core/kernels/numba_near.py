"""One pass that sums a fleet up and sets apart the sources about to be abandoned, compiled.

Rules of this file:
1. No branch in a loop depends on a source: what is apart is gathered by a count that grows by 0 or 1.
2. Indices are unsigned, so that the compiler need not ask whether they count from the end.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.kernels.numba_pass import MANTISSA, ONES, PART, TOP_OF_ONE, bits, compiled, float_of, odd
from unstale.core.kernels.numpy_pass import HIGHEST, LOWEST

#: a bin here is the exponent of u and this many bits of its mantissa
NEAR_BITS = 9
_BITS, _SHIFT = np.uint64(NEAR_BITS), np.uint64(52 - NEAR_BITS)
_NONE, _ONE = np.uint64(0), np.uint64(1)


@compiled
def near_table(
    change_rate: Floats,
    weight: Floats,
    cost: Floats,
    low: float,
    high: float,
    table: Floats,
    near_mass: Floats,
    near_weight: Floats,
) -> tuple[int, int, int, bool]:
    """Add sources to a table of bins by moments, but set apart those with u between `low` and `high`.

    The first and the last bin touched, how many are apart, and whether any was odd. The columns that take them must
    have room for one more than all.
    """
    apart, refused = _NONE, False
    lowest, highest = np.uint64(table.shape[0]), _NONE
    bin_of, near, which = np.empty(PART, np.uint64), np.empty(PART, np.uint64), np.empty(PART + 1, np.uint64)
    mass, place = np.empty(PART), np.empty(PART)
    for start in range(0, change_rate.size, PART):
        stop = min(start + PART, change_rate.size)
        count = stop - start
        r, w = change_rate[start:stop], weight[start:stop]
        c = cost[start:stop] if cost.size else ONES[:count]
        strange = False
        for i in range(count):
            m = c[i] * r[i]
            u = m / w[i]
            usual = (u > LOWEST) & (u < HIGHEST) & (min(r[i], w[i]) > 0.0)
            strange |= not usual
            inside = usual & (u > low) & (u < high)
            u = u if usual else 1.0
            near[i] = _ONE if inside else _NONE
            mass[i] = m if usual & (not inside) else 0.0
            bin_of[i] = bits(u) >> _SHIFT
            # the mantissa bits below the bin's own, as a number in [−½, ½)
            place[i] = float_of(TOP_OF_ONE | ((bits(u) << _BITS) & MANTISSA)) - 1.5
        for i in range(count):
            lowest, highest = min(lowest, bin_of[i]), max(highest, bin_of[i])
        found = _NONE
        for i in range(count):
            which[found] = np.uint64(i)
            found += near[i]
        for i in range(np.int64(found)):
            at = which[i]
            near_mass[apart] = c[at] * r[at]
            near_weight[apart] = w[at]
            apart += _ONE
        for i in range(count):
            b, m, v = bin_of[i], mass[i], place[i]
            mv = m * v
            mvv = mv * v
            table[b, 0] += m
            table[b, 1] += mv
            table[b, 2] += mvv
            table[b, 3] += mvv * v
        refused |= strange and odd(LOWEST, r, w, c)
    return int(lowest), int(highest), int(apart), refused
