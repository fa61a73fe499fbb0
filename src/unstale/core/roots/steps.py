"""Roughly where a falling function that moves in steps passes 0: a price for what falls due, source by source."""

from __future__ import annotations

from collections.abc import Callable

#: in logarithms: how far from the centre prices are sought, and how near two of them are one
REACH, NEAR = 14.0, 1e-3
_ROUNDS = 200


def passes_zero(f: Callable[[float], float], x: float, centre: float, close: float) -> float:
    """Where a falling step-like function passes 0: bracketed by doubling steps, then false position kept inside.

    Not further than REACH from the centre. Where it jumps past 0 the higher end is taken: rather too little than too
    much. It ends after at most 200 evaluations, whatever f answers.

    >>> round(passes_zero(lambda x: 1.0 - x, 0.0, 0.0, 1e-9), 6)
    1.0
    """
    x = min(max(x, centre - REACH), centre + REACH)
    at = f(x)
    step = 0.25 if at > 0.0 else -0.25
    y, there = x, at
    for _ in range(_ROUNDS):
        if abs(at) <= close or not abs(x + step - centre) <= REACH:
            return x
        y, there = x + step, f(x + step)
        if (there > 0.0) != (at > 0.0):
            break
        x, at, step = y, there, 2.0 * step
    for _ in range(_ROUNDS):
        if not abs(y - x) > NEAR:
            break
        low, width = min(x, y), abs(y - x)
        m = x - at * (y - x) / (there - at)
        m = min(max(m, low + 0.02 * width), low + 0.98 * width)
        between = f(m)
        if abs(between) <= close:
            return m
        if (between > 0.0) == (at > 0.0):
            x, at = m, between
        else:
            y, there = m, between
    return max(x, y)
