"""Listings that show only the last entries, and listings that show changes late."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, number, numbers
from unstale.core.signals.roots import rising_root


def shown_share(entries: ArrayLike, expected: ArrayLike) -> Floats:
    """The share of signals that a feed of the last `entries` still shows when polled after `expected` signals.

    Q(n, x) + n/x·P(n+1, x), x = signals of all members per unit of time times the interval: the recall that overflow
    leaves, and the mean share of the time that the feed covers. 1 for small x, n/x for large x; it falls with x.
    Poisson signals. [docs/theory/signals.md, (9)].

    >>> shown_share([20, 20, 1], [10.0, 30.0, 1.0]).round(9).tolist()
    [0.999722179, 0.665017056, 0.632120559]
    """
    n, x = np.broadcast_arrays(numbers("entries", entries, least=1), numbers("expected", expected, least=0))
    with np.errstate(all="ignore"):
        overflown = np.where(x > 0, n / np.where(x > 0, x, 1.0) * special.gammainc(n + 1.0, x), 0.0)
    return np.asarray(np.minimum(special.gammaincc(n, x) + overflown, 1.0))


def expected_for(entries: float, share: float) -> float:
    """After how many signals a feed of the last `entries` shows only this share of them; 0 for all.

    The root x of `shown_share`. Relative error below 1e-10 where the share is below 1 − 1e-6.

    >>> round(expected_for(20, 0.665017056), 6)
    30.0
    """
    goal = number("share", share, above=0, most=1)
    if goal == 1.0:
        return 0.0
    return rising_root(lambda x: goal - float(shown_share(entries, x)), number("entries", entries, least=1))


def delayed_cycle(interval: float, delay: float, change_rate: float) -> float:
    """The mean time between polls of a member whose changes its listing shows only `delay` later, polled when shown.

    T·(k + 1 + e^(−λ(T − δ))/(1 − e^(−λT))), delay = k·T + δ: changes are shown with their true times, and those
    before the copy are discarded. The member brings (weight/λ − due)/cycle per unit of time, so delay stretches cycles
    and leaves the rule which members to poll alone. Known rates, no noise. [docs/theory/signals.md, (8)].

    >>> round(delayed_cycle(0.5, 0.7, 1.0), 8), round(delayed_cycle(0.5, 0.0, 1.0), 8)
    (1.94139256, 1.27074704)
    """
    t, rate = number("interval", interval, above=0), number("change_rate", change_rate, above=0)
    whole, rest = divmod(number("delay", delay, least=0), t)
    return t * (whole + 1.0 + math.exp(-rate * (t - rest)) / -math.expm1(-rate * t))


def echo(delay: ArrayLike, change_rate: ArrayLike) -> Floats:
    """The chance that a signal which arrives within `delay` of a copy, its true time unknown, is of an older change.

    1 − e^(−λ·delay): some change fell into the time whose signals were still on their way when the copy was taken.
    Such a signal should not be counted. Known rates. [docs/theory/signals.md, below (8)].

    >>> round(float(echo(0.7, 1.0)), 9)
    0.503414696
    """
    return np.asarray(-np.expm1(-np.asarray(change_rate, np.float64) * np.asarray(delay, np.float64)))
