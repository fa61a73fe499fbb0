"""What to believe of a source we have never polled: what its fleet is like."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats

#: of how alike a fleet looks only a third is believed: the changes of real sources come in bursts and tell less
#: than as many independent ones, and a prior too sure of itself would not listen to a source that has just changed
BELIEVED = 1.0 / 3.0
LEAST = 0.2
#: sources beyond this many are thinned: the prior has two numbers
ENOUGH = 5_000
#: in logarithms around the fleet's mean interval: beyond it there is nothing to learn from
_FAR = 8.0


def fit_prior(shape: Floats, exposure: Floats, start: tuple[float, float], scale: float) -> tuple[float, float]:
    """The Gamma prior under which what a fleet's polls have taught is likeliest.

    Maximises Σ log(Γ(a + shape)/Γ(a) · b^a/(b + exposure)^(a + shape)) over the prior's a and b, given the evidence
    (shape, exposure) of each source, from `start`; `scale` is a time typical of the fleet. Above 1, a third of the
    shape is kept, but not less than 1: sources that look alike are not quite believed to be.

    >>> rng = np.random.default_rng(1)
    >>> rate = rng.gamma(0.5, 1 / 3.0, 2000)
    >>> a, b = fit_prior(rng.poisson(rate * 50.0).astype(float), np.full(2000, 50.0), (1.0, 1.0), 1.0)
    >>> round(a, 2), round(b, 1)
    (0.47, 2.9)
    """
    from scipy.optimize import minimize
    from scipy.special import gammaln

    if len(shape) > ENOUGH:
        step = -(-len(shape) // ENOUGH)
        shape, exposure = shape[::step], exposure[::step]
    exposure = exposure / scale

    def unlikely(x: Floats) -> float:
        a, b = np.exp(np.clip(x, -_FAR, _FAR))
        like = gammaln(a + shape) - gammaln(a) + a * np.log(b) - (a + shape) * np.log(b + exposure)
        # A weak pull to shape 1, so that a fleet that has taught nothing keeps a prior.
        return float(-like.mean() + 1e-3 * x[0] ** 2)

    first = np.log([start[0], start[1] / scale])
    found = minimize(unlikely, first, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 1e-6, "maxiter": 80})
    a, b = np.exp(np.clip(found.x, -_FAR, _FAR))
    kept = max(min(float(a), 1.0), BELIEVED * float(a), LEAST)
    return kept, kept * float(b) / float(a) * scale


def shares(weight: Floats) -> Floats:
    """Log weights of the half-lives from every source's own: a half-life no source favours is never quite dropped."""
    return np.asarray(np.log(np.maximum(weight.mean(axis=0), math.exp(-7.0))))
