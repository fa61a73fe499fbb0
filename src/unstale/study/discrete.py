"""Freshness when time comes in slots and each slot's poll is drawn at random [002 eqs. 1–3, Remark 4]."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers, plain


def discrete_freshness(poll_probability: ArrayLike, change_probability: ArrayLike) -> Floats | float:
    """Probability that a copy is fresh at the end of a slot.

    p/(p + c − p·c), p = `poll_probability` and c = `change_probability`, each drawn anew in every slot,
    with the change before the poll: a poll always leaves a fresh copy.

    Concave in p, so one price per poll decides the best split (`azar.algorithm_1`). For p and c → 0 it
    tends to p/(p + c), the freshness under Poisson polls. A source that never changes is fresh, polled or
    not.

    [002 eq. 3]

    >>> round(discrete_freshness(0.3, 0.2), 6)
    0.681818
    """
    p = numbers("poll_probability", poll_probability, least=0, most=1)
    c = numbers("change_probability", change_probability, least=0, most=1)
    stale = (1.0 - p) * c
    with np.errstate(invalid="ignore"):
        return plain(np.where(c == 0, 1.0, p / (p + stale)))


def decaying_freshness(
    poll_probability: ArrayLike, change_rate: ArrayLike, *, within_slots: bool = False
) -> Floats | float:
    """Mean of e^(−change_rate·y) over reads, y the time since the last poll, in slots.

    p/(p + (1 − p)·c), c = 1 − e^(−change_rate): `discrete_freshness` with the chance c of a change in one
    slot. With `within_slots` reads fall uniformly inside slots instead of right after the draw, which costs
    the factor c/change_rate, the mean decay over part of a slot.

    The best split is `azar.algorithm_1` with that c (and weights times c/change_rate), never Algorithm 2.
    [002 Remark 4], which is wrong: it claims p/(p + change_rate) "in discrete time" and Algorithm 2; both
    hold only for polls at Poisson times, the limit of ever shorter slots.

    >>> round(decaying_freshness(0.3, 0.2), 6), round(decaying_freshness(0.3, 0.2, within_slots=True), 6)
    (0.70276, 0.636944)
    """
    rate = numbers("change_rate", change_rate, least=0, infinite=True)
    changed = -np.expm1(-rate)
    fresh = np.asarray(discrete_freshness(poll_probability, changed))
    if within_slots:
        with np.errstate(invalid="ignore"):
            fresh = fresh * np.where(rate == 0, 1.0, changed / rate)
    return plain(fresh)
