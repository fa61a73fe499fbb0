"""The interval of one source at a price, without arrays: a keeper decides one source at a time."""

from __future__ import annotations

import math

from unstale.core.gamma2 import COEFFICIENTS, SCALE

#: from the highest power down, as Horner's rule takes them
_FALLING = tuple(reversed(COEFFICIENTS[:-1]))
_TOP = COEFFICIENTS[-1]
#: below this share of its limit only the leading term √(2·value/change_rate) counts
_TINY = 1e-40
_ALMOST = math.nextafter(1.0, 0.0)


def poisson_interval(change_rate: float, value: float) -> float:
    """The shortest interval after which a poll is worth `value`, under freshness with Poisson changes.

    P⁻¹(2, change_rate·value)/change_rate, the number that `PoissonFreshness.interval` gives for a column, to a
    relative 1e-14 and some ten times sooner than by an array of one. 0 for value 0, inf from the limit
    1/change_rate on and for a source that never changes. Inputs are trusted: 0 or more, not NaN.
    [000 Table 2, footnote 10].

    >>> round(poisson_interval(2.0, 0.25), 12)
    0.839173495008
    """
    if value <= 0.0:
        return 0.0
    if change_rate <= 0.0 or value >= 1.0 / change_rate:
        return math.inf
    s = change_rate * value
    if s < _TINY:
        return math.sqrt(2.0 * value) / math.sqrt(change_rate)
    y = -math.log1p(-min(s, _ALMOST))
    t = math.sqrt(2.0 * y)
    z = SCALE * t / (t + 4.0) - 1.0
    total = _TOP
    for c in _FALLING:
        total = total * z + c
    return (t + y) * total / change_rate
