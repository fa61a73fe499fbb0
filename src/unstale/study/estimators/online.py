"""Estimators that keep one or two numbers and look at each poll once, for polls at the times of a Poisson process.

At such times, `sync_rate` of them per unit of time, a poll finds a change with probability
change_rate/(change_rate + sync_rate), whatever the polls before it found: counting is enough, and no interval is
needed. On even polls that probability is another one, and all three end up too high by a factor of (e^x − 1)/x, x =
change_rate·interval. `sync_rate` must be the planned one: the measured one depends on the same intervals.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.study.estimators.base import Estimator, Observations, checked

_PAPER = "K. Avrachenkov, K. Patil, G. Thoppe, Online algorithms for estimating change rates of web pages, 2021"


class LawOfLargeNumbers(Estimator):
    """Polls that found a change against those that did not, at random times.

    `sync_rate·changes/(n + 1 − changes)` for n polls; the paper has any sequence that grows slower than n in the
    place of the 1. Consistent for Poisson polls. With the 1,
    `mean = change_rate·(1 − (change_rate/(change_rate + sync_rate))ⁿ)` exactly: too low, but by next to nothing once
    n is a few times 1 + change_rate/sync_rate. At most sync_rate·n, so always finite.

    >>> float(LawOfLargeNumbers().estimate(Observations.of(1.0, [1, 0, 1, 1]))[0])
    1.5
    >>> round(LawOfLargeNumbers().bias(1.0, 1.0, 5), 12)
    -0.03125
    """

    name = "large numbers"
    timing = "poisson"
    citation = f"{_PAPER}, the LLN estimator"

    def estimate(self, seen: Observations) -> Floats:
        changes = seen.changes()
        return seen.sync_rate * changes / (seen.counts() + 1.0 - changes)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        rate, between, n = checked(change_rate, interval, polls)
        with np.errstate(divide="ignore"):
            return rate * float(-np.expm1(-n * np.log1p(1.0 / np.float64(rate * between))))


class StochasticApproximation(Estimator):
    """Each poll moves the estimate a step towards what would have explained it, at random times.

    `y += step·(changed·(y + sync_rate) − y)`, step = (k + 1)^(−power) at the k-th poll, k = 0, 1, …; `start` before it.
    The expected move vanishes at the true rate only. Powers above ½, up to 1, make it converge: the smaller, the
    sooner the start is forgotten and the noisier the end. Never negative. A step is linear in y, so
    `mean − change_rate = (start − change_rate)·∏(1 − step·sync_rate/(change_rate + sync_rate))` exactly: too low for
    long where changes are more frequent than polls and it starts from 0.

    >>> float(StochasticApproximation().estimate(Observations.of(1.0, [1, 0, 1, 1]))[0].round(6))
    1.197641
    >>> round(StochasticApproximation().bias(1.0, 1.0, 20), 6)
    -0.05519
    """

    name = "stochastic approximation"
    timing = "poisson"
    citation = f"{_PAPER}, the SA estimator"

    def __init__(self, start: float = 0.0, power: float = 0.75) -> None:
        self.start = number("start", start, least=0, remedy="give a first guess of the change rate")
        self.power = number("power", power, above=0.5, most=1, remedy="steps of (k + 1)^-power converge only then")

    def estimate(self, seen: Observations) -> Floats:
        return self._walk(seen.changed.astype(np.float64), seen.counts(), seen.starts, seen.sync_rate)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        rate, between, n = checked(change_rate, interval, polls)
        # The recursion is linear in y, so its mean obeys the same one, with the probability in place of the bit.
        share = rate * between / (1.0 + rate * between)
        return float(self._walk(np.full(n, share), np.array([n]), np.array([0, n]), np.array([1.0 / between]))[0])

    def _walk(self, bits: Floats, counts: np.ndarray, starts: np.ndarray, sync_rate: Floats) -> Floats:
        """All sources side by side, poll by poll: those with the most polls come first and stay longest."""
        order = np.argsort(-counts, kind="stable")
        begin, rate, longest = starts[:-1][order], sync_rate[order], int(counts.max())
        y, before = np.full(len(order), self.start), np.full(len(order), self.start)
        left = np.searchsorted(-counts[order], -np.arange(longest), side="left")
        for k in range(longest):
            m = left[k]
            hit, now = bits[begin[:m] + k], y[:m].copy()
            step = (k + 1.0) ** -self.power
            y[:m] = (1.0 - step) * now + step * hit * (now + rate[:m]) + self._inertia(k) * (now - before[:m])
            before[:m] = now
        out = np.empty(len(order))
        out[order] = y
        return out

    def _inertia(self, k: int) -> float:
        return 0.0


class Momentum(StochasticApproximation):
    """Stochastic approximation with inertia: a share of the last move is made again.

    `y += step·(changed·(y + sync_rate) − y) + inertia·(y − y before)`, step = (k + 1)^(−power), inertia =
    `(b(k) − step)/b(k − 1)` with b(k) = (k + 1)^(−½), which grows to 1: a heavy ball. The form is the paper's, the
    powers are ours. It forgets the start sooner than StochasticApproximation and is noisier; it may swing below 0,
    and says so: clip it before planning with it. The mean obeys the same linear recursion, so `mean` is exact.

    >>> float(Momentum().estimate(Observations.of(1.0, [1, 0, 1, 1]))[0].round(6))
    1.302904
    """

    name = "momentum"
    citation = f"{_PAPER}, the SAM estimator"

    def _inertia(self, k: int) -> float:
        return ((k + 1.0) ** -0.5 - (k + 1.0) ** -self.power) / k**-0.5 if k else 0.0
