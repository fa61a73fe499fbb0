"""Estimators that also see when the latest change was: a Last-Modified date, a feed's newest entry.

Looking back from a poll, the wait to the latest change is exponential, cut off at the poll before: so polls observe the
source for min(wait, interval) each, and what is older than the latest change is not seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats
from unstale.core.quadrature import integrate
from unstale.errors import InputError, sentence
from unstale.study.estimators.base import Estimator, Observations, checked
from unstale.study.estimators.binomial import expect

_CITATION = "J. Cho, H. Garcia-Molina, Estimating frequency of change, ACM TOIT 3, 2003, section 5"


class LastModified(Estimator):
    """Changes seen per unit of time looked at: the most likely rate, given when the latest changes were.

    `changes/T`, `T = Σ_changed since + Σ_unchanged interval`. Consistent at any poll times, and never saturates: of
    a source that changes much faster than it is polled, `since` still tells the rate. Too high by about
    change_rate/n when all polls find a change, as n/T is for n exponential times; `mean` is inf for one poll.
    Even polls: `mean = n·∫₀^∞ h·(g + h)^(n−1) ds`, `g = e^(−y)`, `h = x·(1 − g)/y`, `y = x + s`, x =
    change_rate·interval, in units of 1/interval: the Laplace transform of T, integrated.

    >>> float(LastModified().estimate(Observations.of(1.0, [1, 0, 1], since=[0.5, 9, 0.25]))[0].round(6))
    1.142857
    >>> round(LastModified().bias(1.0, 1.0, 5), 6)
    0.171665
    """

    name = "last-modified"
    sees = "last-modified"
    citation = _CITATION

    def estimate(self, seen: Observations) -> Floats:
        return _per_time(seen.changes(), seen)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        rate, between, n = checked(change_rate, interval, polls)
        return np.inf if n == 1 and rate > 0 else _mean(rate * between, n, lambda k: k) / between


class ReducedLastModified(Estimator):
    """The same, with fewer changes counted so that the bias is almost gone.

    `(changes − 1 + changes/(n·−log(1 − changes/n)))/T` for n polls, T as for LastModified: n − 1 changes if all
    polls found one, when it is unbiased; about changes·(1 − 1/2n) if few did. 0 for a single poll, whatever
    it found. Even polls: `mean` integrates the Laplace transform of T over the binomial law of the changes.

    >>> float(ReducedLastModified().estimate(Observations.of(1.0, [1, 0, 1], since=[0.5, 9, 0.25]))[0].round(6))
    0.918186
    >>> round(ReducedLastModified().bias(1.0, 1.0, 5), 6)
    0.009819
    """

    name = "reduced last-modified"
    sees = "last-modified"
    citation = _CITATION

    def estimate(self, seen: Observations) -> Floats:
        return _per_time(_counted(seen.changes(), seen.counts()), seen)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        rate, between, n = checked(change_rate, interval, polls)
        return 0.0 if n == 1 else _mean(rate * between, n, lambda k: _counted(k, np.float64(n))) / between


def _counted(changes: Floats, n: np.ndarray | np.float64) -> Floats:
    """changes − 1 + share/−log(1 − share), with its limits 0 for none and n − 1 for all."""
    share = changes / n
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(share > 0, share / -np.log1p(-share), 1.0)
    return np.where(changes > 0, changes - 1.0 + rest, 0.0)


def _per_time(counted: Floats, seen: Observations) -> Floats:
    if seen.since is None:
        remedy = "give the time from the latest change to each poll that found one, or use an estimator of bits"
        raise InputError(sentence("since", None, "must be told", remedy))
    looked = seen.total(np.where(seen.changed, seen.since, seen.intervals))
    with np.errstate(divide="ignore"):
        # Every poll may find a change dated to the very moment: no time was looked at, the rate has no bound.
        return np.where(counted > 0, counted / np.where(counted > 0, looked, 1.0), 0.0)


def _mean(x: float, n: int, counted: Callable[[Floats], Floats]) -> float:
    """E[counted(changes)/T] for even polls one unit apart: E[1/T; …] = ∫₀^∞ E[e^(−s·T); …] ds."""
    if x == 0:
        return 0.0
    if x > 700.0:
        # Every poll finds a change, and T is a sum of n exponential times.
        return float(counted(np.array([float(n)]))[0]) * x / (n - 1.0)

    def transform(s: float) -> float:
        y = x + s
        log_g, log_h = -y, np.log(x / y) + np.log(-np.expm1(-y))
        log_both = np.logaddexp(log_g, log_h)
        return float(np.exp(n * log_both) * expect(counted, n, log_h - log_both, log_g - log_both))

    return float(integrate(np.vectorize(transform, otypes=[float]), [0.0, np.inf], scale=(1.0 + x) / n)[0])
