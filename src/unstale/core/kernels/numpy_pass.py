"""The pass over one block of sources in NumPy: used for small fleets, without numba, and for strange blocks.

At a price, a source's share is s = price·cost·change_rate/weight, the price over the price that abandons it.
It is polled every x mean gaps, P(2, x) = s, and abandoned from s = 1 on. Nothing else needs an exponential,
because e^(−x) = (1−s)/(1+x).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.gamma2 import p2_inverse

#: between these the quick formulas can neither overflow nor lose digits to underflow
LOWEST, HIGHEST = 1e-290, 1e290
#: a sketch's bin is the top of u's bits: the exponent and this many bits of the mantissa
BIN_BITS = 7
#: a share below this is met by the square root of twice it, and by nothing more precise
NEGLIGIBLE = 1e-40
# below 2^TINY, x = √(2s) to the last bit
_TINY = -200


class Priced(NamedTuple):
    """One block at a price; where `polled` is false the rate is 0 and share and gaps mean nothing."""

    sync_rate: Floats
    share: Floats
    gaps: Floats
    polled: NDArray[np.bool_]

    def elasticity(self) -> Floats:
        """−d log rate / d log price = s·(1+x)/(x²·(1−s)): ½ for cheap polls, endless near abandonment."""
        s, x = self.share, self.gaps
        return s * (1.0 + x) / (x * x * (1.0 - s))

    def freshness(self) -> Floats:
        """(1 − e^(−x))/x = (x+s)/(x·(1+x)) [000 Table 2], 0 where abandoned."""
        s, x = self.share, self.gaps
        return np.where(self.polled, (x + s) / (x * (1.0 + x)), 0.0)


def quick(price: float, change_rate: Floats, weight: Floats, cost: Floats) -> Priced | None:
    """The block at a price, or None if some source is idle, invalid, or near overflow or underflow."""
    with np.errstate(all="ignore"):
        u = cost * change_rate / weight
        lowest = max(LOWEST, LOWEST / price)
        positive = np.minimum(change_rate, weight).min() > 0.0
        if not (positive and u.min() > lowest and u.max() < HIGHEST):
            return None
        s = price * u
    polled = s < 1.0
    s = np.where(polled, s, 0.5)
    x = p2_inverse(s)
    return Priced(np.where(polled, change_rate / x, 0.0), s, x, polled)


def response(change_rate: Floats, value: Floats, rate: Floats, slope: Floats) -> bool:
    """Sync rates whose polls are worth `value`, and their derivatives in it; whether anything was strange.

    d(rate)/d(value) = −rate·change_rate·(1+x)/(x²·(1−s)) with s = change_rate·value = P(2, x).
    """
    with np.errstate(all="ignore"):
        s = change_rate * value
        polled = (s < 1.0) & (change_rate > 0.0)
        s = np.where(polled, s, 0.5)
        x = p2_inverse(s)
        np.divide(np.where(polled, change_rate, 0.0), x, out=rate)
        np.divide(-rate * change_rate * (1.0 + x), x * x * (1.0 - s), out=slope)
    return bool(s.min(initial=1.0) < NEGLIGIBLE)


def careful(price: float, change_rate: Floats, weight: Floats, cost: Floats) -> Priced:
    """The same for any finite numbers: with exponents apart, only a rate itself can over- or underflow."""
    alive = (change_rate > 0.0) & (weight > 0.0)
    price_m, price_e = np.frexp(price)
    rate_m, rate_e = np.frexp(np.where(alive, change_rate, 1.0))
    weight_m, weight_e = np.frexp(np.where(alive, weight, 1.0))
    cost_m, cost_e = np.frexp(cost)
    m = price_m * (cost_m * rate_m / weight_m)  # in the order of the quick way: the same rounding
    e = price_e + cost_e + rate_e - weight_e
    s = np.ldexp(m, np.clip(e, _TINY, -_TINY))
    polled = alive & (s < 1.0)
    s = np.where(polled, s, 0.5)
    x = p2_inverse(s)
    half = (e + 1) // 2
    root = np.sqrt(np.ldexp(m, e + 1 - 2 * half))
    with np.errstate(over="ignore"):
        rate = np.where(e < _TINY, np.ldexp(rate_m / root, rate_e - half), np.ldexp(rate_m / x, rate_e))
    return Priced(np.where(polled, rate, 0.0), s, x, polled)
