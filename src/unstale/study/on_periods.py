"""How long a copy stays fresh: the ON periods of one copy [004 sect. V].

A copy turns fresh at the first poll after a change and stale at the first change after a poll. Ages of changes
and polls are taken as independent, as everywhere in `staleness`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers, plain
from unstale.core.lags import overlap, trails
from unstale.core.processes import Process


def residual_cdf(x: ArrayLike, changes: Process, polls: Process) -> Floats | float:
    """P(a copy that is fresh now turns stale within x).

    `1 − E[age_survival_changes(A + x)]/E[age_survival_changes(A)]`, A the age of polls. For Poisson changes
    it is the law of a gap; for changes worse when new (Pareto) the rest of an ON period is longer than the
    rest of a gap, for better ones shorter. [004 eqs. 16–18].

    >>> from unstale.core.processes import Pareto, Poisson
    >>> round(1 - residual_cdf(1.0, Pareto(3.0, 1.0), Poisson(2.0)), 9)
    0.314804317
    """
    x = numbers("x", x, least=0)
    return plain(1.0 - np.asarray(trails(polls, changes, x)) / trails(polls, changes))


def duration_cdf(x: ArrayLike, changes: Process, polls: Process) -> Floats | float:
    """P(an ON period, from turning fresh to turning stale, lasts at most x).

    `1 − E[age_density_changes(A + x)]/E[age_density_changes(A)]`, A the age of polls.
    [004, between eqs. 18 and 19].

    >>> from unstale.core.processes import Pareto, Poisson
    >>> round(duration_cdf(0.5, Pareto(3.0, 1.0), Poisson(2.0)), 9)
    0.641947245
    """
    x = numbers("x", x, least=0)
    return plain(1.0 - np.asarray(overlap(polls, changes, x)) / overlap(polls, changes))


def mean_duration(changes: Process, polls: Process) -> float:
    """Mean length of an ON period: freshness divided by how often the copy turns stale.

    `E[age_survival_changes(A)]/E[age_density_changes(A)]`, A the age of polls; 1/change_rate for Poisson
    changes, however often they are polled. [004 eq. 19].

    >>> from unstale.core.processes import Pareto, Poisson
    >>> round(mean_duration(Pareto(3.0, 1.0), Poisson(2.0)), 9)
    0.622802057
    """
    return float(trails(polls, changes)) / float(overlap(polls, changes))
