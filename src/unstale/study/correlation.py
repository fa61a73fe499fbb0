"""How the numbers of changes in successive windows hang together [003 Figure 9(b)]."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.errors import require


def autocorrelation(times: Floats, window: float, lags: int) -> Floats:
    """The correlation ρ(h) of the numbers of changes in windows that are h windows apart, h = 1 … lags.

    Σ (n_i − m)·(n_{i+h} − m) / Σ (n_i − m)², m the mean count. 0 for Poisson changes, up to 1/√windows; counts and not
    gaps, because heavy tails leave gaps no variance to divide by. At most a fourth of the windows as lags.
    [003 Figure 9(b)] reads a power law off it; drift and daily rhythm add to it.

    >>> even = np.repeat(10.0 * np.arange(50), 2) + np.tile([0.0, 1.0], 50)   # two changes, then none
    >>> [round(float(x), 2) for x in autocorrelation(even, 5.0, 2)]
    [-0.99, 0.98]
    """
    width = number("window", window, above=0)
    require(len(times) > 1, "times", f"of {len(times)} changes", "must be two at least", "give a longer history")
    counts = np.bincount(((times - times[0]) / width).astype(np.int64)).astype(float)
    away = counts - counts.mean()
    length = len(away)
    size = 1 << (2 * length - 1).bit_length()
    power = np.abs(np.fft.rfft(away, size)) ** 2
    sums = np.fft.irfft(power, size)[: max(min(lags, length // 4), 1) + 1]
    return np.asarray(sums[1:] / max(float(sums[0]), 1e-300))


def power_law(correlation: Floats) -> tuple[float, float]:
    """The power and level of the law level·h^−power through a correlation, by least squares of logarithms.

    Only positive values have one; (0, 0) if there are fewer than two. 003 reads 0.37 off its article.

    >>> power, level = power_law(0.5 * np.arange(1.0, 100.0) ** -0.37)
    >>> round(power, 6), round(level, 6)
    (0.37, 0.5)
    """
    lag = np.arange(1, len(correlation) + 1)
    seen = correlation > 0
    if seen.sum() < 2:
        return 0.0, 0.0
    # Lags are as many in each decade as far as they count: otherwise the noise of the last ones decides.
    slope, level = np.polyfit(np.log(lag[seen]), np.log(correlation[seen]), 1, w=1.0 / np.sqrt(lag[seen]))
    return -float(slope), float(np.exp(level))
