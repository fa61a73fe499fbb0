"""Maximum-likelihood fits of five laws to gaps, for one source or for many at once, and which fits best.

Rules of this file:
1. Gaps are fitted as complete and independent; the unfinished gap after the last change is left out.
2. No law is made sharper, or closer to exponential, than a spread of 1e-4: what goes on beyond is clockwork, or
   exponential, and the likelihood of equal gaps would be infinite. A parameter at such a bound says so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from unstale.core.checks import Floats
from unstale.core.processes import Gamma, LogNormal, Pareto, Poisson, Process, Weibull
from unstale.core.roots.falling import falls_through
from unstale.frozen import dataclass
from unstale.study.fitting.gaps import Gaps

#: the largest shape, and the inverse of the least spread
LIMIT = 1e4
_LEAST_SHAPE = 0.01
_LARGEST_SIGMA = 18.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """One family fitted to each of many sources: columns of parameters, log-likelihood and number of gaps."""

    family: str
    parameters: dict[str, Floats]
    log_likelihood: Floats
    counts: np.ndarray

    @property
    def aic(self) -> Floats:
        """Akaike's criterion, 2·parameters − 2·log-likelihood: the least predicts new gaps best."""
        return 2.0 * len(self.parameters) - 2.0 * self.log_likelihood

    @property
    def bic(self) -> Floats:
        """Schwarz's criterion, parameters·log(gaps) − 2·log-likelihood: the least is the likeliest law."""
        return np.asarray(len(self.parameters) * np.log(self.counts) - 2.0 * self.log_likelihood)

    def process(self, i: int = 0) -> Process | None:
        """The fitted change process of source i, or None where its mean gap is infinite (Pareto, alpha ≤ 1)."""
        given = {name: float(column[i]) for name, column in self.parameters.items()}
        if self.family == "pareto" and given["alpha"] <= 1.0:
            return None
        return _MAKERS[self.family](**given)


def fit_families(gaps: Gaps) -> dict[str, Fit]:
    """Exponential, Weibull, gamma, Pareto and lognormal gaps, each at its maximum of likelihood.

    Each family has one or two parameters for each source; all but the lognormal contain the exponential as a
    special case, so that they can only be likelier. Compare them by `aic`, or find the least with `best`.

    >>> fits = fit_families(Gaps.of([1.0, 2.0, 4.0, 9.0, 30.0]))
    >>> round(float(fits["exponential"].aic[0]), 6), round(float(fits["weibull"].parameters["shape"][0]), 6)
    (34.192035, 0.872092)
    """
    return {name: Fit(name, *fit(gaps), gaps.counts) for name, fit in _FITS.items()}


def best(fits: dict[str, Fit]) -> np.ndarray:
    """The name of the family with the least AIC, for each source; the first of equals.

    >>> best(fit_families(Gaps.of([1.0, 2.0, 4.0, 9.0, 30.0]))).tolist()
    ['exponential']
    """
    names = np.array(list(fits))
    return np.asarray(names[np.argmin([fit.aic for fit in fits.values()], axis=0)])


_Fitted = tuple[dict[str, Floats], Floats]


def _exponential(gaps: Gaps) -> _Fitted:
    mean = gaps.means()
    return {"rate": 1.0 / mean}, -gaps.counts * (1.0 + np.log(mean))


def _weibull(gaps: Gaps) -> _Fitted:
    """The shape k solves Σxᵏlog x/Σxᵏ − mean(log x) = 1/k; the left side grows with k, the right one falls."""
    logs = np.log(gaps.lengths)
    # relative to the longest gap nothing overflows, whatever the shape
    top = np.maximum.reduceat(logs, gaps.starts)
    below = logs - gaps.each(top)
    mean = gaps.means(below)

    def excess(u: Floats) -> tuple[Floats, Floats]:
        shape = np.exp(u)
        power = np.exp(below * gaps.each(shape))
        whole = gaps.sums(power)
        first = gaps.sums(power * below) / whole
        spread = gaps.sums(power * (below - gaps.each(first)) ** 2) / whole
        return 1.0 - shape * (first - mean), -shape * (first - mean) - shape**2 * spread

    spread = np.sqrt(gaps.means((below - gaps.each(mean)) ** 2))
    # of Weibull gaps the logarithm has a standard deviation of π/√6/shape
    start = np.clip(1.28 / np.maximum(spread, 1e-9), _LEAST_SHAPE, LIMIT)
    shape = np.exp(
        falls_through(excess, np.full_like(top, np.log(_LEAST_SHAPE)), np.full_like(top, np.log(LIMIT)), np.log(start))
    )
    power = gaps.means(np.exp(below * gaps.each(shape)))
    scale = np.exp(top + np.log(power) / shape)
    likelihood = gaps.counts * (np.log(shape) + (shape - 1.0) * mean - top - np.log(power) - 1.0)
    return {"shape": shape, "scale": scale}, likelihood


def _gamma(gaps: Gaps) -> _Fitted:
    """The shape a solves log a − ψ(a) = log(mean) − mean(log x), by Newton on 1/a."""
    mean = gaps.means()
    apart = gaps.lengths / gaps.each(mean) - 1.0
    # summed as d − log(1 + d), which is never negative: the difference of the two means would cancel
    near = np.abs(apart) < 0.1
    log = np.where(near, np.log1p(np.where(near, apart, 0.0)), np.log(gaps.lengths / gaps.each(mean)))
    distance = np.maximum(gaps.means(apart - log), 0.5 / LIMIT**2)
    shape = (3.0 - distance + np.sqrt((distance - 3.0) ** 2 + 24.0 * distance)) / (12.0 * distance)
    for _ in range(8):
        gap = np.log(shape) - digamma(shape) - distance
        shape = 1.0 / (1.0 / shape + gap / (shape**2 * (1.0 / shape - polygamma(1, shape))))
        shape = np.clip(shape, 1e-3, LIMIT**2)
    scale = mean / shape
    # (a − 1)·Σ log x − Σ x/scale, again through the distance
    likelihood = gaps.counts * (
        (shape - 1.0) * -distance - np.log(mean) - shape + shape * np.log(shape) - gammaln(shape)
    )
    return {"shape": shape, "scale": scale}, likelihood


def _pareto(gaps: Gaps) -> _Fitted:
    """Survival (1 + x/scale)^(−alpha): given t = mean/scale, 1/alpha = mean(log(1 + t·x/mean)); then one search.

    The likelihood may have two peaks in t, one of them towards the exponential at t → 0: a grid finds the higher.
    """
    mean = gaps.means()
    unit = gaps.lengths / gaps.each(mean)
    least = np.minimum.reduceat(unit, gaps.starts)
    low, high = np.full_like(mean, -np.log(LIMIT)), np.log(100.0 / least)

    def parts(u: Floats) -> tuple[Floats, Floats, Floats]:
        scaled = unit * gaps.each(np.exp(u))
        share = scaled / (1.0 + scaled)
        return gaps.means(np.log1p(scaled)), gaps.means(share), gaps.means(share / (1.0 + scaled))

    def slope(u: Floats) -> tuple[Floats, Floats]:
        m, r, bend = parts(u)
        return 1.0 - r / m - r, (r / m) ** 2 - bend / m - bend

    def height(u: Floats) -> Floats:
        m = gaps.means(np.log1p(unit * gaps.each(np.exp(u))))
        return u - np.log(m) - 1.0 - m

    grid = np.linspace(0.0, 1.0, 25)
    heights = np.array([height(low + g * (high - low)) for g in grid])
    peak, step = np.argmax(heights, axis=0), (high - low) / (len(grid) - 1)
    at = low + step * peak
    u = falls_through(slope, np.maximum(at - step, low), np.minimum(at + step, high), at)
    alpha = 1.0 / gaps.means(np.log1p(unit * gaps.each(np.exp(u))))
    return {"alpha": alpha, "scale": mean * np.exp(-u)}, gaps.counts * (height(u) - np.log(mean))


def _lognormal(gaps: Gaps) -> _Fitted:
    logs = np.log(gaps.lengths)
    mean = gaps.means(logs)
    spread = gaps.means((logs - gaps.each(mean)) ** 2)
    sigma = np.clip(np.sqrt(spread), 1.0 / LIMIT, _LARGEST_SIGMA)
    likelihood = -gaps.counts * (mean + np.log(sigma) + np.log(2.0 * np.pi) / 2.0 + spread / sigma**2 / 2.0)
    return {"median": np.exp(mean), "sigma": sigma}, likelihood


_FITS: dict[str, Callable[[Gaps], _Fitted]] = {
    "exponential": _exponential,
    "weibull": _weibull,
    "gamma": _gamma,
    "pareto": _pareto,
    "lognormal": _lognormal,
}
_MAKERS: dict[str, Callable[..., Process]] = {
    "exponential": Poisson,
    "weibull": Weibull,
    "gamma": Gamma,
    "pareto": Pareto,
    "lognormal": LogNormal,
}
