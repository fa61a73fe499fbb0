"""What polling does to a history: the gaps between polls that found a change are not the gaps between changes.

Changes between two polls merge into one, and what is left is a multiple of the interval. So a histogram of gaps that
were measured by polling, or a Kolmogorov-Smirnov test on them, says less about the source than it seems
[003 section VI-A].
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.processes.base import Process
from unstale.frozen import dataclass

_NODES, _WEIGHTS = leggauss(6)
#: numbers of intervals looked at one by one, and how many more beyond them
_FIRST, _MORE = 2000, 4000


@dataclass(frozen=True, slots=True)
class SeenGaps:
    """The gaps between polls that found a change, for even polls of a stationary process.

    With a(k) = changes.age_survival(k·interval), the probability of k polls in a row without a change,
    `P(gap > k·interval) = (a(k) − a(k+1))/(1 − a(1))`: found, then k times nothing, given found. Only a(k) enters,
    so gaps need not be independent. It is an average over where the polls fall: constant gaps in a simple
    ratio to the interval keep the phase they have. Poisson changes give e^(−rate·k·interval), a geometric
    law: exponential gaps rounded up, which are not exponential. [003 section VI-A] names the effect; the
    formula is ours.

    >>> from unstale.core.processes import Poisson
    >>> seen = SeenGaps(Poisson(1.0), 1.0)
    >>> round(seen.mean, 6), round(seen.missed, 6), round(seen.survival(2.5), 6)
    (1.581977, 0.367879, 0.135335)
    """

    changes: Process
    interval: float

    def __post_init__(self) -> None:
        number("interval", self.interval, above=0, remedy="give the time between two polls")

    @property
    def mean(self) -> float:
        """interval/P(a poll finds a change): at least as long as the mean gap."""
        return self.interval / float(self.changes.age_cdf(self.interval))

    @property
    def missed(self) -> float:
        """Share of changes that no poll tells from a later one: 1 − (mean gap)/(mean seen gap)."""
        return max(1.0 - self.changes.mean / self.mean, 0.0)

    def survival(self, x: ArrayLike) -> Floats | float:
        """P(seen gap > x): a step at every multiple of the interval."""
        checked = numbers("x", x, least=0, infinite=True, remedy="give a time since a poll that found a change")
        # A multiple of the interval may come out a rounding below it.
        return plain(self._beyond(np.floor(checked / self.interval * (1 + 4e-16))))

    def exponential_distance(self) -> float:
        """What a Kolmogorov-Smirnov statistic against the exponential of the same mean tends to.

        The largest difference of the two distribution functions. For Poisson changes it is not 0 but
        `1 − e^(−(1 − e^(−rate·interval)))`, reached just before the first step: given enough polled gaps the test
        refuses every Poisson source, from about (1.1/distance)² on (5 % level, mean fitted). Found to about 1e-5.

        >>> from unstale.core.processes import Poisson
        >>> round(SeenGaps(Poisson(1.0), 0.1).exponential_distance(), 6)
        0.090775
        """
        k = self._counts()
        exponential = np.exp(-k * self.interval / self.mean)
        before = self._beyond(np.maximum(k - 1.0, 0.0))
        return float(max(np.max(np.abs(self._beyond(k) - exponential)), np.max(np.abs(before - exponential))))

    def geometric_distance(self) -> float:
        """The same against the geometric law of the same mean: what polled gaps of a Poisson source really have.

        0 for Poisson changes at every interval: the fair comparison for gaps that were measured by polling.

        >>> from unstale.core.processes import Pareto, Poisson
        >>> [round(SeenGaps(c, 1.0).geometric_distance(), 6) for c in (Poisson(1.0), Pareto.from_rate(1.5, 1.0))]
        [0.0, 0.269444]
        """
        k = self._counts()
        found, nothing = float(self.changes.age_cdf(self.interval)), float(self.changes.age_survival(self.interval))
        with np.errstate(divide="ignore"):
            # the logarithm of whichever of the two is accurate relative to itself
            log_nothing = np.log1p(-found) if found < 0.5 else np.log(nothing)
        return float(np.max(np.abs(self._beyond(k) - np.exp(k * log_nothing))))

    def _beyond(self, k: Floats) -> Floats:
        """P(seen gap > k intervals), k whole or inf: ∫ survival over the interval after k, over the same for k = 0."""
        low = k * self.interval
        high = low + self.interval
        with np.errstate(all="ignore"):
            kept = np.asarray(self.changes.age_survival(low))
            apart = kept - np.asarray(self.changes.age_survival(high))
            # Where little goes on within an interval the difference cancels, and survival is as good as straight.
            nodes = low[..., None] + self.interval * (1.0 + _NODES) / 2
            inside = self.changes.rate * self.interval * (np.asarray(self.changes.survival(nodes)) @ _WEIGHTS) / 2
        bent = np.zeros(k.shape, dtype=bool)
        for kink in self.changes.kinks:
            bent |= (low < kink) & (kink < high)
        smooth = (apart < 1e-3 * kept) & ~bent & (k > 0)
        out = np.where(smooth, inside, apart) / float(self.changes.age_cdf(self.interval))
        return np.where(k == 0, 1.0, np.where(np.isinf(k), 0.0, np.clip(out, 0.0, 1.0)))

    def _counts(self) -> Floats:
        """Whole numbers of intervals among which the largest difference is: all small ones, then ever fewer."""
        last = max(60.0 * self.mean / self.interval, float(_FIRST))
        kinks = np.floor(np.asarray(self.changes.kinks) / self.interval)
        far = np.geomspace(_FIRST, last, _MORE).round()
        return np.unique(np.concatenate([np.arange(1.0, _FIRST), far, kinks[kinks >= 1], kinks[kinks >= 0] + 1.0]))


def seen_gaps(times: ArrayLike, interval: float, phase: float = 0.0) -> Floats:
    """What even polls would have measured of a complete history: the gaps between polls that found a change.

    `times` are all changes of one source, polls are at phase + k·interval; each change is found by the poll at or
    after it. Every gap is a multiple of the interval; their number is one less than the polls that found something.

    >>> seen_gaps([0.2, 0.4, 3.7, 5.1], 1.0).tolist()
    [3.0, 2.0]
    """
    when = np.sort(numbers("times", times))
    between = number("interval", interval, above=0, remedy="give the time between two polls")
    found = np.unique(np.ceil((when - number("phase", phase)) / between))
    return np.diff(found) * between
