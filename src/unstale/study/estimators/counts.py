"""Estimators that only count: how many of the polls found a change."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.exponential import exp_mean
from unstale.study.estimators.base import Estimator, Observations, checked
from unstale.study.estimators.binomial import expect


class Naive(Estimator):
    """Polls that found a change, per unit of time: what most software counts.

    `changes/Σ intervals`. Several changes between two polls count once, so it never exceeds 1/interval:
    `mean = (1 − e^(−change_rate·interval))/interval`, too low by half of change_rate²·interval while that is small,
    and however many polls there are: it is not consistent. Right only where polls are much more frequent
    than changes. Any intervals; the bias is that of even ones.

    >>> float(Naive().estimate(Observations.of(1.0, [1, 0, 1, 1]))[0]), round(Naive().bias(1.0, 1.0, 4), 6)
    (0.75, -0.367879)
    """

    name = "naive"
    citation = "J. Cho, H. Garcia-Molina, Estimating frequency of change, ACM TOIT 3, 2003, section 4.1"

    def estimate(self, seen: Observations) -> Floats:
        return seen.changes() / seen.total(seen.intervals)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        rate, between, _ = checked(change_rate, interval, polls)
        return rate * float(exp_mean(1, rate * between))


class BiasReduced(Estimator):
    """Counts of even polls turned back into a rate, with a half that takes the bias of order 1/n away.

    `−log((n − changes + ½)/(n + ½))/interval` for n polls, interval = their mean. Without the halves it is the most
    likely rate, which is inf when every poll found a change; with them it is finite, at most log(2n + 1)/interval:
    a source with `change_rate·interval` above log n is put too low. `mean` adds up the binomial law.
    Assumes even polls: on irregular ones take ReducedLikelihood, of which this is the even case.

    >>> float(BiasReduced().estimate(Observations.of(1.0, [1, 0, 1, 1]))[0].round(6))
    1.098612
    >>> round(BiasReduced().bias(1.0, 1.0, 20), 6)
    0.000814
    """

    name = "bias-reduced"
    timing = "even"
    citation = "J. Cho, H. Garcia-Molina, Estimating frequency of change, ACM TOIT 3, 2003, section 4.2"

    def estimate(self, seen: Observations) -> Floats:
        n, changes = seen.counts(), seen.changes()
        return np.log1p(changes / (n - changes + 0.5)) * n / seen.total(seen.intervals)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        return even_mean(change_rate, interval, polls, half=0.5)


def even_mean(change_rate: float, interval: float, polls: int, *, half: float) -> float:
    """E[log((n + half)/(n − X + half))]/interval over X ~ Binomial(n, 1 − e^(−change_rate·interval)).

    With half = 0 the polls that all found a change are left out: their estimate is infinite.
    """
    rate, between, n = checked(change_rate, interval, polls)
    if rate == 0:
        return 0.0
    x = rate * between
    with np.errstate(divide="ignore"):
        log_changed = float(np.log(-np.expm1(-x)))
    most = n if half else n - 1
    return expect(lambda k: np.log1p(k / (n - k + half)), n, log_changed, -x, most) / between
