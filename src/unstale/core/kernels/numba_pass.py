"""The pass over a big fleet, compiled: one loop without temporaries, the same numbers as `numpy_pass`.

Rules of this file:
1. Imported only when a fleet is big enough to pay for loading numba.
2. A block's sums land in its own row, so the total does not depend on how many threads shared the blocks.
3. A block with anything out of the ordinary is only flagged; `numpy_pass` then does it with care.
4. A constant that is imported here is compiled in: its file is among those that `core.compiling` watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import intrinsic

from unstale.core.checks import Floats
from unstale.core.compiling import kept
from unstale.core.gamma2 import BLOCK, COEFFICIENTS, SCALE
from unstale.core.kernels.numpy_pass import BIN_BITS, HIGHEST, LOWEST, NEGLIGIBLE

F = TypeVar("F", bound=Callable[..., Any])

THREADS: int = numba.config.NUMBA_NUM_THREADS

_P = COEFFICIENTS
ONES = np.ones(BLOCK)
# Sutherland's minimax coefficients of log (fdlibm e_log.c)
_LOG = (
    0.6666666666666735130,
    0.3999999999940941908,
    0.2857142874366239149,
    0.2222219843214978396,
    0.1818357216161805012,
    0.1531383769920937332,
    0.1479819860511658591,
)
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_TOP_OF_ROOT_HALF = np.uint64(0x3FE6A09E00000000)
TOP_OF_ONE = np.uint64(0x3FF0000000000000)
MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
_TWO52 = np.uint64(0x4330000000000000)
_SHIFT = np.uint64(52)
_BIN_BITS, _BIN_SHIFT = np.uint64(BIN_BITS), np.uint64(52 - BIN_BITS)
PART = 2048


def compiled(function: F) -> F:
    """A pass over columns as machine code, kept for later runs."""
    # numpy's error model: Python's puts a branch into every division, which forbids vector instructions
    return kept(function, nogil=True, error_model="numpy", fastmath={"contract"})


def _inlined(function: F) -> F:
    # pasted into the loop by numba itself: a call left standing would forbid vector instructions
    return cast(F, numba.njit(function, inline="always", error_model="numpy"))


def _reassociating(function: F) -> F:
    # the flag stays on the instruction, so only these additions may be reordered into vector lanes
    return kept(function, error_model="numpy", fastmath={"reassoc", "nsz"})


def _bits(_: Any, x: Any) -> Any:
    """The 64 bits of a float, for LLVM a no-op that vectorises."""
    return numba.uint64(numba.float64), lambda context, builder, signature, args: builder.bitcast(
        args[0], context.get_value_type(numba.uint64)
    )


def _float(_: Any, x: Any) -> Any:
    """The float with these 64 bits."""
    return numba.float64(numba.uint64), lambda context, builder, signature, args: builder.bitcast(
        args[0], context.get_value_type(numba.float64)
    )


bits = intrinsic(_bits)
float_of = intrinsic(_float)


@_reassociating
def add(a: float, b: float) -> float:
    """An addition that may be reordered into vector lanes."""
    return a + b


@_inlined
def minus_log_of_rest(s: float) -> Any:
    """−log(1−s) for s in [0, 1), accurate relative to itself: math.log1p would be a call per element."""
    rest = 1.0 - s
    shifted = bits(rest) + (TOP_OF_ONE - _TOP_OF_ROOT_HALF)
    exponent = float_of(_TWO52 | (shifted >> _SHIFT)) - (4503599627370496.0 + 1023.0)
    reduced = float_of((shifted & MANTISSA) + _TOP_OF_ROOT_HALF) - 1.0
    # rest in [√½, 1] needs no scaling: then −s itself is exact where 1−s was rounded
    f = -s if exponent == 0.0 else reduced
    half = 0.5 * f * f
    q = f / (2.0 + f)
    z = q * q
    zz = z * z
    p = _LOG[0] + zz * (_LOG[2] + zz * (_LOG[4] + zz * _LOG[6]))
    p += z * (_LOG[1] + zz * (_LOG[3] + zz * _LOG[5]))
    return (half - (q * (half + p * z) + exponent * _LN2_LOW)) - f - exponent * _LN2_HIGH


@_inlined
def gaps(s: float) -> Any:
    """The inverse of P(2, ·): mean gaps between polls at the share s of the abandonment price."""
    y = minus_log_of_rest(s)
    t = np.sqrt(2.0 * y)
    z = SCALE * t / (t + 4.0) - 1.0
    zz = z * z
    z4 = zz * zz
    # four short chains instead of one long one: the processor works on them at once
    a = _P[0] + z4 * (_P[4] + z4 * (_P[8] + z4 * (_P[12] + z4 * _P[16])))
    b = _P[1] + z4 * (_P[5] + z4 * (_P[9] + z4 * (_P[13] + z4 * _P[17])))
    c = _P[2] + z4 * (_P[6] + z4 * (_P[10] + z4 * (_P[14] + z4 * _P[18])))
    d = _P[3] + z4 * (_P[7] + z4 * (_P[11] + z4 * _P[15]))
    p = (a + z * b) + zz * (c + z * d)
    return (t + y) * p


@compiled
def odd(lowest: float, change_rate: Floats, weight: Floats, cost: Floats) -> bool:
    """Whether a block holds anything invalid, or near underflow or overflow; idle sources are fine."""
    for r, w, c in zip(change_rate, weight, cost):  # noqa: B905 - numba's zip takes no keyword
        u = c * r / w
        scaled = (u > lowest) & (u < HIGHEST) & (r > 0.0) & (w > 0.0)
        idle = (r >= 0.0) & (r < np.inf) & (w >= 0.0) & (w < np.inf) & ((r == 0.0) | (w == 0.0))
        if not (scaled or (idle and 0.0 < c < np.inf)):
            return True
    return False


@compiled
def spent_blocks(
    price: float, change_rate: Floats, weight: Floats, cost: Floats, first: int, last: int, sums: Floats
) -> None:
    """Rows first..last of `sums`: a flag, the block's Σ cost·rate and its derivative in log price."""
    lowest = max(LOWEST, LOWEST / price)
    for k in range(first, last):
        start, stop = k * BLOCK, min((k + 1) * BLOCK, change_rate.size)
        r, w = change_rate[start:stop], weight[start:stop]
        c = cost[start:stop] if cost.size else ONES[: stop - start]
        total, slope, strange = 0.0, 0.0, False
        for i in range(stop - start):
            u = c[i] * r[i] / w[i]
            s = price * u
            strange |= not ((u > lowest) & (u < HIGHEST) & (min(r[i], w[i]) > 0.0))
            polled = (s < 1.0) & (r[i] > 0.0)
            s = s if polled else 0.5
            x = gaps(s)
            rest = 1.0 - s
            inverse = 1.0 / (x * x * rest)
            spending = c[i] * (r[i] * (x * rest * inverse))
            total = add(total, spending if polled else 0.0)
            slope = add(slope, spending * ((1.0 + x) * s * inverse) if polled else 0.0)
        sums[k, 0], sums[k, 1], sums[k, 2] = strange and odd(lowest, r, w, c), total, -slope


@compiled
def response(change_rate: Floats, value: Floats, rate: Floats, slope: Floats) -> bool:
    """Sync rates whose polls are worth `value`, and their derivatives in it; whether anything was strange."""
    strange = False
    for i in range(change_rate.size):
        r = change_rate[i]
        s = r * value[i]
        polled = (s < 1.0) & (r > 0.0)
        strange |= polled & (s < NEGLIGIBLE)
        s = s if polled else 0.5
        x = gaps(s)
        rate[i] = r / x if polled else 0.0
        slope[i] = -rate[i] * r * (1.0 + x) / (x * x * (1.0 - s))
    return strange


@compiled
def rates_blocks(
    price: float, change_rate: Floats, weight: Floats, cost: Floats, first: int, last: int, sums: Floats, out: Floats
) -> None:
    """Blocks first..last of `out`: the sync rates; rows of `sums`: a flag and Σ cost·rate."""
    lowest = max(LOWEST, LOWEST / price)
    for k in range(first, last):
        start, stop = k * BLOCK, min((k + 1) * BLOCK, change_rate.size)
        r, w, o = change_rate[start:stop], weight[start:stop], out[start:stop]
        c = cost[start:stop] if cost.size else ONES[: stop - start]
        total, strange = 0.0, False
        for i in range(stop - start):
            u = c[i] * r[i] / w[i]
            s = price * u
            strange |= not ((u > lowest) & (u < HIGHEST) & (min(r[i], w[i]) > 0.0))
            polled = (s < 1.0) & (r[i] > 0.0)
            rate = r[i] / gaps(s if polled else 0.5)
            rate = rate if polled else 0.0
            o[i] = rate
            total = add(total, c[i] * rate)
        sums[k, 0], sums[k, 1] = strange and odd(lowest, r, w, c), total


@compiled
def expected_blocks(
    price: float, change_rate: Floats, weight: Floats, cost: Floats, first: int, last: int, sums: Floats
) -> None:
    """Rows first..last of `sums`: a flag, the block's Σ cost·rate, Σ weight·freshness, sources polled."""
    lowest = max(LOWEST, LOWEST / price)
    for k in range(first, last):
        start, stop = k * BLOCK, min((k + 1) * BLOCK, change_rate.size)
        r, w = change_rate[start:stop], weight[start:stop]
        c = cost[start:stop] if cost.size else ONES[: stop - start]
        total, fresh, count, strange = 0.0, 0.0, 0.0, False
        for i in range(stop - start):
            u = c[i] * r[i] / w[i]
            s = price * u
            strange |= not ((u > lowest) & (u < HIGHEST) & (min(r[i], w[i]) > 0.0))
            polled = (s < 1.0) & (r[i] > 0.0)
            s = s if polled else 0.5
            x = gaps(s)
            inverse = 1.0 / (x * (1.0 + x))
            total = add(total, c[i] * (r[i] * ((1.0 + x) * inverse)) if polled else 0.0)
            fresh = add(fresh, w[i] * ((x + s) * inverse) if polled else 0.0)
            count = add(count, 1.0 if polled else 0.0)
        sums[k, 0], sums[k, 1], sums[k, 2], sums[k, 3] = strange and odd(lowest, r, w, c), total, fresh, count


@compiled
def sketch_table(change_rate: Floats, weight: Floats, cost: Floats, table: Floats) -> tuple[int, int, bool]:
    """Add sources to a table of bins by moments; the first and last bin touched, and whether any was odd."""
    lowest, highest, refused = table.shape[0], -1, False
    bin_of, mass, place = np.empty(PART, np.int64), np.empty(PART), np.empty(PART)
    for start in range(0, change_rate.size, PART):
        stop = min(start + PART, change_rate.size)
        r, w = change_rate[start:stop], weight[start:stop]
        c = cost[start:stop] if cost.size else ONES[: stop - start]
        strange = False
        for i in range(stop - start):
            m = c[i] * r[i]
            u = m / w[i]
            usual = (u > LOWEST) & (u < HIGHEST) & (min(r[i], w[i]) > 0.0)
            strange |= not usual
            u = u if usual else 1.0
            mass[i] = m if usual else 0.0
            bin_of[i] = np.int64(bits(u) >> _BIN_SHIFT)
            # the mantissa bits below the bin's own, as a number in [−½, ½)
            place[i] = float_of(TOP_OF_ONE | ((bits(u) << _BIN_BITS) & MANTISSA)) - 1.5
        for i in range(stop - start):
            b, m, v = bin_of[i], mass[i], place[i]
            lowest, highest = min(lowest, b), max(highest, b)
            table[b, 0] += m
            table[b, 1] += m * v
            table[b, 2] += m * v * v
            table[b, 3] += m * v * v * v
        refused |= strange and odd(LOWEST, r, w, c)
    return lowest, highest, refused
