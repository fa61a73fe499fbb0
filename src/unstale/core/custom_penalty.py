"""A penalty given as a function of the user's own: checked, then integrated numerically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unstale.core.checks import Floats, numbers
from unstale.core.penalties import Penalty
from unstale.core.quadrature import integrate
from unstale.errors import ConvergenceError, InputError, require, sentence

#: [0, x] is cut here, for the scale on which f varies is not known and x may be far from it
_DECADES = 10.0 ** np.arange(-60, 301, 30)
_GRID = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 2401)])


class Custom(Penalty):
    """w = f(x), any non-negative function of the age.

    `w2(x) = ∫₀ˣ f` and `w3(x) = ∫₀ˣ (x−y)·f(y) dy` come from adaptive quadrature to a relative 1e-10, or a
    ConvergenceError; naming the ages where f jumps in `kinks` makes them fast. f is checked on 2402 ages
    from 0 to 1e6: never negative or NaN, and non-decreasing if so declared; without a declaration what
    the grid shows is believed. f may take an array or one number; w(∞) is read off at 1e300, and where f begins to
    be above 0 is sought between 1e-60 and 1e300.

    >>> round(Custom(lambda x: x**1.5).w2(1.0), 12)
    0.4
    """

    _shown: tuple[str, ...] = ("f",)

    def __init__(
        self, f: Callable[[Any], Any], *, nondecreasing: bool | None = None, kinks: Sequence[float] = ()
    ) -> None:
        require(callable(f), "f", repr(f), "must be callable", "give a function of the age")
        self.f = f
        self.kinks = tuple(sorted(float(k) for k in numbers("kinks", list(kinks), above=0)))
        values = self._w(_GRID)
        bad = ~(values >= 0)
        if bad.any():
            i = int(np.argmax(bad))
            remedy = "a stale copy does no good, so shift or clip f"
            raise InputError(sentence(f"penalty f({_GRID[i]:.6g}) =", float(values[i]), "must be 0 or more", remedy))
        with np.errstate(invalid="ignore"):
            falls = np.diff(values) < -1e-12 * values[:-1]
        if nondecreasing and falls.any():
            i = int(np.argmax(falls))
            before, after = (f"f({_GRID[k]:.6g}) = {values[k]:.6g}" for k in (i, i + 1))
            rule = f"is false: {before} exceeds {after}"
            raise InputError(sentence("nondecreasing", True, rule, "declare nondecreasing=False"))
        self.nondecreasing = not falls.any() if nondecreasing is None else nondecreasing
        far = self._w(np.array([1e200, 1e300]))
        # still growing a hundred decades later means without limit
        self.limit = float(far[1]) if not far[1] > far[0] * (1 + 1e-9) else np.inf
        self.harmless = self._first_harm()

    def _first_harm(self) -> float:
        """The age up to which f is 0, to the last digit; inf if f never is anything else."""
        ages = np.concatenate([_DECADES[:2], _GRID[1:], _DECADES[4:]])
        harm = np.flatnonzero(self._w(ages) > 0)
        if not len(harm):
            return np.inf
        if harm[0] == 0:
            return 0.0
        low, high = ages[harm[0] - 1], ages[harm[0]]
        while low < (middle := np.sqrt(low) * np.sqrt(high)) < high:
            low, high = (low, middle) if self._w(np.array([middle]))[0] > 0 else (middle, high)
        return float(low)

    def _w(self, x: Floats) -> Floats:
        with np.errstate(all="ignore"):
            try:
                out = np.asarray(self.f(x), dtype=np.float64)
            except (TypeError, ValueError):
                out = np.array([float(self.f(float(a))) for a in np.ravel(x)]).reshape(np.shape(x))
        return np.asarray(np.broadcast_to(out, np.shape(x)), dtype=np.float64)

    def _w2(self, x: Floats) -> Floats:
        return self._integral(x, lambda x, y: self._w(y), lambda: self._to_infinity(self._w, np.inf))

    def _w3(self, x: Floats) -> Floats:
        return self._integral(x, lambda x, y: (x - y) * self._w(y), lambda: np.inf)

    def _v(self, x: Floats) -> Floats:
        # ∫₀ˣ (w(x) − w(y)) dy: for a growing w nothing cancels
        def to_infinity() -> float:
            diverges = np.inf if self.nondecreasing else -np.inf
            return self._to_infinity(lambda y: self.limit - self._w(y), diverges)

        return self._integral(x, lambda x, y: self._w(x) - self._w(y), to_infinity)

    def _integral(self, x: Floats, f: Callable[[Floats, Floats], Floats], at_infinity: Callable[[], float]) -> Floats:
        """∫₀ˣ f(x, y) dy for each x."""
        far = np.isinf(x)
        x = np.where(far, 0.0, x)
        points = sorted([*self.kinks, *_DECADES])
        value, _ = integrate(lambda y, x: f(x, y), [0.0, *(np.minimum(p, x) for p in points), x], args=[x])
        return np.where(far, at_infinity() if far.any() else 0.0, value)

    def _to_infinity(self, f: Callable[[Floats], Floats], diverges: float) -> float:
        """∫₀^∞ f, or `diverges` where it cannot be shown to converge."""
        try:
            return float(integrate(f, [0.0, *self.kinks, np.inf])[0])
        except ConvergenceError:
            return diverges
