"""The most likely change rate, from polls at any times; and the same without its bias.

With x = change_rate·w, a poll after w finds nothing with probability e^(−x): the likelihood of all polls is largest
where Σ_changed w/(e^x − 1) = Σ_unchanged w. The left side, m, falls with the rate and is log-convex, so Newton's
steps on log m climb to the root from below and never pass it. The root is too high, by ½·Σ w³/(e^x−1)/(Σ w²/(e^x−1))²
to first order; asking m for half a weighted mean interval more than the unchanged ones takes that away.
"""

from __future__ import annotations

import numpy as np
from scipy.special import exprel

from unstale.core.checks import Floats
from unstale.errors import ConvergenceError, sentence
from unstale.study.estimators.base import Estimator, Observations, checked
from unstale.study.estimators.counts import even_mean

#: steps at most, and the relative size of the last one: the error left is far smaller still
_STEPS, _CLOSE = 500, 1e-12


class MaximumLikelihood(Estimator):
    """The change rate under which what was seen is most likely.

    The root of `Σ_changed w/(e^(change_rate·w) − 1) = Σ_unchanged w` over the intervals w: 0 if no poll found a
    change, inf if all did, which is all that such polls can say. On even polls
    `−log(1 − changes/n)/interval`. Consistent at any poll times that do not depend on the outcomes to come; too
    high by about `½·Σ w³/(e^x−1)/(Σ w²/(e^x−1))²`, x = change_rate·w, which is (e^x − 1)/(2n·interval) on even polls.
    `mean` is for even polls. Each step costs one pass over the polls; about 6 steps.

    >>> float(MaximumLikelihood().estimate(Observations.of([1.0, 2.0, 0.5], [1, 0, 1]))[0].round(6))
    0.748318
    """

    name = "likelihood"
    citation = "J. Cho, H. Garcia-Molina, Estimating frequency of change, ACM TOIT 3, 2003, section 4.3"

    def estimate(self, seen: Observations) -> Floats:
        return _climb(seen, reduced=False)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        return even_mean(change_rate, interval, polls, half=0.0)

    def chance_of_inf(self, change_rate: float, interval: float, polls: int) -> float:
        """(1 − e^(−change_rate·interval))^polls: every poll found a change."""
        rate, between, n = checked(change_rate, interval, polls)
        return float((-np.expm1(-rate * between)) ** n)


class ReducedLikelihood(Estimator):
    """The most likely change rate, moved so that its bias of order 1/n is gone; always finite.

    The smallest root of `Σ_changed w/(e^x − 1) = Σ_unchanged w + ½·Σ w³/(e^x − 1)/Σ w²/(e^x − 1)`, x = change_rate·w,
    the last two sums over all polls: Firth's correction of the likelihood. On even polls the added term is half an
    interval and the root is that of Cho and Garcia-Molina, `BiasReduced`; this is what their estimator becomes on
    irregular polls. 0 if no poll found a change. Of a few polls at very unequal intervals there may be three
    roots: the smallest is the careful one. `mean` is for even polls.

    >>> float(ReducedLikelihood().estimate(Observations.of([1.0, 2.0, 0.5], [1, 0, 1]))[0].round(6))
    0.592331
    """

    name = "reduced likelihood"
    citation = "D. Firth, Bias reduction of maximum likelihood estimates, Biometrika 80, 1993"

    def estimate(self, seen: Observations) -> Floats:
        return _climb(seen, reduced=True)

    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        return even_mean(change_rate, interval, polls, half=0.5)


def _climb(seen: Observations, *, reduced: bool) -> Floats:
    """The roots of all sources, each from below: from the rate that is right while intervals are short."""
    counts, whole = seen.counts(), seen.total(seen.intervals)
    w = seen.intervals / np.repeat(whole, counts)
    changes, unchanged = seen.changes(), seen.total(np.where(seen.changed, 0.0, w))
    rates = np.where(changes > 0, np.inf, 0.0)
    todo = np.flatnonzero((changes > 0) & (reduced | (unchanged > 0)))
    extra = seen.total(w * w) if reduced else 0.0
    # m is at least changes/rate − ½·Σ_changed w: where that is the target, the root is still ahead.
    rates[todo] = (changes / (unchanged + (1.0 - unchanged + extra) / 2))[todo]
    for _ in range(_STEPS):
        if not len(todo):
            return rates / whole
        own = np.zeros(len(counts), dtype=bool)
        own[todo] = True
        rows = np.repeat(own, counts)
        length, at = w[rows], np.repeat(rates[todo], counts[todo])
        edges = np.concatenate([[0], np.cumsum(counts[todo])[:-1]])
        with np.errstate(over="ignore"):
            # w/(e^x − 1), and its derivative, as functions of x/(e^x − 1): nothing to divide by but the rate
            term = 1.0 / exprel(length * at) / at
        hit = np.where(seen.changed[rows], term, 0.0)
        m, slope = np.add.reduceat(hit, edges), np.add.reduceat(hit * (length + term), edges)
        target = unchanged[todo]
        if reduced:
            top, bottom = (np.add.reduceat(length**power * term, edges) for power in (2, 1))
            target = target + 0.5 * top / bottom
        step = np.log(m / target) * m / slope
        rates[todo] += np.maximum(step, 0.0)
        todo = todo[step > _CLOSE * rates[todo]]
    open_, rule = f"of {len(todo)} sources", f"are still open after {_STEPS} steps"
    message = sentence("the most likely rates", open_, rule, "leave out their extreme intervals")
    raise ConvergenceError(message, rates / whole)
