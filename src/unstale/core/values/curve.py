"""A dear function of one positive number, remembered as Chebyshev pieces where it has been asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from unstale.core.checks import Floats

_N = 16
_K = np.arange(_N)
_ANGLE = np.pi * (_K + 0.5) / _N
#: from values at the nodes cos(_ANGLE) to Chebyshev coefficients
_TO_SERIES = np.cos(np.outer(_ANGLE, _K)) * (2.0 / _N)
_TO_SERIES[:, 0] /= 2
#: size of the last coefficients at which a piece is fine, absolute and relative to the first
_FINE, _NOISE = 1e-13, 1e-15


class Curve:
    """function(x)/x^power for x > 0, as pieces over log x that are made on first use.

    Each cell of log x between whole numbers is halved until 16 Chebyshev terms suffice (1e-13 of the log),
    and cut at `bends`, where the function is not smooth. One curve serves all sources whose values differ in
    scale only. `function` takes a column and must be positive and smooth between bends.

    >>> curve = Curve(lambda x: x**2 / (1 + x), 2.0)
    >>> curve.value(np.array([1.0, 3.0])).round(12).tolist(), curve.slope(np.array([1.0])).round(9).tolist()
    ([0.5, 2.25], [0.75])
    """

    def __init__(self, function: Callable[[Floats], Floats], power: float, bends: Sequence[float] = ()) -> None:
        self._function, self._power = function, power
        self._bends = np.log(np.array([b for b in bends if b > 0]))
        self._cells = np.empty(0)
        # start and width of each piece, ascending, and its series
        self._pieces = np.empty((0, 2 + _N))

    def value(self, x: Floats) -> Floats:
        """function(x)."""
        return np.exp(self._series(np.log(x))[0]) * np.power(x, self._power)

    def slope(self, x: Floats) -> Floats:
        """The derivative of function at x."""
        level, rise = self._series(np.log(x))
        return np.exp(level) * np.power(x, self._power - 1) * (rise + self._power)

    def _series(self, u: Floats) -> tuple[Floats, Floats]:
        """log(function/x^power) and its derivative in log x, by Clenshaw's recurrences."""
        self._cover(u)
        row = np.searchsorted(self._pieces[:, 0], u, side="right") - 1
        width = self._pieces[row, 1]
        z = 2 * (u - self._pieces[row, 0]) / width - 1
        b1, b2, d1, d2 = (np.zeros_like(z) for _ in range(4))
        for k in range(_N - 1, 0, -1):
            # d is the derivative of b in z
            d1, d2 = 2 * b1 + 2 * z * d1 - d2, d1
            b1, b2 = self._pieces[row, 2 + k] + 2 * z * b1 - b2, b1
        return self._pieces[row, 2] + z * b1 - b2, (b1 + z * d1 - d2) * 2 / width

    def _cover(self, u: Floats) -> None:
        missing = np.setdiff1d(np.floor(u), self._cells)
        if not len(missing):
            return
        cuts = np.unique(np.concatenate([missing, missing + 1, self._bends]))
        # bends that are one but for rounding leave no room for a piece
        cuts = cuts[np.append(True, np.diff(cuts) > 1e-12)]
        inside = np.isin(np.floor(0.5 * (cuts[:-1] + cuts[1:])), missing)
        low, high = cuts[:-1][inside], cuts[1:][inside]
        made, before = [self._pieces], np.full(len(low), np.inf)
        while len(low):
            nodes = low[:, None] + 0.5 * (high - low)[:, None] * (1 + np.cos(_ANGLE))
            x = np.exp(nodes)
            level = np.log(self._function(x.reshape(-1)).reshape(x.shape)) - self._power * nodes
            series = level @ _TO_SERIES
            tail = np.abs(series[:, -2:]).max(axis=1)
            # a half no better than the whole shows noise of the function, which no cut will cure, nor what is no number
            fine = (tail <= _FINE + _NOISE * np.abs(series[:, 0])) | (tail > 0.7 * before) | ~np.isfinite(tail)
            made.append(np.column_stack([low, high - low, series])[fine])
            low, middle, high = low[~fine], 0.5 * (low + high)[~fine], high[~fine]
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            before = np.tile(tail[~fine], 2)
        pieces = np.concatenate(made)
        self._pieces = pieces[np.argsort(pieces[:, 0])]
        self._cells = np.union1d(self._cells, missing)
