"""Everything this room can say of a trace, one number for each source."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.trace import Trace
from unstale.frozen import dataclass
from unstale.study.fitting.families import Fit, best, fit_families
from unstale.study.fitting.gaps import Gaps
from unstale.study.fitting.hurst import hurst_of
from unstale.study.fitting.overspend import overspend
from unstale.study.fitting.profile import DAY, daily_rhythm
from unstale.study.fitting.tests import clumping, drift, exponential_test, memory, significance

#: the freshness at which Poisson plans are compared with the truth, as [003 Fig. 10] does
FRESHNESS = 0.8
#: lengths of windows in which changes are counted, in days
WINDOWS = (1, 7, 30)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """Columns, one row for each source of `trace`. p-values end in `_p`; those fair to bursts in `_fair_p`."""

    trace: Trace
    gaps: Gaps
    fits: dict[str, Fit]
    #: the family of least AIC
    family: np.ndarray
    #: standard deviation over mean of the gaps, and their mean over their median
    variation: Floats
    skew: Floats
    exponential_p: Floats
    #: rank correlation of successive gaps
    memory: Floats
    memory_p: Floats
    #: change rate in the second half of the history over that in the first
    growth: Floats
    drift_p: Floats
    drift_fair_p: Floats
    #: Fano factors by length of window in days
    clumping: dict[int, Floats]
    hurst: Floats
    hurst_error: Floats
    #: length of the mean time of day on the clock's circle
    rhythm: Floats
    rhythm_p: Floats
    rhythm_fair_p: Floats
    #: polls that Poisson seems to need over polls needed
    overspend: Floats


def diagnose(trace: Trace) -> Diagnosis:
    """Fits, tests and rhythms of every source of a trace; each must have three changes or more.

    >>> rng = np.random.default_rng(1)
    >>> seen = diagnose(Trace.of(["a"] * 500, np.cumsum(rng.weibull(0.5, 500))))
    >>> seen.family.tolist(), bool(seen.exponential_p[0] < 1e-9), round(float(seen.overspend[0]), 2)
    (['weibull'], True, 1.64)
    """
    gaps = Gaps.between(trace)
    fits = fit_families(gaps)
    plain, fair = drift(gaps)
    correlation, correlation_p = memory(gaps)
    strength, rhythm_p, rhythm_fair_p = daily_rhythm(trace)
    exponents = np.array([hurst_of(trace.changes(i)) for i in range(len(trace))])
    return Diagnosis(
        trace=trace,
        gaps=gaps,
        fits=fits,
        family=best(fits),
        variation=gaps.variation(),
        skew=gaps.means() / gaps.medians(),
        exponential_p=exponential_test(gaps)[1],
        memory=correlation,
        memory_p=correlation_p,
        growth=_growth(trace),
        drift_p=significance(plain),
        drift_fair_p=significance(fair),
        clumping={days: clumping(trace, days * DAY) for days in WINDOWS},
        hurst=exponents[:, 0],
        hurst_error=exponents[:, 1],
        rhythm=strength,
        rhythm_p=rhythm_p,
        rhythm_fair_p=rhythm_fair_p,
        overspend=overspend(gaps, FRESHNESS),
    )


def together(trace: Trace) -> float:
    """The share of changes that happen at the very time at which another source changes.

    >>> together(Trace.of(["a", "b", "a"], [1.0, 1.0, 2.0]))
    0.6666666666666666
    """
    many = np.unique(trace.times, return_counts=True)[1]
    return float(many[many > 1].sum() / len(trace.times))


def _growth(trace: Trace) -> Floats:
    first, last = trace.times[trace.starts[:-1]], trace.times[trace.starts[1:] - 1]
    late = trace.times > np.repeat((first + last) / 2, trace.counts())
    # the first change is early and the last one late, so that neither half is ever empty
    after = np.add.reduceat(late.astype(float), trace.starts[:-1])
    return np.asarray(after / (trace.counts() - after))
