"""A listing that tells the truth at once: when to poll it, and which of its members to poll then.

Rules of this file:
1. Changes are Poisson. `due` is what a poll of a member must be worth, price·cost plus its host's surcharge.
2. A listing poll shows every change before it and invents none. So each one begins anew: members worth it are fresh.
3. A member that never changes is always fresh; it adds nothing to the value of a listing poll.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.gamma2 import p2, p2_inverse
from unstale.core.signals.roots import rising_root


class Window(NamedTuple):
    """What a member brings between two listing polls, how many blind polls it gets there, and their distance."""

    value: Floats
    blind: Floats
    spacing: Floats


def stale_worth(change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> Floats:
    """What a poll of a member known to be stale brings beyond its cost, 0 where it should not be polled at all.

    (weight/change_rate − due)⁺: a fresh copy lasts one mean gap, however the need for it was learned. So a signal does
    not make a fast member worth a poll: the rule is that of abandonment in plain polling. To wait with the poll
    only loses. Known rates. Signals that are pushed and free: [docs/theory/signals.md, (1)].

    >>> stale_worth([0.5, 8.0], 1.0, 0.2).tolist()
    [1.8, 0.0]
    """
    rate, q, owed = (np.asarray(x, dtype=np.float64) for x in (change_rate, weight, due))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((rate > 0) & (q > 0), np.maximum(q / rate - owed, 0.0), 0.0))


def listing_value(interval: ArrayLike, change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> Floats:
    """The value of polling a listing after `interval`: poll it when this reaches what a listing poll costs.

    Φ(T) = Σ (weight/change_rate − due)⁺·P(2, change_rate·T): the members' ordinary values, each reduced by the share
    that its polls will cost. It rises with T to `listing_limit`, from T²/2·Σ(…)·change_rate² at first, so
    even intervals are best and the search for one is a plain root. Exact signals, known rates, no blind polls.
    Members stand on the last axis; `interval` may be a column of several. [docs/theory/signals.md, (2)].

    >>> rate, weight = [0.2, 0.5, 1.0, 2.0, 8.0], [1.0, 1.0, 2.0, 1.0, 1.0]
    >>> round(float(listing_value(1.0, rate, weight, 0.2)), 9)
    0.900310338
    """
    rate = np.asarray(change_rate, dtype=np.float64)
    t = np.asarray(interval, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        x = np.where(rate > 0, rate * t[..., None], 0.0)
    return np.asarray((stale_worth(rate, weight, due) * p2(x)).sum(axis=-1))


def listing_limit(change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> float:
    """What a listing poll is worth at most: a listing that costs as much is not polled at all.

    Φ(∞) = Σ (weight/change_rate − due)⁺. Exact signals, known rates. [docs/theory/signals.md, (2)].

    >>> round(listing_limit([0.2, 0.5, 1.0, 2.0, 8.0], [1.0, 1.0, 2.0, 1.0, 1.0], 0.2), 9)
    8.7
    """
    return float(stale_worth(change_rate, weight, due).sum())


def listing_interval(listing_due: float, change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> float:
    """The interval after which polling the listing is worth `listing_due`; inf if it never is.

    The root of Φ(T) = listing_due, Φ of `listing_value`. Relative error below 1e-12. [docs/theory/signals.md, (2)].

    >>> round(listing_interval(0.2, [0.2, 0.5, 1.0, 2.0, 8.0], [1.0, 1.0, 2.0, 1.0, 1.0], 0.2), 9)
    0.384262784
    """
    owed = number("listing_due", listing_due, least=0)
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    worth = np.broadcast_to(stale_worth(rate, weight, due), rate.shape)
    if owed >= worth.sum():
        return np.inf
    if owed == 0.0:
        return 0.0
    return rising_root(lambda t: float((worth * p2(rate * t)).sum()) - owed, 1.0 / float(rate[worth > 0].max()))


def window(interval: ArrayLike, change_rate: ArrayLike, weight: ArrayLike, due: ArrayLike) -> Window:
    """The best blind polls of a member between two listing polls `interval` apart, and what it brings with them.

    With fresh = 1 − due·change_rate/weight, K = change_rate·interval − log(fresh) and m − 1 blind polls,
    G = weight/change_rate·m·(fresh − e^(−K/m)), the polls K/(m·change_rate) apart, the last stretch
    shorter by −log(fresh)/change_rate. G is concave in m, so m is K/y rounded down or up, where P(2, y) = 1 − fresh
    is the plain interval: no search. m = 1 (no blind poll) below the plain interval.
    Exact signals, known rates. G ≥ interval times what plain polling brings. [docs/theory/signals.md, (3)].

    >>> [round(float(x), 8) for x in window(3.0, 1.0, 1.0, 0.1)]
    [1.82416261, 5.0, 0.51756009]
    """
    t, rate, q, owed = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (interval, change_rate, weight, due)))
    with np.errstate(all="ignore"):
        share = np.where(q > 0, owed * rate / q, np.inf)
        share = np.where((rate == 0) & (q > 0), 0.0, share)
        polled = share < 1.0
        rest = np.where(polled, share, 0.5)
        fresh, y = 1.0 - rest, p2_inverse(rest)
        total = rate * t - np.log1p(-rest)
        m = np.maximum(np.floor(np.where(y > 0, total / y, 1.0)), 1.0)
        low, high = _brought(m, rate * t, fresh), _brought(m + 1.0, rate * t, fresh)
        better = (high > low) & (rate * t > 0)
        m = np.where(better, m + 1.0, m)
        value = np.where(rate > 0, q / rate * np.where(better, high, low), q * t)
        value = np.where(polled, np.maximum(value, 0.0), 0.0)
        spacing = np.where(m > 1.0, total / (m * rate), t)
    return Window(value, np.where(polled, m - 1.0, 0.0), np.where(polled, spacing, np.inf))


def _brought(m: Floats, x: Floats, fresh: Floats) -> Floats:
    # fresh − e^(−K/m), K = x − log(fresh), without cancelling
    return np.asarray(m * fresh * -np.expm1(-x / m - np.log(fresh) * (1.0 - 1.0 / m)))
