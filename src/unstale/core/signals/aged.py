"""What a brain with signals decides when harm grows with age: the answers of `choices`, in scalars that are compiled.

Rules of this file:
1. A copy known to be stale is left to grow older until a poll pays (`age.known_age`): it may serve several changes.
2. Between signals a member is polled for its silent changes alone, as plain polling under age would for that rate.
3. A listing is polled every T at which Σ (weight·h(T) + due·(1 − e^(−rate·T)))/T + price·cost/T is least, h the age
   that a window collects, and only if that is less than plain polling costs.
"""

from __future__ import annotations

import math

from unstale.core.learning.compiled import compiled

_STEPS = 40


@compiled
def ripe_age(rate: float, due: float) -> float:
    """How old a copy known to be stale is when a poll of it pays: `age.known_age` of one member.

    >>> round(ripe_age(2.0, 0.6), 9)
    0.704159458
    """
    return 2.0 * due * rate / (math.sqrt(1.0 + 2.0 * due * rate * rate) + 1.0)


@compiled
def aged_gaps(share: float) -> float:
    """The plain interval under age in mean gaps: y with y²/2 − P(2, y) = share, share = due·rate²/weight.

    The left side is y³/3 for small y and y²/2 − 1 for large; it rises, so Newton's steps from above come down to it.

    >>> y = aged_gaps(0.5)
    >>> round(y * y / 2 - (1 - (1 + y) * 2.718281828459045 ** -y), 9)
    0.5
    """
    if share <= 0.0:
        return 0.0
    y = max((3.0 * share) ** (1.0 / 3.0) * 1.5, math.sqrt(2.0 * (share + 1.0)) if share > 0.5 else 0.0)
    for _ in range(_STEPS):
        fall = math.exp(-y)
        have = y * y / 2.0 + math.expm1(-y) + y * fall if y > 1e-3 else y**3 / 3.0
        slope = y * (1.0 - fall) if y > 1e-3 else y * y
        step = (have - share) / slope
        y = max(y - step, 0.5 * y)
        if abs(step) <= 1e-12 * y:
            break
    return float(y)


@compiled
def aged_window(rate: float, span: float) -> float:
    """The age that a member collects in a window, fresh at its start: T²/2 − T/rate + (1 − e^(−rate·T))/rate².

    >>> round(aged_window(1.0, 2.0), 9)
    0.864664717
    """
    x = rate * span
    if x < 1e-3:
        return rate * span**3 / 6.0
    return (x * x / 2.0 - x - math.expm1(-x)) / (rate * rate)


@compiled
def aged_plain(rate: float, due: float) -> float:
    """What a member costs a second under plain polling, per unit of weight: age and polls at its best interval.

    The derivative of h at that interval, t − (1 − e^(−rate·t))/rate: at the optimum the mean is the margin.

    >>> y = aged_gaps(0.5)
    >>> round(aged_plain(1.0, 0.5) - (aged_window(1.0, y) + 0.5) / y, 9)
    0.0
    """
    y = aged_gaps(due * rate * rate)
    return (y + math.expm1(-y)) / rate
