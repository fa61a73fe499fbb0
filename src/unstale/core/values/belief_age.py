"""Value of a poll under age when the change rate itself is uncertain: a Gamma belief.

Everything is interval² or interval times a bounded share, so that no power of the interval over- or underflows.
E(c), L and z = t/exposure are those of `belief`.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.roots.logarithms import newton
from unstale.core.values.belief import BeliefForms, BeliefValue, gauss, log_span, mean_stale, span

_STEPS = 40
#: beyond this z² is no double, and all shares are at their limits or change by powers too small to see
_FAR = 1e150


def _share(a: Floats, b: Floats, t: Floats) -> Floats:
    """φ/t² = ∫₀ᴸ (e^l − 1)·(1 − e^(−a·l))·e^l dl/z², from a·z/3 for short intervals to ½ for long ones."""
    z = np.minimum(t / b, _FAR)
    length = np.log1p(z)
    change = -np.expm1(-a * length)
    small = gauss(a, length, lambda x, ax: np.expm1(x) * -np.expm1(-ax) * np.exp(x)) * length / z / z
    two = span(2 - a, length)
    # by parts: ½·(z²·change − a·∫ v²·(1+v)^(−a−1) dv)/z²
    slow = 0.5 * (change - (a * (two - 2.0 * span(1 - a, length)) + change) / z / z)
    fast = 0.5 - (two / z / z - (1.0 + 1.0 / z) * np.exp(-a * length)) / (a - 1)
    out = np.where((length < 2) & (a * length < 2), small, np.where(a <= 2, slow, fast))
    return np.where((1 + a) * length < 1e-17, a * (t / b) / 3, out)


def _value(a: Floats, b: Floats, t: Floats) -> Floats:
    return np.where(np.isinf(t), np.inf, t * (t * _share(a, b, t)))


def _slope(a: Floats, b: Floats, t: Floats) -> Floats:
    return np.where(t == 0, 0.0, t * -np.expm1(-a * log_span(b, t)))


def _staleness(a: Floats, b: Floats, t: Floats) -> Floats:
    """h' − φ/t, h' = t·(mean staleness of the interval)."""
    return np.where(np.isinf(t), np.inf, t * (mean_stale(a, b, t) - _share(a, b, t)))


def _limit(a: Floats, b: Floats) -> Floats:
    return np.full(np.broadcast(a, b).shape, np.inf)


def _interval(a: Floats, b: Floats, v: Floats) -> Floats:
    """Newton's method on logarithms, where the slope lies between 2 and 3, from a lower bound."""
    inside = (v > 0) & np.isfinite(v)
    goal = np.where(inside, v, 1.0)

    def step(t: Floats) -> Floats:
        share = _share(a, b, t)
        return np.log(share / (goal / t / t)) * share / -np.expm1(-a * log_span(b, t))

    start = np.maximum(np.cbrt(3 * goal) * np.cbrt(b / a), np.sqrt(2 * goal))
    t, _ = newton(step, start, close=1e-9, rounds=_STEPS)
    return np.where(inside, t, np.where(v > 0, np.inf, 0.0))


class BeliefAge(BeliefValue):
    """Value of a poll under age when all we know of the change rate is a Gamma(shape, exposure) belief.

    φ(t) = ∫₀ᵗ u·(1 − (1 + u/exposure)^−shape) du: the mean of the Poisson value ((λt)²/2 − P(2, λt))/λ² over the
    belief. It begins like shape·t³/(3·exposure) and ends like t²/2, without a limit: nothing is ever abandoned.
    As shape and exposure grow together it becomes that of change_rate = shape/exposure. Both above 0. Relative error
    below 1e-12 in fixed order, 1e-10 in the others, which cost some hundred times more. [000 Table 2] for a known rate.

    >>> BeliefAge([3.0], [1.0]).value(1.0).round(12)
    array([0.375])
    """

    _forms = BeliefForms(_value, _slope, _staleness, _interval, _limit)
