"""What polls have said of a change rate, kept so that even a long series of late polls is remembered as it was.

The density of the rate λ is λ^(shape−1)·e^(−exposure·λ)·(1 − e^(−λ·span))^late: time without changes and changes
whose time is known are in shape and exposure, exactly; polls that found a change, nobody knows when, are `late` polls
after `span` each. If all came after the same interval that is exact too. Where intervals differ, count and span are
those with the same slope and curvature of the log likelihood at the rate believed in.

Rules of this file:
1. Columns in, columns out; arguments are trusted.
2. A Gamma of the same mean and variance is what plans use; this is what intervals for the rate are read from, because
   no Gamma can both lack slow rates, which many changes rule out, and keep its width among fast ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats

#: changes per interval beyond which a poll that found one says nothing
_MOST = 600.0
_STEPS = 4
#: points of the density while its place is sought and then, and how much of it may lie outside of them
_POINTS, _OUTSIDE = (33, 33, 129), 1e-7
_BLOCK = 4096


class Evidence(NamedTuple):
    """Columns: exact shape and exposure, the number of polls that found a change, the interval they stand for."""

    shape: Floats
    exposure: Floats
    late: Floats
    span: Floats

    def changed(self, elapsed: Floats, rate: Floats) -> Evidence:
        """After one more poll that found a change, where the rate is believed to be about `rate`."""
        late, span, elapsed, rate = (np.array(x) for x in np.broadcast_arrays(self.late, self.span, elapsed, rate))
        span = np.where(late > 0, span, elapsed)
        # Intervals that are all the same, as most are, need no more.
        others = np.abs(elapsed - span) > 1e-9 * span
        both = _together(late[others], span[others], elapsed[others], rate[others])
        late += 1.0
        late[others], span[others] = both
        return self._replace(late=late, span=span)

    def quantiles(self, shape: tuple[int, ...], *levels: float) -> list[Floats]:
        """The rates below which each change rate lies with each of these probabilities, in columns of this shape."""
        flat = [np.ravel(np.broadcast_to(column, shape)) for column in self]
        parts = [
            _quantiles(Evidence(*(column[i : i + _BLOCK] for column in flat)), levels)
            for i in range(0, len(flat[0]), _BLOCK)
        ]
        return [np.concatenate(column).reshape(shape) for column in zip(*parts, strict=True)]


def _together(late: Floats, span: Floats, elapsed: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Count and span with the slope and curvature of both in λ, at a rate."""
    x, new = (np.clip(rate * t, 1e-9, _MOST) for t in (span, elapsed))
    # Slopes of late·log(1 − e^(−λ·span)), and what curvature is to slope, in units of the rate.
    slope, added = late * x / np.expm1(x), new / np.expm1(new)
    curved = (slope * x / -np.expm1(-x) + added * new / -np.expm1(-new)) / (slope + added)
    y = _span(np.maximum(curved, 1.0))
    return (slope + added) * np.expm1(y) / y, y / rate


def _span(curved: Floats) -> Floats:
    """The y with y/(1 − e^(−y)) = curved: Newton's method from above, where it is convex."""
    y = np.maximum(np.minimum(2.0 * (curved - 1.0), curved), 1e-9)
    for _ in range(_STEPS):
        part = -np.expm1(-y)
        y = np.maximum(y - (y / part - curved) * part * part / (part - y * np.exp(-y)), 1e-9)
    return y


def _quantiles(seen: Evidence, levels: tuple[float, ...]) -> list[Floats]:
    shape, exposure, late, span = (column[:, None] for column in seen)
    row = np.arange(len(seen.shape))
    # First so wide that nothing is outside, then twice only where something is.
    most = seen.shape + seen.late
    low = np.log(_OUTSIDE) / np.minimum(most, 1.0) - 6.0 + np.log(np.minimum(most, 1.0) / seen.exposure)
    high = np.log((most + 10.0 * np.sqrt(most) + 30.0) / seen.exposure)
    for look, points in enumerate(_POINTS):
        grid = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, points)
        rate = np.exp(grid)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(late > 0, late * np.log(-np.expm1(-rate * span)), 0.0)
        log = shape * grid - exposure * rate + found
        density = np.exp(log - log.max(axis=1, keepdims=True))
        pieces = 0.5 * (density[:, 1:] + density[:, :-1])
        mass = np.concatenate([np.zeros((len(row), 1)), np.cumsum(pieces, axis=1)], axis=1)
        mass /= mass[:, -1:]
        if look < 2:
            first, last = (mass > _OUTSIDE).argmax(axis=1), (mass > 1.0 - _OUTSIDE).argmax(axis=1)
            low, high = grid[row, np.maximum(first - 2, 0)], grid[row, np.minimum(last + 1, points - 1)]
    at = []
    for level in levels:
        i = np.clip((mass >= level).argmax(axis=1), 1, _POINTS[-1] - 1)
        share = (level - mass[row, i - 1]) / (mass[row, i] - mass[row, i - 1])
        at.append(np.exp(grid[row, i - 1] + share * (grid[row, i] - grid[row, i - 1])))
    return at
