"""Is it Poisson? Tests of gaps against the exponential law, of drift, of memory from gap to gap, of clumping."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, stdtr

from unstale.core.checks import Floats, number
from unstale.core.trace import Trace
from unstale.study.fitting.gaps import Gaps

#: what the modified statistic exceeds with these probabilities when gaps are exponential: 400,000 simulated
#: histories of 200 gaps; Stephens' printed 0.926, 0.990, 1.094, 1.190, 1.308 (15 to 1 %) are within 0.014
_EXCEEDED = np.array([0.9, 0.75, 0.5, 0.25, 0.15, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001, 0.0001])
_STATISTIC = np.array([0.4959, 0.5788, 0.6944, 0.8368, 0.9253, 0.9895, 1.0901, 1.1823, 1.2946, 1.3727, 1.5393, 1.7428])
#: windows a Fano factor needs
_WINDOWS = 8


def exponential_test(gaps: Gaps) -> tuple[Floats, Floats]:
    """Do the gaps follow an exponential law of their own mean? The statistic and its p-value, for each source.

    D is the largest distance between the gaps' distribution and the exponential's; Stephens' modification
    `(D − 0.2/n)·(√n + 0.26 + 0.5/√n)` has nearly one law for every n ≥ 5. The mean is estimated from the same
    gaps, so the plain Kolmogorov-Smirnov test would forgive too much. A small p says: not Poisson; a large
    one only that n gaps do not show it. p is exact to a few per cent of itself above 0.001, by order below.
    Gaps must be complete: seen through polls they are never exponential [003 section VI-A].

    >>> statistic, p = exponential_test(Gaps.of(np.arange(1.0, 31.0)))
    >>> round(float(statistic[0]), 4), round(float(p[0]), 4)
    (0.9836, 0.1039)
    """
    n = gaps.counts.astype(float)
    below = -np.expm1(-gaps.ascending() / gaps.each(gaps.means()))
    place = np.arange(len(below)) - gaps.each(gaps.starts.astype(float))
    share = gaps.each(1.0 / n)
    away = np.maximum((place + 1.0) * share - below, below - place * share)
    distance = np.maximum.reduceat(away, gaps.starts)
    statistic = (distance - 0.2 / n) * (np.sqrt(n) + 0.26 + 0.5 / np.sqrt(n))
    return statistic, _exceeded(statistic)


def _exceeded(statistic: Floats) -> Floats:
    """The probability beyond: its logarithm is nearly straight in the square, also past the last point."""
    x, y = np.append(0.0, _STATISTIC**2), np.append(0.0, np.log(_EXCEEDED))
    square = statistic**2
    steep = (y[-1] - y[-2]) / (x[-1] - x[-2])
    return np.asarray(np.exp(np.where(square > x[-1], y[-1] + steep * (square - x[-1]), np.interp(square, x, y))))


def drift(gaps: Gaps) -> tuple[Floats, Floats]:
    """Is the change rate rising (positive) or falling? Standard scores, for each source: plain, and fair to bursts.

    Laplace's: between the first and the last change, at a distance L, the m others lie on average at
    `L/2 ± L/√(12m)` if changes are Poisson. Bursts alone move that average, by their variation times as much: the
    second score (Lewis and Robinson) is the first divided by `gaps.variation()`, and tests a constant rate
    against any independent gaps. Beyond ±1.96: p < 0.05. Memory over many gaps still looks like drift.

    >>> plain, fair = drift(Gaps.of([3.0, 3.0, 2.0, 2.0, 1.0, 1.0]))
    >>> round(float(plain[0]), 4), round(float(fair[0]), 4)
    (1.0328, 2.5298)
    """
    n = gaps.counts.astype(float)
    place = np.arange(len(gaps.lengths)) - gaps.each(gaps.starts.astype(float))
    length = gaps.sums(gaps.lengths)
    # a gap delays all changes after it, the last of which is not counted
    mean = gaps.sums(gaps.lengths * (gaps.each(n) - 1.0 - place)) / (n - 1.0) / length
    plain = (mean - 0.5) * np.sqrt(12.0 * (n - 1.0))
    variation = gaps.variation()
    return plain, np.divide(plain, variation, out=np.zeros_like(plain), where=variation > 0)


def significance(standard: Floats) -> Floats:
    """The two-sided p-value of a standard score.

    >>> round(float(significance(np.array([1.96]))[0]), 4)
    0.05
    """
    return np.asarray(2.0 * ndtr(-np.abs(standard)))


def memory(gaps: Gaps) -> tuple[Floats, Floats]:
    """Do short gaps follow short ones? Spearman's rank correlation of successive gaps, and p (two-sided).

    0 for independent gaps whatever their law, for ranks forget it; positive when busy and quiet times alternate.
    p by Student's t with n − 3 degrees of freedom, n gaps; NaN for fewer than 4 gaps or when all are equal.

    >>> correlation, p = memory(Gaps.of([1.0, 2.0, 2.5, 2.2, 9.0, 8.0, 7.0, 7.5]))
    >>> round(float(correlation[0]), 4), round(float(p[0]), 4)
    (0.5357, 0.2152)
    """
    keep = np.ones(len(gaps.lengths), dtype=bool)
    keep[gaps.starts + gaps.counts - 1] = False
    before = Gaps(gaps.lengths[keep], gaps.counts - 1)
    keep[:] = True
    keep[gaps.starts] = False
    after = Gaps(gaps.lengths[keep], gaps.counts - 1)
    middle = before.each((before.counts - 1) / 2.0)
    x, y = before.ranks() - middle, after.ranks() - middle
    free = before.counts - 2.0
    with np.errstate(all="ignore"):
        r = before.sums(x * y) / np.sqrt(before.sums(x * x) * before.sums(y * y))
        t = np.abs(r) * np.sqrt(free / np.maximum(1.0 - r * r, 0.0))
        p = 2.0 * stdtr(np.where(free > 0, free, np.nan), -t)
    return np.where(free > 0, r, np.nan), np.asarray(p)


def clumping(trace: Trace, window: float) -> Floats:
    """The Fano factor of each source: variance over mean of its number of changes in windows of one length.

    1 for Poisson changes at every length, near the square of the gaps' variation for independent gaps in long
    windows, growing with the window when activity itself comes in swells. Windows begin at the first
    change; the incomplete last one is left out. NaN for fewer than 8 windows.

    >>> times = [0, 1, 2, 10, 11, 12, 20, 30, 40, 50, 60, 70, 80]
    >>> round(float(clumping(Trace.of(["a"] * 13, times), 10.0)[0]), 4)
    0.5714
    """
    length = number("window", window, above=0)
    counts = trace.counts()
    owner = np.repeat(np.arange(len(trace)), counts)
    since = trace.times - np.repeat(trace.times[trace.starts[:-1]], counts)
    windows = np.floor(since[trace.starts[1:] - 1] / length)
    place = np.floor(since / length)
    inside = place < windows[owner]
    owner, place = owner[inside], place[inside]
    new = np.ones(len(owner), dtype=bool)
    new[1:] = (np.diff(owner) > 0) | (np.diff(place) > 0)
    first = np.flatnonzero(new)
    many = np.diff(np.append(first, len(owner))).astype(float)
    total = np.bincount(owner[first], many, len(trace))
    squares = np.bincount(owner[first], many**2, len(trace))
    with np.errstate(all="ignore"):
        mean = total / windows
        factor = (squares / windows - mean**2) * windows / (windows - 1.0) / mean
    return np.where(windows >= _WINDOWS, factor, np.nan)
