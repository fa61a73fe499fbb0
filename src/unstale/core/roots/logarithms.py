"""Roots of many functions that are nearly power laws, by Newton's method on logarithms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats


def newton(
    step: Callable[[Floats], Floats], start: Floats, *, close: float, rounds: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """The arguments at which all steps are closer than `close`, or those after so many rounds; and which have settled.

    `step(x)` is how far log x is too high, by the function's own slope there: a power law is solved in one step.

    >>> found, settled = newton(lambda x: np.log(x**3 / 8.0) / 3.0, np.array([1.0]), close=1e-9, rounds=8)
    >>> found.round(12).tolist(), settled.tolist()
    ([2.0], [True])
    """
    at, settled = start, np.zeros(np.shape(start), np.bool_)
    for _ in range(rounds):
        by = step(at)
        at = at * np.exp(-by)
        settled = np.abs(by) < close
        if settled.all():
            break
    return at, settled
