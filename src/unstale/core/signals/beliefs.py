"""Exact listings when rates are beliefs, and when changes come in bursts: what a Gamma belief makes of (1) and (2).

A Gamma(shape, exposure) belief has Pareto gaps, F̄(t) = (exposure/(exposure + t))^shape: the longer a member has been
silent, the slower it is believed to be. Beliefs are held fixed over a window, which is an approximation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers
from unstale.core.values.belief import BeliefFreshness


def belief_listing_value(
    interval: ArrayLike, shape: ArrayLike, exposure: ArrayLike, weight: ArrayLike, due: ArrayLike
) -> Floats:
    """What each member adds to the value of polling its listing after `interval`, its change rate a Gamma belief.

    weight·φ(T) − due·(1 − s^shape·(1 + shape·T/(exposure + T))), s = exposure/(exposure + T), φ the value of
    plain polling: the Poisson term averaged over the belief, for members polled on every signal. A member is so
    polled iff weight·exposure/(shape − 1) > due, and always for shape ≤ 1; else it adds 0. Belief held fixed.
    [docs/theory/signals.md, (2)].

    >>> belief_listing_value(2.0, [3.0], [2.0], 1.0, 0.2).round(9).tolist()
    [0.3625]
    """
    a, b = np.atleast_1d(numbers("shape", shape, above=0)), np.atleast_1d(numbers("exposure", exposure, above=0))
    t, q, owed = (np.broadcast_to(np.asarray(x, np.float64), a.shape) for x in (interval, weight, due))
    with np.errstate(all="ignore"):
        polled = (a <= 1.0) | (q * b / (a - 1.0) > owed)
        still = np.exp(-a * np.log1p(t / b))
        twice = 1.0 - still * (1.0 + a * t / (b + t))
        term = q * BeliefFreshness(a, b).value(t) - owed * twice
    return np.asarray(np.where(polled & (q > 0), term, 0.0))


def best_silence(shape: ArrayLike, exposure: ArrayLike, due: ArrayLike) -> Floats:
    """How long a member known to be stale should have been silent before it is polled.

    (shape·due − exposure)⁺, due per unit of weight: where the hazard of the next change, shape/(exposure + σ), has
    fallen to 1/due. In a burst the next change is near and a poll now is wasted; a memoryless source is polled at once
    or never. Exact signals; silence is counted from the last change. Any gaps of falling hazard: where it is 1/due.
    [docs/theory/signals.md, section 5].

    >>> best_silence(2.0, 1.0, 2.0).tolist()
    3.0
    """
    a, b, w = (np.asarray(x, dtype=np.float64) for x in (shape, exposure, due))
    return np.asarray(np.maximum(a * w - b, 0.0))


def silence_worth(silence: ArrayLike, shape: ArrayLike, exposure: ArrayLike, due: ArrayLike) -> Floats:
    """What each change of a known-stale member brings if the member is polled once it has been silent for `silence`.

    ∫_σ^∞ F̄ − due·F̄(σ), F̄(t) = (exposure/(exposure + t))^shape, due per unit of weight: the fresh time that is left,
    less the polls, counted over the changes that are followed by so long a silence. Largest at `best_silence`.
    Needs shape > 1, else the fresh time has no end: inf. [docs/theory/signals.md, section 5].

    >>> round(float(silence_worth(3.0, 2.0, 1.0, 2.0)), 12)
    0.125
    """
    s, a, b, w = (np.asarray(x, dtype=np.float64) for x in (silence, shape, exposure, due))
    still = np.exp(-a * np.log1p(s / b))
    with np.errstate(divide="ignore"):
        left = np.where(a > 1.0, (b + s) / np.abs(a - 1.0) * still, np.inf)
    return np.asarray(left - w * still)
