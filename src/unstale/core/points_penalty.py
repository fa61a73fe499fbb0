"""A penalty given as a table of points: straight lines between them, jumps where an age is named twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats, numbers
from unstale.core.penalties import Penalty
from unstale.errors import require


class Points(Penalty):
    """w through given (age, harm) points: 0 at age 0 unless told, straight between points, level after the last.

    An age that is named twice is a jump. Harm must not fall with age. Written with jumps J and bends B at ages y,
    w(x) = Σ J·[x ≥ y] + Σ B·(x − y)⁺, so every integral is exact; relative error below 1e-12.

    >>> penalty = Points([(1.0, 0.0), (1.0, 0.5), (3.0, 1.0)])
    >>> penalty.w([0.5, 1.0, 2.0, 9.0]).tolist(), penalty.w2(3.0)
    ([0.0, 0.5, 0.75, 1.0], 1.5)
    """

    _shown: tuple[str, ...] = ("points",)

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        require(len(points), "points", "()", "must be one at least", "give pairs of age and harm")
        given = numbers("points", points, least=0)
        require(given.ndim == 2 and given.shape[1] == 2, "points", points, "must be pairs", "give (age, harm) each")
        ages, harms = given[:, 0], given[:, 1]
        if ages[0] > 0:
            ages, harms = np.insert(ages, 0, 0.0), np.insert(harms, 0, 0.0)
        require(np.all(np.diff(ages) >= 0), "points", points, "must be in the order of age", "sort them")
        require(np.all(np.diff(harms) >= 0), "points", points, "must not do less harm with age", "let harm grow")
        require(harms[-1] > 0, "points", points, "must do harm at last", "give the last point a harm above 0")
        self.points = tuple((float(age), float(harm)) for age, harm in zip(ages, harms, strict=True))
        self.limit, self._last = float(harms[-1]), float(ages[-1])
        knots = np.unique(ages)
        # The harm just before and from each age on, and the slope of the line that begins there.
        before = np.array([0.0 if y == 0 else harms[np.searchsorted(ages, y, "left")] for y in knots])
        after = np.array([harms[np.searchsorted(ages, y, "right") - 1] for y in knots])
        slope = np.append((before[1:] - after[:-1]) / np.diff(knots), 0.0)
        self.knots, self.jumps, self.bends = knots, after - before, np.diff(slope, prepend=0.0)
        self.kinks = tuple(float(y) for y in knots[knots > 0])

    def _w(self, x: Floats) -> Floats:
        return self._sum(np.minimum(x, self._last), lambda d: 1.0 * (d >= 0), lambda d: np.maximum(d, 0.0))

    def _w2(self, x: Floats) -> Floats:
        near = np.minimum(x, self._last)
        return self._area(near) + self.limit * np.maximum(x - self._last, 0.0)

    def _w3(self, x: Floats) -> Floats:
        near, far = np.minimum(x, self._last), np.maximum(x - self._last, 0.0)
        volume = self._sum(near, lambda d: 0.5 * np.maximum(d, 0) ** 2, lambda d: np.maximum(d, 0) ** 3 / 6.0)
        return volume + far * self._area(np.asarray(self._last)) + 0.5 * self.limit * far * far

    def _v(self, x: Floats) -> Floats:
        near = np.minimum(x, self._last)[..., None]
        reached = near >= self.knots
        moments = self.jumps * self.knots + 0.5 * self.bends * (near**2 - self.knots**2)
        return np.asarray(np.where(reached, moments, 0.0).sum(axis=-1))

    def _area(self, x: Floats) -> Floats:
        return self._sum(x, lambda d: np.maximum(d, 0.0), lambda d: 0.5 * np.maximum(d, 0.0) ** 2)

    def _sum(self, x: Floats, of_jump, of_bend) -> Floats:  # type: ignore[no-untyped-def]
        left = np.asarray(x)[..., None] - self.knots
        return np.asarray((self.jumps * of_jump(left) + self.bends * of_bend(left)).sum(axis=-1))
