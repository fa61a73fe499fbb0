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

from typing import NamedTuple, TypeVar

import numpy as np

from unstale.core.checks import Floats

T = TypeVar("T", float, Floats)

#: changes per interval beyond which a poll that found one says nothing
_MOST = 600.0
_STEPS = 4
#: points of the density, steps to its mode and to its ends, how low it is there, and the farthest step in widths
_POINTS, _MODE_STEPS, _END_STEPS, _DEPTH, _FAR = 41, 8, 4, 7.5, 16.0
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
        both = together(late[others], span[others], elapsed[others], rate[others])
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


def together(late: T, span: T, elapsed: T, rate: T) -> tuple[T, T]:
    """Count and span that stand for `late` polls after `span` each and one more after `elapsed`.

    They have the slope and the curvature in λ that both have together, at the rate believed in: slopes of
    late·log(1 − e^(−λ·span)) add up, and y/(1 − e^(−y)), y = λ·span, is what curvature is to slope. Exact where spans
    are equal. Trusted numbers or columns.

    >>> [round(float(x), 6) for x in together(3.0, 2.0, 2.0, 1.0)]
    [4.0, 2.0]
    """
    x = np.minimum(np.maximum(rate * span, 1e-9), _MOST)
    new = np.minimum(np.maximum(rate * elapsed, 1e-9), _MOST)
    slope, added = late * x / np.expm1(x), new / np.expm1(new)
    curved = np.maximum((slope * x / -np.expm1(-x) + added * new / -np.expm1(-new)) / (slope + added), 1.0)
    # Newton's method from above, where y/(1 − e^(−y)) is convex.
    y = np.maximum(np.minimum(2.0 * (curved - 1.0), curved), 1e-9)
    for _ in range(_STEPS):
        part = -np.expm1(-y)
        y = np.maximum(y - (y / part - curved) * part * part / (part - y * (1.0 - part)), 1e-9)
    return (slope + added) * np.expm1(y) / y, y / rate


def _quantiles(seen: Evidence, levels: tuple[float, ...]) -> list[Floats]:
    """Quantiles by the trapezoidal rule over log λ, between the places where the density is e^−7.5 of its highest.

    The density of log λ is log-concave. Its mode solves exposure·λ = shape + late·x/(e^x − 1), x = λ·span, which
    Newton's method reaches from the left without passing it, and from outside the places where it is that low.
    """
    shape, exposure, late, span = seen
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rate = shape / exposure
        for _ in range(_MODE_STEPS):
            x = np.minimum(rate * span, _MOST)
            grown = np.expm1(x)
            pull = np.where(x > 0.0, x / grown, 1.0)
            slope = np.where(x > 0.0, pull * (pull + x - 1.0) / x, 0.5)
            rate = rate - (exposure * rate - shape - late * pull) / (exposure + late * slope * span)
        middle = np.log(rate)
        highest, _ = _log_density(seen, middle)
        x = np.minimum(rate * span, _MOST)
        pull = x / np.expm1(x)
        wide = 1.0 / np.sqrt(exposure * rate + late * pull * (pull + x - 1.0))
        ends = []
        for side in (-1.0, 1.0):
            at = middle + side * wide
            for _ in range(_END_STEPS):
                log, steep = _log_density(seen, at)
                at = at - np.clip((log - highest + _DEPTH) / steep, -_FAR * wide, _FAR * wide)
            ends.append(at)
    low, step = ends[0], (ends[1] - ends[0]) / (_POINTS - 1)
    grid = low[:, None] + step[:, None] * np.arange(_POINTS)
    log, _ = _log_density(Evidence(*(column[:, None] for column in seen)), grid)
    density = np.exp(log - highest[:, None])
    mass = np.zeros_like(density)
    np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1, out=mass[:, 1:])
    row, quantiles = np.arange(len(low)), []
    for level in levels:
        wanted = level * mass[:, -1]
        i = np.clip((mass >= wanted[:, None]).argmax(axis=1), 1, _POINTS - 1)
        here, there, missing = density[row, i - 1], density[row, i], wanted - mass[row, i - 1]
        # where the mass under a straight line between two points is what is missing
        share = 2.0 * missing / (here + np.sqrt(np.maximum(here * here + 2.0 * (there - here) * missing, 0.0)))
        quantiles.append(np.exp(grid[row, i - 1] + share * step))
    return quantiles


def _log_density(seen: Evidence, at: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the density of log λ, and its slope."""
    rate = np.exp(at)
    x = np.minimum(rate * seen.span, _MOST)
    still = np.exp(-x)
    changed = np.maximum(-np.expm1(-x), 1e-300)
    log = seen.shape * at - seen.exposure * rate + seen.late * np.log(changed)
    return log, seen.shape - seen.exposure * rate + seen.late * x * still / changed
