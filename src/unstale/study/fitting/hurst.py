"""Long memory: do quiet and busy times come in all lengths?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from unstale.core.checks import Floats, numbers
from unstale.errors import require

#: differences that a scale needs to count, scales that a slope needs, changes that an exponent needs
_DIFFERENCES, _SCALES, FEWEST = 4, 3, 1024


def hurst(counts: ArrayLike) -> tuple[float, float]:
    """The Hurst exponent of evenly spaced counts, and its standard error.

    Neighbouring counts are differenced and then joined, scale after scale (Haar's wavelet); the mean square of
    the differences grows like `scale^(2·hurst)`, and the slope of its logarithm, each scale weighted by its
    number of differences, is twice the exponent. 1/2: Poisson, or anything that forgets; towards 1: swells of every
    length, so that the recent past keeps its say; below 1/2: evened out. Chosen because it is unbiased
    at every scale for fractional Gaussian noise and for Poisson counts, and blind to a constant mean; a
    trend or a cycle still biases it, and the error holds for nearly Gaussian counts, clumpy ones have more.
    (NaN, NaN) with fewer than three scales to compare. Source: Abry and Veitch's wavelet estimator.

    >>> hurst(np.random.default_rng(1).poisson(3.0, 4096))
    (0.50..., 0.01...)
    """
    x = np.atleast_1d(numbers("counts", counts))
    require(x.ndim == 1, "counts", f"of shape {x.shape}", "must be a list", "give counts in windows of one length")
    logs, weights, scales = [], [], []
    scale = 0
    while (pairs := len(x) // 2) >= _DIFFERENCES:
        first, second = x[0 : 2 * pairs : 2], x[1 : 2 * pairs : 2]
        energy = float(np.mean((first - second) ** 2))
        if energy > 0:
            # the logarithm of a mean of squares is biased by as much as that of a gamma variable
            bias = float(digamma(pairs / 2.0)) - math.log(pairs / 2.0)
            logs.append((math.log(energy) - bias) / math.log(2.0))
            weights.append(pairs)
            scales.append(scale)
        x, scale = first + second, scale + 1
    if len(logs) < _SCALES:
        return math.nan, math.nan
    w = np.array(weights, dtype=float)
    away = np.array(scales) - np.average(scales, weights=w)
    lever = float(w @ away**2)
    slope = float((w * away) @ np.array(logs)) / lever
    return slope / 2.0, math.sqrt(2.0 / lever) / math.log(2.0) / 2.0


def hurst_of(times: Floats) -> tuple[float, float]:
    """The Hurst exponent of a history, from its counts in about 4·√n windows, n changes.

    The windows widen with n, so that what neighbouring gaps have to do with each other averages out: independent
    gaps, which have 1/2 in the long run, come out within one error of it if they vary moderately (Weibull
    shape 0.6), and up to 0.1 above if they vary a lot (lognormal, sigma 1.5). NaN below 1024 changes, where
    the error would exceed 0.09. Drift adds to it. [003 Fig. 9] reads 0.81 off the autocorrelation of the changes of
    one much-edited Wikipedia article, and names that doubt too.

    >>> rng = np.random.default_rng(1)
    >>> hurst_of(np.cumsum(rng.exponential(1.0, 20_000)))
    (0.51..., 0.03...)
    """
    if len(times) < FEWEST:
        return math.nan, math.nan
    bins = 2 ** round(math.log2(4.0 * math.sqrt(len(times))))
    place = np.minimum((times - times[0]) / (times[-1] - times[0]) * bins, bins - 1).astype(np.int64)
    return hurst(np.bincount(place, minlength=bins))
