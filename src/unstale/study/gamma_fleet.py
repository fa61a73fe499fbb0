"""A fleet whose change rates are gamma distributed: uniform against proportional polling [000 Table 3].

`ratio` is mean change rate × mean interval; `variation` is the squared coefficient of variation δ² of the
change rates: 0 for equal sources, 1 for exponential rates. The printed formulas divide by 1−δ², 1−2δ² and δ²; these
forms have no such holes and lose no digits near them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import exprel

from unstale.core.checks import number
from unstale.core.poisson_orders import order_age, order_freshness
from unstale.errors import require

Allocation = Literal["uniform", "proportional"]


def gamma_freshness(ratio: float, variation: float, allocation: Allocation) -> float:
    """Mean freshness of the fleet.

    uniform `E(δ²−1)/ratio` with `E(c) = (e^(c·L) − 1)/c`, `L = log(1 + ratio·δ²)/δ²`; proportional
    `(1 − e^(−ratio))/ratio`, whatever δ². Uniform is the fresher; its lead grows with δ², but the quotient
    proportional/uniform falls to (1−e^(−ratio))/ratio, not to 0 as [000 sect. 5.1] says.
    [000 Table 3, appendix C].

    >>> round(gamma_freshness(2.0, 1.0, "uniform"), 12)
    0.549306144334
    """
    r, d2 = _checked(ratio, variation, allocation)
    if allocation == "proportional" or r == 0:
        return float(order_freshness(r, 1.0))
    length = _length(r, d2)
    if d2 >= 2:
        # e^((δ²−1)·L) = (1 + ratio·δ²)·e^(−L), without an exponent that magnifies rounding
        return float((r * d2 * np.exp(-length) + np.expm1(-length)) / (d2 - 1.0) / r)
    return float(length * exprel((d2 - 1.0) * length) / r)


def gamma_age(ratio: float, variation: float, allocation: Allocation) -> float:
    """Mean age of the fleet in mean intervals.

    uniform `∫₀^L (1 − t(s))²/2·e^(−s) ds`, `t(s) = (e^(δ²·s) − 1)/(ratio·δ²)`, `L = log(1 + ratio·δ²)/δ²`:
    the age of one source averaged over the rates, with positive terms only. proportional
    `age of one source/(1 − δ²)` for δ² < 1 and inf from 1 on, where sources that almost never change are
    almost never polled; the printed formula turns negative there. [000 Table 3, appendix C].

    >>> round(gamma_age(2.0, 1.0, "uniform"), 12), gamma_age(2.0, 1.0, "proportional")
    (0.176040783499, inf)
    """
    r, d2 = _checked(ratio, variation, allocation)
    if r == 0:
        return 0.0
    if allocation == "proportional":
        return float(order_age(r, 1.0)) / (1.0 - d2) if d2 < 1 else np.inf
    length = _length(r, d2)
    # pieces on the scales of e^(−s) from 0 and of t(s) from L; beyond 64 e^(−s) adds nothing
    steps = np.append(0.0, 2.0 ** np.arange(-4, 7))
    back = length - steps / d2 if d2 > 0 else np.array([length])
    edges = np.unique(np.clip(np.concatenate([steps, back]), 0.0, min(length, 64.0)))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(edges)[:, None]
    s = edges[:-1, None] + half * (1.0 + nodes)
    t = s * exprel(d2 * s) / r
    return float(np.sum(half * weights * np.maximum(1.0 - t, 0.0) ** 2 / 2 * np.exp(-s)))


def _length(r: float, d2: float) -> float:
    """log(1 + r·δ²)/δ², r at δ² = 0."""
    z = r * d2
    return r if z == 0 else r * float(np.log1p(z)) / z


def _checked(ratio: float, variation: float, allocation: Allocation) -> tuple[float, float]:
    require(
        allocation in ("uniform", "proportional"),
        "allocation",
        repr(allocation),
        "must be 'uniform' or 'proportional'",
        "choose one of them",
    )
    return number("ratio", ratio, least=0, most=1e150), number("variation", variation, least=0, most=1e150)


__all__ = ["Allocation", "gamma_age", "gamma_freshness"]
