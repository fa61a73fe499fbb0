"""The largest time of which every gap is a multiple."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats

#: gaps of more than this many spans are taken for incommensurable
MOST_MULTIPLES = 1e6
_ROUNDING = 4 * np.finfo(float).eps


def common_span(values: Floats) -> float | None:
    """The span of positive `values`: each is a whole multiple of it, or None.

    Two doubles are always commensurable, so "whole" means: at most 1e6 multiples, each met within four
    rounding errors of the value. Euclid's algorithm on all values at once. Two values taken at random pass
    with probability about 1e-3, three or more practically never.

    >>> common_span(np.array([0.3, 0.5, 1.1])), common_span(np.array([1.0, 2**0.5]))
    (0.1, None)
    """
    largest = float(np.max(values))
    floor = largest / MOST_MULTIPLES / 2
    span = float(np.min(values))
    while span > floor:
        rest = np.abs(values - np.round(values / span) * span)
        rest = rest[rest > floor]
        if rest.size == 0:
            # The longest value fixes the span best: its count divides the error away.
            span = largest / round(largest / span)
            whole = np.abs(values - np.round(values / span) * span) <= _ROUNDING * values
            return span if np.all(whole) and largest <= span * MOST_MULTIPLES else None
        span = float(np.min(rest))
    return None
