"""What to believe of a source we have never polled: what its fleet is like."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.evidence import Evidence

#: of how alike a fleet looks only a third is believed: the changes of real sources come in bursts and tell less
#: than as many independent ones, and a prior too sure of itself would not listen to a source that has just changed
BELIEVED = 1.0 / 3.0
LEAST = 0.2
#: sources beyond this many are thinned: the prior has two numbers
ENOUGH = 2_000
#: in logarithms around the fleet's mean interval: beyond it there is nothing to learn from
_FAR = 8.0
#: rates in logarithms, in units of the fleet's: as fine as the narrowest likelihood that is let in is wide
_TELLING = 60.0
_GRID = np.arange(-14.0, 10.0, 0.12)


def fit_prior(seen: Evidence, start: tuple[float, float], scale: float) -> tuple[float, float]:
    """The Gamma prior under which what a fleet's polls have said is likeliest.

    Maximises Σ log ∫ p(λ)·λ^shape·e^(−exposure·λ)·(1 − e^(−span·λ))^late dλ over the prior p's shape and exposure, from
    `start`, on a grid of rates around 1/`scale`, a time typical of the fleet. What one source said counts as at most
    60 changes: more tell of it and not of the fleet. Above 1, a third of the shape is kept, but not less than 1:
    sources that look alike are not quite believed to be.

    >>> rng = np.random.default_rng(1)
    >>> counts = rng.poisson(rng.gamma(0.5, 1 / 3.0, 2000) * 50.0).astype(float)
    >>> a, b = fit_prior(Evidence(counts, np.full(2000, 50.0), np.zeros(2000), np.ones(2000)), (1.0, 1.0), 1.0)
    >>> round(a, 2), round(b, 1)
    (0.48, 3.0)
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln

    step = thinned(len(seen.shape))
    shape, exposure, late, span = (column[::step, None] for column in seen)
    # Late polls that never found it unchanged only say that it is no slow source.
    telling = shape + np.minimum(late, exposure / span)
    known = np.minimum(1.0, _TELLING / np.maximum(telling, _TELLING))
    rate = np.exp(_GRID)
    with np.errstate(divide="ignore"):
        found = np.where(late > 0.0, late * np.log(-np.expm1(-rate * span / scale)), 0.0)
    log = known * (shape * _GRID - rate * exposure / scale + found)
    like = np.exp(log - log.max(axis=1, keepdims=True, initial=-np.inf))

    def unlikely(x: Floats) -> float:
        a, b = np.exp(np.clip(x, -_FAR, _FAR))
        density = np.exp(a * (_GRID + np.log(b)) - b * rate - gammaln(a))
        # A weak pull to shape 1, so that a fleet that has taught nothing keeps a prior.
        return float(-np.log(np.maximum(like @ density, 1e-300)).mean() + 1e-3 * x[0] ** 2) if len(like) else x[0] ** 2

    first = np.log([start[0], start[1] / scale])
    found = minimize(unlikely, first, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 1e-6, "maxiter": 80})
    a, b = np.exp(np.clip(found.x, -_FAR, _FAR))
    kept = max(min(float(a), 1.0), BELIEVED * float(a), LEAST)
    return kept, kept * float(b) / float(a) * scale


def thinned(sources: int) -> int:
    """The step by which so many sources are gone through, so that few enough are looked at.

    >>> thinned(0), thinned(2_000), thinned(2_001)
    (1, 1, 2)
    """
    return -(-sources // ENOUGH) or 1


def shares(weight: Floats) -> Floats:
    """Log weights of the half-lives from every source's own: a half-life no source favours is never quite dropped."""
    return np.asarray(np.log(np.maximum(weight.mean(axis=0), math.exp(-7.0))))
