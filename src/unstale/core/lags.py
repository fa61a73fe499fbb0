"""How far one process trails another: the law of the difference of their ages, of which staleness is made.

Rules of this file:
1. Ages are independent: at a random time the age of the last change tells nothing of the age of the last poll
   [003 definition 6]. Poisson on either side guarantees it; two lattices may break it (see `phase`).
2. The same function gives stale and fresh shares, with the roles swapped, so neither is 1 minus the other.
3. A closed form where there is one, else one integral (two for an exotic penalty), to a relative 1e-10 or a
   ConvergenceError.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, plain
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Deadline, Linear, Penalty, Power
from unstale.core.poisson_orders import Order, order_age, order_freshness, order_staleness
from unstale.core.processes import Constant, Poisson, Process, Triangular
from unstale.core.quadrature import integrate

RTOL = 1e-11
Law = Callable[[ArrayLike], Floats | float]


def trails(ahead: Process, behind: Process, x: ArrayLike = 0.0) -> Floats | float:
    """P(age of `behind` − age of `ahead` > x), x ≥ 0: the last event of `behind` is older by more than x.

    `∫ age_density_ahead(y)·age_survival_behind(x + y) dy`. With changes ahead and polls behind it is the
    share of time a copy is stale by more than x; with polls ahead and changes behind, at x = 0, the share
    it is fresh. Ages independent. [003 eqs. 37, 41; 004 eq. 17].

    >>> round(trails(Poisson(2.0), Poisson(3.0)), 12)
    0.4
    """
    x = np.asarray(x, dtype=np.float64)
    if isinstance(behind, Constant):
        rest = np.maximum(behind.gap - x, 0.0)
        return plain(np.asarray(ahead.age_shortfall(rest)) / behind.gap)
    if isinstance(behind, Poisson):
        # what is left of a memoryless gap is as long as a new one
        return plain(np.exp(-behind.rate * x) * _head_start(ahead, behind.rate))
    if not np.any(x):
        if isinstance(ahead, Constant):
            u = ahead.gap
            share = behind.age_survival(u) + behind.age_partial_mean(u) / u
            return plain(np.full(x.shape, share))
        if isinstance(ahead, Poisson) and isinstance(behind, Triangular):
            return plain(np.full(x.shape, order_staleness(ahead.rate, behind.rate, "random")))
    return _swept(ahead, behind, lambda y: np.asarray(behind.age_survival(y)), x)


def overlap(ahead: Process, behind: Process, x: ArrayLike = 0.0) -> Floats | float:
    """Density of `age of behind − age of ahead` at x ≥ 0: minus the slope of `trails`.

    `∫ age_density_ahead(y)·age_density_behind(x + y) dy`. With polls ahead and changes behind, at x = 0, it
    is how often per unit of time a fresh copy turns stale. [004 eq. 19].

    >>> round(overlap(Poisson(3.0), Poisson(2.0)), 12)
    1.2
    """
    return _swept(ahead, behind, lambda y: np.asarray(behind.age_density(y)), np.asarray(x, dtype=np.float64))


def mean_lag(changes: Process, polls: Process) -> float:
    """E[(age of polls − age of changes)⁺]: the mean age of a copy, 0 while it is fresh.

    `∫ age_cdf_changes(x)·age_survival_polls(x) dx`. Infinite when the gaps between polls have no second
    moment, whatever the changes. Ages independent. [003 eq. 42 with w = x].

    >>> round(mean_lag(Poisson(2.0), Poisson(3.0)), 12)
    0.133333333333
    """
    if polls.tail <= 2:
        return math.inf
    if isinstance(polls, Poisson):
        return float(trails(changes, polls)) / polls.rate
    if isinstance(changes, Poisson) and isinstance(polls, Constant | Triangular):
        order: Order = "fixed" if isinstance(polls, Constant) else "random"
        return float(order_age(changes.rate, polls.rate, order))
    if polls.tail < 4:
        # a heavy tail is integrated exactly by its mean; what is subtracted has a light one
        whole = polls.age_moment(1)
        fresh = _over(lambda x: _times(polls.age_survival(x), changes.age_survival(x)), changes, polls)
        if fresh < 0.9 * whole:
            return whole - fresh
    return _over(lambda x: _times(polls.age_survival(x), changes.age_cdf(x)), polls, changes)


def mean_penalty(changes: Process, polls: Process, penalty: Penalty) -> float:
    """E[w(age of polls − age of changes)], w = 0 below 0: the source penalty η of 003.

    `∫ age_density_polls(a)·∫ age_density_changes(y)·w(a − y) dy da`; for even polls
    `sync_rate·∫ age_density_changes(y)·w2(interval − y) dy`. Infinite when polls are too irregular for w.
    Ages independent. [003 eqs. 42, 46, 49].

    >>> from unstale.core.penalties import Saturating
    >>> round(mean_penalty(Poisson(1.0), Poisson(1.0), Saturating(1.0)), 12)
    0.25
    """
    if isinstance(penalty, Indicator):
        return float(trails(changes, polls))
    if isinstance(penalty, Deadline):
        return float(trails(changes, polls, penalty.tau))
    if isinstance(penalty, Linear):
        return mean_lag(changes, polls)
    if penalty.degree is not None and polls.tail <= penalty.degree + 1:
        return math.inf
    if isinstance(polls, Constant):
        # ∫ density·w2 = ∫ cdf·w by parts: w is at hand for every penalty, its integral may not be
        return float(_collected(changes.age_cdf, changes, penalty, polls.gap)) / polls.gap
    if isinstance(polls, Poisson):
        return float(trails(changes, polls)) * _exponential_mean(penalty, polls.rate)

    def harm(a: Floats) -> Floats:
        # The quadrature looks from 1e-137 to 1e137 intervals: a harm that has underflowed, or reached its
        # limit, needs no exact age, and ages that do not occur need none at all.
        density = np.asarray(polls.age_density(a))
        far = math.inf if math.isinf(penalty.limit) else 1e40 * changes.mean
        a = np.where(density > 0, np.clip(a, 1e-20 * min(changes.mean, polls.mean), far), changes.mean)
        return density * _collected(changes.age_density, changes, penalty, a)

    return _over(harm, polls, changes, extra=penalty.kinks)


def mean_update_penalty(changes: Process, polls: Process, penalty: Penalty) -> float:
    """change_rate·E[w2(age of polls)]: the update penalty ρ of 003, harm added up over all unseen changes.

    For even polls `change_rate·sync_rate·w3(interval)`; with w = 1 the number of missed changes. Of the
    change process only the rate matters. Infinite when polls are too irregular for w2. [003 eq. 50].

    >>> from unstale.core.penalties import Linear
    >>> round(mean_update_penalty(Poisson(2.0), Poisson(3.0), Linear()), 12)
    0.222222222222
    """
    power = penalty.degree
    if isinstance(polls, Constant):
        return changes.rate * float(penalty.w3(polls.gap)) / polls.gap
    if power is None and 0 < penalty.limit < math.inf:
        power = 0.0
    if power is not None and polls.tail <= power + 2:
        return math.inf
    if penalty.degree is not None and penalty.degree == int(penalty.degree):
        n = int(penalty.degree)
        return changes.rate * polls.age_moment(n + 1) / (n + 1)
    # ∫ density·w2 = ∫ survival·w by parts
    mean = _over(lambda a: _times(polls.age_survival(a), penalty.w(a)), polls, polls, extra=penalty.kinks)
    return changes.rate * mean


def _swept(ahead: Process, behind: Process, f: Callable[[Floats], Floats], x: Floats) -> Floats | float:
    """E[f(A + x)] over the age A of `ahead`, where f ends and bends with `behind`."""
    last = np.minimum(ahead.end, np.maximum(behind.end - x, 0.0))
    inner: list[ArrayLike] = [*ahead.kinks, *(np.maximum(k - x, 0.0) for k in behind.kinks)]
    return integrate(
        lambda y, x: np.asarray(ahead.age_density(y)) * f(x + y),
        _points(inner, last),
        args=[x],
        scale=_scale(ahead, behind),
        rtol=RTOL,
    )[0]


def _head_start(process: Process, s: float) -> float:
    """E[e^(−s·A)] of the age A of a process: the chance that a Poisson event of rate s is older."""
    if isinstance(process, Poisson):
        return process.rate / (process.rate + s) if process.rate >= s else 1.0 / (1.0 + s / process.rate)
    if isinstance(process, Constant):
        return float(order_freshness(s, process.rate))
    if isinstance(process, Triangular):
        return float(order_freshness(s, process.rate, "random"))
    clock = Poisson(s)
    return _over(lambda y: np.asarray(process.age_density(y)) * np.exp(-s * y), process, clock)


def _exponential_mean(penalty: Penalty, rate: float) -> float:
    """E[w(X)], X exponential of that rate: the harm while a copy waits, stale, for a memoryless poll."""
    if isinstance(penalty, Power):
        return float(special.gamma(penalty.exponent + 1.0) / rate**penalty.exponent)
    clock = Poisson(rate)
    return _over(lambda x: _times(clock.age_density(x), penalty.w(x)), clock, clock, extra=penalty.kinks)


def _collected(law: Law, changes: Process, penalty: Penalty, a: ArrayLike) -> Floats:
    """∫₀ᵃ law(y)·w(a − y) dy, law being the density or the cdf of the age of changes, for many a at once."""
    a = np.asarray(a, dtype=np.float64)

    def both_ends(y: Floats, a: Floats) -> Floats:
        # the interval folded in the middle: what happens near y = a is seen as clearly as what happens near 0
        rest = np.maximum(a - y, 0.0)
        return np.asarray(law(y)) * penalty.w(rest) + np.asarray(law(rest)) * penalty.w(y)

    marks = [*changes.kinks, *penalty.kinks]
    # ages of changes gather on their own scale, which the quadrature may not see from 1e40 of it
    steps = [changes.mean * 10.0**k for k in (0, 30, 60, 90, 120)]
    inner: list[ArrayLike] = [*marks, *(np.maximum(a - k, 0.0) for k in marks), *steps]
    # in units of its size at the ends, or the bounds of a tiny harm would underflow; subnormal harm is none
    size = np.maximum(both_ends(0.0 * a, a), both_ends(a / 2, a))
    size = np.where(size > 1e-290, size, 0.0)
    with np.errstate(divide="ignore"):
        unit = np.where(size > 0, 1.0 / size, 0.0)
    value, _ = integrate(
        lambda y, a, unit: both_ends(y, a) * unit, _points(inner, a / 2), args=[a, unit], scale=changes.mean, rtol=RTOL
    )
    return np.asarray(value) * size


def _over(f: Callable[[Floats], Floats], bounded: Process, other: Process, extra: tuple[float, ...] = ()) -> float:
    """∫ f from 0 to the end of `bounded`, split at the kinks of both."""
    points = _points([*bounded.kinks, *other.kinks, *extra], bounded.end)
    return float(integrate(f, points, scale=_scale(bounded, other), rtol=RTOL)[0])


def _times(density: ArrayLike, harm: ArrayLike) -> Floats:
    """The product, 0 where the density has underflowed, though the harm may have overflowed there."""
    g = np.asarray(density)
    return np.where(g > 0, g * np.where(g > 0, harm, 0.0), 0.0)


def _points(inner: list[ArrayLike], last: ArrayLike) -> list[Floats]:
    """0, the inner points that lie before the last one, ascending, and the last one."""
    rows = np.broadcast_arrays(*(np.minimum(p, last) for p in inner), np.asarray(last, dtype=np.float64), 0.0)
    return list(np.sort(np.array(rows, dtype=np.float64), axis=0))


def _scale(one: Process, other: Process) -> float:
    return math.sqrt(one.mean) * math.sqrt(other.mean)
