"""Exact listings when harm grows with age: the value of a listing poll, and how old a known-stale copy may become.

Under age nothing is abandoned. Signals that are pushed make a new choice possible: to let a copy that is known to be
stale grow older, because a poll later serves more changes at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.gamma2 import p2
from unstale.core.signals.roots import rising_root
from unstale.core.values.poisson import PoissonAge


def age_listing_value(interval: float, change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> float:
    """The value under age of polling a listing after `interval`, every signalled member polled at once.

    Φ(T) = Σ weight·φ(T) − due·P(2, change_rate·T), φ the value of plain polling under age. As under freshness it is the
    members' ordinary values, less what their polls will cost; here it falls at first (more listings mean more
    polls of members), then rises without end: every listing is polled at last, and at one interval only.
    Exact signals, known rates; it is a lower value where `known_age` exceeds the interval.

    >>> round(age_listing_value(2.0, [1.0], 1.0, 0.2), 6)
    1.287207
    """
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    t = number("interval", interval, least=0)
    q, owed = (np.broadcast_to(np.asarray(x, np.float64), rate.shape) for x in (weight, due))
    ordinary = PoissonAge(rate).value(np.full(rate.shape, t))
    return float((q * ordinary - owed * p2(rate * t)).sum())


def age_listing_interval(listing_due: float, change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> float:
    """The interval after which polling the listing is worth `listing_due` under age, every signal followed by a poll.

    The one root of Φ(T) = listing_due that is a minimum of cost, Φ of `age_listing_value`; inf if no member both
    changes and has weight. Exact signals, known rates.

    >>> round(age_listing_interval(0.5, [1.0], 1.0, 0.2), 6)
    1.409887
    """
    owed = number("listing_due", listing_due, least=0)
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    q = np.broadcast_to(numbers("weight", weight, least=0), rate.shape)
    if not np.any((rate > 0) & (q > 0)):
        return np.inf
    if owed == 0.0 and not np.any(np.asarray(due)):
        return 0.0
    return rising_root(lambda t: age_listing_value(t, rate, q, due) - owed, 1.0 / float(rate.max()))


def known_age(change_rate: ArrayLike, due: ArrayLike) -> Floats:
    """How old a copy that is known to be stale should be when it is polled, if every change is told at once.

    x = (√(1 + 2·due·change_rate²) − 1)/change_rate, due per unit of weight: the root of x²/2 + x/change_rate = due.
    A cycle is a mean gap and x long; x is also the cost per unit of time and weight at the optimum. About
    due·change_rate where polls are cheap, √(2·due) where changes are many. Exact pushed signals, known rates.

    >>> round(float(known_age(2.0, 0.6)), 9)
    0.704159458
    """
    rate, w = np.asarray(change_rate, np.float64), np.asarray(due, np.float64)
    # the root without cancelling: 2·due·rate/(√(1 + 2·due·rate²) + 1)
    return np.asarray(2.0 * w * rate / (np.sqrt(1.0 + 2.0 * w * rate * rate) + 1.0))
