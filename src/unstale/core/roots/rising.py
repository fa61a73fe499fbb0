"""The root of an increasing function for every source, when no closed form is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats

Rows = NDArray[np.intp]
_ROUNDS = 200


def root(residual: Callable[[Rows, Floats], Floats], guess: Floats) -> Floats:
    """The u with residual(row, u) = 0 for each row, residual non-decreasing in u, by Chandrupatla's method.

    Steps of 1, 2, 4, … from the guess find a bracket, inverse quadratic interpolation or bisection closes it;
    u is meant to be a logarithm, and is found to about 1e-15. Rows already found cost no evaluations.

    >>> root(lambda row, u: 2 * u - np.log([4.0, 9.0])[row], np.zeros(2)).round(12)
    array([0.69314718, 1.09861229])
    """
    rows = np.arange(len(guess))
    a = np.array(guess, dtype=np.float64)
    fa = residual(rows, a)
    b, fb = a.copy(), fa.copy()
    step, seeking = np.where(fa < 0, 1.0, -1.0), np.flatnonzero(fa != 0)
    while len(seeking):
        # a stays on the near side, b runs ahead until the sign turns
        a[seeking], fa[seeking] = b[seeking], fb[seeking]
        b[seeking] += step[seeking]
        fb[seeking] = residual(seeking, b[seeking])
        step[seeking] *= 2
        turned = ((fb[seeking] < 0) != (fa[seeking] < 0)) | (np.abs(step[seeking]) > 1e4)
        seeking = seeking[~turned]
    c, fc, t = a.copy(), fa.copy(), np.full(len(a), 0.5)
    best = np.where(np.abs(fa) < np.abs(fb), a, b)
    live = np.flatnonzero((fa != 0) & (fb != 0))
    for _ in range(_ROUNDS):
        if not len(live):
            break
        x = a[live] + t[live] * (b[live] - a[live])
        fx = residual(live, x)
        same = (fx < 0) == (fa[live] < 0)
        c[live], fc[live] = np.where(same, a[live], b[live]), np.where(same, fa[live], fb[live])
        b[live], fb[live] = np.where(same, b[live], a[live]), np.where(same, fb[live], fa[live])
        a[live], fa[live] = x, fx
        near = np.abs(fa[live]) < np.abs(fb[live])
        best[live] = np.where(near, a[live], b[live])
        smallest = np.where(near, fa[live], fb[live])
        reach = (4e-16 + 2.3e-16 * np.abs(best[live])) / np.abs(b[live] - a[live])
        with np.errstate(all="ignore"):
            xi = (a[live] - b[live]) / (c[live] - b[live])
            phi = (fa[live] - fb[live]) / (fc[live] - fb[live])
            quadratic = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            guess_t = fa[live] / (fb[live] - fa[live]) * fc[live] / (fb[live] - fc[live]) + (
                (c[live] - a[live]) / (b[live] - a[live])
            ) * fa[live] / (fc[live] - fa[live]) * fb[live] / (fc[live] - fb[live])
        next_t = np.where(quadratic & np.isfinite(guess_t), guess_t, 0.5)
        t[live] = np.clip(next_t, np.minimum(reach, 0.5), np.maximum(1 - reach, 0.5))
        live = live[(reach < 0.5) & (smallest != 0)]
    return best
