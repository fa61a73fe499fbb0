"""The value of polling under Gamma beliefs, for columns in NumPy: twins of `gamma` and `harm`, equal to the last bit.

Every formula is explained there; here it is only laid out for many at once. What is added up is added in the same
order, and exponentials and logarithms are those of the C library (`exactly`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unstale.core.belief import posterior
from unstale.core.checks import Floats
from unstale.core.evidence import together
from unstale.core.learning.exactly import exp, expm1, for_columns, log1p
from unstale.core.learning.gamma import SHORT, SHORT_FOR_AGE
from unstale.core.learning.harm import Harm

after_changes = for_columns(posterior)
more_together = for_columns(together)


def freshness_values(shape: Floats, exposure: Floats, elapsed: Floats) -> tuple[Floats, Floats]:
    """`freshness_value` of columns."""
    z = elapsed / exposure
    span = log1p(z)
    still = exp(-shape * span)
    slope = shape * (elapsed / (exposure + elapsed)) * still
    whole = _integrals(1.0 - shape, span, (1.0 + z) * still)
    worth = whole - z * still
    flat = shape <= 1.0
    if flat.any():
        worth[flat] = shape[flat] * whole[flat] + expm1(-shape[flat] * span[flat])
    worth *= exposure
    short = np.maximum(1.0, shape) * span < SHORT
    if short.any():
        worth[short] = _short_freshness(*(x[short] for x in (shape, elapsed, z, span, still)))
    return worth, slope


def _short_freshness(shape: Floats, elapsed: Floats, z: Floats, x: Floats, still: Floats) -> Floats:
    a = shape * x
    p3 = x + a
    p4 = x * x + a * p3
    p5 = x * x * x + a * p4
    p6 = x * x * x * x + a * p5
    p7 = x * x * x * x * x + a * p6
    series = 0.5 + p3 / 6.0 + p4 / 24.0 + p5 / 120.0 + p6 / 720.0 + p7 / 5040.0
    return elapsed * _ratio(x, z) * a * still * series


def age_values(shape: Floats, exposure: Floats, elapsed: Floats) -> tuple[Floats, Floats]:
    """`age_value` of columns."""
    z = elapsed / exposure
    span = log1p(z)
    change = -expm1(-shape * span)
    slope = elapsed * change
    still = 1.0 - change
    two = _integrals(2.0 - shape, span, (1.0 + z) * (1.0 + z) * still)
    one = _integrals(1.0 - shape, span, (1.0 + z) * still)
    worth = 0.5 * exposure * exposure * (z * z * change - (shape * (two - 2.0 * one) + change))
    steep = shape > 2.0
    if steep.any():
        s, e, q, t, k = (x[steep] for x in (shape, exposure, z, two, still))
        worth[steep] = e * e * (0.5 * q * q - (t - q * (1.0 + q) * k) / (s - 1.0))
    short = np.maximum(1.0, shape) * span < SHORT_FOR_AGE
    if short.any():
        worth[short] = _short_age(*(x[short] for x in (shape, elapsed, z, span, change)))
    return worth, slope


def _short_age(shape: Floats, elapsed: Floats, z: Floats, x: Floats, change: Floats) -> Floats:
    a, w3 = shape * x, 2.0
    w4 = a * w3 + 6.0 * x
    w5 = a * w4 + 14.0 * x * x
    w6 = a * w5 + 30.0 * x * x * x
    w7 = a * w6 + 62.0 * x * x * x * x
    w8 = a * w7 + 126.0 * x * x * x * x * x
    w9 = a * w8 + 254.0 * x * x * x * x * x * x
    series = w3 / 6.0 + w4 / 24.0 + w5 / 120.0 + w6 / 720.0 + w7 / 5040.0 + w8 / 40320.0 + w9 / 362880.0
    ratio = _ratio(x, z)
    return 0.5 * elapsed * elapsed * (change - a * (1.0 - change) * ratio * ratio * series)


def _ratio(span: Floats, z: Floats) -> Floats:
    return np.divide(span, z, out=np.ones_like(z), where=z > 0.0)


def _integrals(rate: Floats, span: Floats, end: Floats) -> Floats:
    power = rate * span
    out: Floats = (end - 1.0) / rate
    small = np.flatnonzero(~(np.abs(power) > 0.5))
    if len(small):
        power, span = power[small], span[small]
        out[small] = np.divide(span * expm1(power), power, out=span.copy(), where=power != 0.0)
    return out


def harm_values(harm: Harm, shape: Floats, exposure: Floats, elapsed: Floats) -> tuple[Floats, Floats]:
    """`harm_value` of columns."""
    worth, slope = np.zeros_like(elapsed), np.zeros_like(elapsed)
    for y, jump, bend in zip(harm.age.tolist(), harm.jump.tolist(), harm.bend.tolist(), strict=True):
        left = elapsed - y
        met = np.flatnonzero(left > 0.0)
        if len(met) == 0:
            break
        some = ... if len(met) == len(left) else met
        s, e, t, u = (x[some] for x in (shape, exposure, elapsed, left))
        for more, steeper in _harm_of_age(harm.every, y, jump, bend, s, e, t, u):
            worth[some] += more
            slope[some] += steeper
    return worth, slope


def _harm_of_age(
    every: bool, y: float, jump: float, bend: float, shape: Floats, exposure: Floats, elapsed: Floats, left: Floats
) -> Iterator[tuple[Floats, Floats]]:
    """What one age of the table adds to value and slope, in the order in which it is added."""
    if every:
        rate = shape / exposure
        worth = rate * (jump * 0.5 * left * (elapsed + y) + bend * left * left * (2.0 * elapsed + y) / 6.0)
        yield worth, rate * elapsed * (jump + bend * left)
        return
    changed = -expm1(-shape * log1p(left / exposure)) if y > 0.0 else np.zeros(1)
    if jump != 0.0:
        one, steep = freshness_values(shape, exposure, left)
        if y > 0.0:
            one += y * changed
            steep *= elapsed / left
        yield jump * one, jump * steep
    if bend != 0.0:
        one, steep = age_values(shape, exposure, left)
        if y > 0.0:
            one += y * (left * changed - freshness_values(shape, exposure, left)[0])
            steep = elapsed * changed
        yield bend * one, bend * steep
