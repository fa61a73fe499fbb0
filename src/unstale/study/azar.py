"""The two closed-form allocations of 002: the best rates when polls come at random.

Rules of this file:
1. Sources are ranked once by weight/change_rate; those that pay form the head of that ranking.
2. Everything is summed from the head down, over positive terms only: 002 subtracts the tail from running
   totals, which in floating point can return nothing but zeros (weights 0.001, 1, 1; rates 1e17, 1, 2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.errors import require


def algorithm_1(weight: ArrayLike, change_probability: ArrayLike) -> Floats:
    """Probability that the one poll of a slot goes to each source, for the most weighted freshness.

    Maximises Σ weight·p/(p + c − p·c) over Σp = 1, where c is `change_probability`, the chance that a source
    changes within a slot. Dividing by 1 − c turns it into `algorithm_2` with weight/(1−c), change_rate
    c/(1−c) and budget 1: p = (√(weight·c/ν) − c)/(1 − c) where that is positive, at a price ν of one poll.

    A source with c = 1 is fresh only in the slot of its poll, its value weight·p is linear: such sources
    share what is left once the others are polled at the price max(weight), and get nothing if none is left.
    002 assumes 0 < c < 1. If nothing can be gained (no weight, no changes) the slots are split evenly.

    [002 Algorithm 1; its lines 5–9 are illegible in print and rebuilt from eqs. 9, 10.] Time O(n log n).

    >>> algorithm_1([1, 2, 3, 4, 0.05], [0.1, 0.3, 0.5, 0.2, 0.9]).round(4)
    array([0.0839, 0.1857, 0.3597, 0.3706, 0.    ])
    """
    w, c = _columns(weight, change_probability, "change_probability", most=1.0)
    always = (c == 1.0) & (w > 0)
    rest = 1.0 - c
    out = np.zeros(len(w))
    if np.any(always):
        top = w[always].max()
        some = (c < 1.0) & (w > c * top)
        out[some] = (np.sqrt(w[some]) / np.sqrt(top) * np.sqrt(c[some]) - c[some]) / rest[some]
        left = 1.0 - out.sum()
        if left >= 0.0:
            best = always & (w == top)
            out[best] = left / np.count_nonzero(best)
            return out
        w = np.where(always, 0.0, w)
    rest[c == 1.0] = 1.0
    return _fill(w, c, np.where(c == 1.0, 0.0, c) / rest, 1.0)


def algorithm_2(weight: ArrayLike, change_rate: ArrayLike, budget: float) -> Floats:
    """sync_rate of each source for the most weighted freshness when polls come at random times.

    Maximises Σ weight·f/(f + change_rate) over Σf = budget: f = √(weight·change_rate/ν) − change_rate where
    that is positive, √ν = Σ√(weight·change_rate)/(budget + Σchange_rate) over the sources polled (eq. 11).

    A source is abandoned iff weight/change_rate ≤ ν. Used with evenly spaced polls instead, the same rates
    reach √6·(1 − 2e·E₃(1)) = 0.9887 of the optimum when the budget is small against the fleet.
    Sources without weight or without changes get 0; if that is all of them, the budget is split evenly.
    Accurate to rounding for budgets far below and far above the change rates. Time O(n log n).

    [002 Algorithm 2], without its running subtraction of totals (see above).

    >>> algorithm_2([1, 2, 3, 4, 0.05], [0.1, 0.3, 0.5, 0.2, 0.9], budget=1).round(4)
    array([0.1069, 0.2067, 0.3012, 0.3851, 0.    ])
    """
    w, rate = _columns(weight, change_rate, "change_rate")
    return _fill(w, rate, rate, number("budget", budget, above=0))


def _columns(weight: ArrayLike, change: ArrayLike, name: str, most: float | None = None) -> tuple[Floats, Floats]:
    w = np.atleast_1d(numbers("weight", weight, least=0))
    c = np.atleast_1d(numbers(name, change, least=0, most=most))
    require(
        w.ndim == 1 and w.shape == c.shape and len(w) > 0,
        "weight",
        f"of shape {w.shape}",
        f"must be one number per source, like {name} of shape {c.shape}",
        f"give weight and {name} as two lists of equal length",
    )
    return w, c


def _fill(weight: Floats, change: Floats, change_rate: Floats, budget: float) -> Floats:
    """Algorithm 2 told from the best source down; sources rank by weight/change.

    With r = √ratio: when source k starts to be polled, those above it have change_rate·(r − r[k])/r[k] each;
    what is spare then goes to all in proportion to change_rate·r. Differences of r are taken between the
    ratios, sums have positive terms only: nothing cancels, however far the budget is from the change rates.
    """
    ratio = _relative_ratio(weight, change)
    some = np.flatnonzero((ratio > 0) & (change_rate > 0))
    out = np.zeros(len(weight))
    if len(some) == 0:
        out[:] = budget / len(out)
        return out
    some = some[np.argsort(-ratio[some], kind="stable")]
    rate, ratio = change_rate[some], ratio[some]
    r = np.sqrt(ratio)
    # Σ rate·(r − r[k]) over the sources above k, built up from one source to the next.
    above = np.append(0.0, np.cumsum(np.cumsum(rate[:-1]) * -np.diff(ratio) / (r[:-1] + r[1:])))
    last = int(np.count_nonzero(above <= r * budget)) - 1
    some, rate, ratio, r = some[: last + 1], rate[: last + 1], ratio[: last + 1], r[: last + 1]
    share = rate * r
    spare = budget - above[last] / r[last]
    out[some] = rate * ((ratio - ratio[last]) / (r + r[last]) / r[last]) + spare * (share / share.sum())
    return out


def _relative_ratio(weight: Floats, change: Floats) -> Floats:
    """weight/change over a common power of two, 0 if either is: equal ratios stay equal, none overflows."""
    both = (weight > 0) & (change > 0)
    m_weight, e_weight = np.frexp(weight)
    m_change, e_change = np.frexp(np.where(both, change, 1.0))
    exponent = e_weight - e_change
    top = exponent[both].max(initial=-5000)
    ratio: Floats = np.where(both, np.ldexp(m_weight / m_change, np.minimum(exponent - top, 0)), 0.0)
    return ratio
