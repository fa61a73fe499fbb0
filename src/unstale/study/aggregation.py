"""One replica of many sources: how many of its copies are fresh at once, and what a distribution of rates needs.

Sources change, and are polled, independently of each other, so the number of fresh copies is a sum of independent
yes-or-no draws: the Poisson-binomial law. [003 section VI-C].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv

from unstale.core.checks import Floats, number, numbers
from unstale.core.fleet import Fleet
from unstale.core.inverse import Shape, sync_rate_for
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Penalty
from unstale.core.processes import Process
from unstale.core.replication.redundancy import whole
from unstale.core.values import value_of
from unstale.errors import require


def any_fresh(freshness: ArrayLike) -> float:
    """Chance that at least one of the copies is fresh, given the freshness of each.

    `1 − Π (1 − freshness)`, accurate relative to itself also where every freshness is tiny. Copies
    independent: not those of one source at several replicas, see `redundancy`. [003 sect. VI-C].

    >>> round(any_fresh([0.5, 0.5, 0.2]), 12)
    0.8
    """
    with np.errstate(divide="ignore"):
        return float(-np.expm1(np.sum(np.log1p(-_chances(freshness)))))


def all_fresh(freshness: ArrayLike) -> float:
    """Chance that all copies are fresh at once: a consistent view of everything.

    `Π freshness`. It falls geometrically with the number of sources: 1000 copies, each fresh 99.9 % of the time,
    are all fresh 37 % of it. Copies independent. [003 sect. VI-C].

    >>> round(all_fresh([0.999] * 1000), 6)
    0.367695
    """
    return float(np.prod(_chances(freshness)))


def fresh_count(freshness: ArrayLike) -> Floats:
    """The law of the number of fresh copies: entry j is the chance that exactly j are fresh.

    The coefficients of `Π (1 − freshness + freshness·z)`, multiplied in pairs: sums of positive terms only, so
    each entry keeps its digits down to the smallest double, tails included (relative error about
    1e-16 per source at most). n sources take n²/2 multiplications: 10,000 take well under a second.

    >>> fresh_count([0.5, 0.5, 0.2]).round(12).tolist()
    [0.2, 0.45, 0.3, 0.05]
    """
    laws = [np.array([1.0 - p, p]) for p in _chances(freshness).tolist()]
    while len(laws) > 1:
        odd = laws[len(laws) // 2 * 2 :]
        laws = [np.convolve(a, b) for a, b in zip(laws[::2], laws[1::2], strict=False)] + odd
    return laws[0]


def at_least_fresh(freshness: ArrayLike, count: int) -> float:
    """Chance that `count` or more of the copies are fresh: a quorum.

    A tail of `fresh_count`; 1 at count 0, `any_fresh` at 1, `all_fresh` at the number of sources. Copies
    independent. [003 sect. VI-C has the two ends].

    >>> round(at_least_fresh([0.5, 0.5, 0.2], 2), 12)
    0.35
    """
    law = fresh_count(freshness)
    wanted = number("count", count, least=0, most=len(law) - 1, remedy=f"there are {len(law) - 1} sources")
    require(wanted == int(wanted), "count", count, "must be a whole number", "round it")
    if wanted == 0:
        # Certain, whatever the rounding of the terms adds up to.
        return 1.0
    # Far in the law the terms fall steeply: begin with the smallest.
    return min(1.0, math.fsum(law[int(wanted) :]))


def sync_rate_for_count(
    changes: Process | float, probability: float, sources: int, count: int, polls: Shape = "fixed"
) -> float:
    """The sync rate of each of equal sources at which `count` of them or more are fresh with this probability.

    The freshness p each copy needs solves `I_p(count, sources − count + 1) = probability` (incomplete
    beta function: the tail of a binomial law); its sync rate is `sync_rate_for`. All of 1000 sources fresh half of
    the time need 721 polls per change, half of them 0.63.

    >>> [round(sync_rate_for_count(1.0, 0.5, 1000, count), 3) for count in (1, 500, 1000)]
    [0.001, 0.626, 721.264]
    """
    n, j = whole("sources", sources), whole("count", count)
    require(j <= n, "count", count, f"must be at most the number of sources, {n}", "ask for fewer")
    level = number("probability", probability, least=0, most=1)
    fresh, stale = float(betaincinv(j, n - j + 1, level)), float(betainccinv(n - j + 1, j, level))
    # Of the two the smaller has the digits.
    if fresh <= 0.5:
        return sync_rate_for(changes, freshness=fresh, polls=polls)
    return sync_rate_for(changes, staleness=(Indicator(), stale), polls=polls)


def classes(
    change_rate: ArrayLike,
    sources: ArrayLike,
    *,
    weight: ArrayLike = 1.0,
    objective: str = "freshness",
    changes: Process | None = None,
    penalty: Penalty | None = None,
) -> Fleet:
    """A fleet too large to list, as classes of equal sources: `sources[i]` of them change at change_rate[i].

    `price.plan` then splits a budget over all sources (its sync_rate is that of each source of a class), and
    `price.least_budget` says what a staleness needs. For missed changes that is
    `(Σ sources·√(weight·change_rate))²/(2·missed·Σ sources·weight)`: M·E[√rate]²/(2·missed) if all weigh
    the same, M·E[rate]/(2·missed) if weights follow rates. [003 eqs. 66, 71–75; the text before 71 says
    maximise where it minimises]. Objectives as in `values.value_of`.

    >>> from unstale.core.price import least_budget
    >>> web = classes([8.0], [100e9], objective="missed")
    >>> round(least_budget(web, 1.0).spent / 86_400 / 1e6, 2)
    4.63
    """
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    number_of = numbers("sources", sources, above=0, remedy="give how many sources change at each rate")
    fits = rate.ndim == 1 and number_of.shape in ((), rate.shape)
    require(fits, "sources", f"of shape {number_of.shape}", f"must match change_rate {rate.shape}", "give one each")
    weights = numbers("weight", weight, least=0)
    fits = weights.shape in ((), rate.shape)
    require(fits, "weight", f"of shape {weights.shape}", f"must match change_rate {rate.shape}", "give one each")
    value = value_of(objective, rate, changes=changes, penalty=penalty)
    return Fleet.of(value, weight=weights * number_of, cost=number_of)


def _chances(freshness: ArrayLike) -> Floats:
    p = np.atleast_1d(numbers("freshness", freshness, least=0, most=1))
    flat = p.ndim == 1 and p.size > 0
    require(flat, "freshness", f"of shape {p.shape}", "must be a list of one or more", "give one number per source")
    return p


__all__ = ["all_fresh", "any_fresh", "at_least_fresh", "classes", "fresh_count", "sync_rate_for_count"]
