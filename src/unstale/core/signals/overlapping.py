"""Sources of which several collections tell: how fresh looks of all of them keep a copy, and what no plan can exceed.

Rules of this file:
1. Signals are exact, changes Poisson, rates known. Each collection is polled at even intervals, and their phases
   have nothing to do with each other. A member is polled as soon as any of them tells of a change.
2. The bound holds for every policy, whatever the phases.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.gamma2 import p2_inverse
from unstale.core.special import gammainc


def looked_after(change_rate: Floats, looks: Floats) -> Floats:
    """Share of time that a copy is fresh if it is polled whenever one of its collections tells of a change.

    1 − ∫ rate·e^(−rate·u)·Π(1 − u·look)⁺ du: the product is the chance that none of the collections has been polled for
    u, `looks` their polls per unit of time, a column for each. It adds up to incomplete gamma functions. For one
    collection it is (1 − e^(−x))/x, x = rate/look. Polls per unit of time are rate times it.
    [docs/theory/signals.md, (11)].

    >>> looked_after(np.array([1.0, 1.0]), np.array([[2.0, 0.0], [2.0, 0.5]])).round(6).tolist()
    [0.786939, 0.803265]
    """
    often = looks.max(axis=1)
    with np.errstate(all="ignore"):
        x = np.where(often > 0.0, change_rate / often, np.inf)
        rest = np.where(x > 0.0, gammainc(1.0, x), 0.0)
        # Π(1 − u·look) = Σ (−u)^j·sums[j], sums the elementary symmetric ones of the looks, in mean gaps
        sums = [np.ones(len(x)), *(np.zeros(len(x)) for _ in range(looks.shape[1]))]
        for k in range(looks.shape[1]):
            each = looks[:, k] / change_rate
            for j in range(k + 1, 0, -1):
                sums[j] = sums[j] + each * sums[j - 1]
        factor = 1.0
        for j in range(1, len(sums)):
            factor *= -j
            rest = rest + factor * np.where(sums[j] > 0.0, sums[j] * gammainc(j + 1.0, x), 0.0)
    return np.asarray(np.where(change_rate > 0.0, 1.0 - rest, 1.0))


def most_left(change_rate: Floats, weight: Floats, due: Floats, look_due: Floats) -> Floats:
    """The most that a member leaves, weighted freshness less its polls, if a look at it costs it `look_due`.

    weight·max(θ·e^(−x), e^(−y)), θ = 1 − due·rate/weight, P(2, x) = look_due·rate/(weight·θ), and y the plain
    interval in mean gaps. Looks at a member may come at any times; even ones are best, and what they bring is
    concave in how many there are. If the members of each collection together pay no more for a look than it
    costs, the sum over all members exceeds what any policy leaves: that is the certificate.

    >>> most_left(np.ones(2), np.ones(2), np.full(2, 0.2), np.array([0.01, 1.0])).round(6).tolist()
    [0.676888, 0.438503]
    """
    with np.errstate(all="ignore"):
        share = np.where(weight > 0.0, due * change_rate / weight, np.inf)
        polled = (share < 1.0) & (change_rate > 0.0)
        theta = 1.0 - np.where(polled, share, 0.5)
        plain = np.exp(-p2_inverse(1.0 - theta))
        part = look_due * change_rate / (weight * theta)
        told = np.where(part < 1.0, theta * np.exp(-p2_inverse(np.where(part < 1.0, part, 0.5))), 0.0)
    kept = np.where(polled, np.maximum(told, plain), np.where((change_rate == 0.0) & (weight > 0.0), 1.0, 0.0))
    return np.asarray(np.where(weight > 0.0, weight, 0.0) * kept)


def look_worth(change_rate: Floats, weight: Floats, due: Floats, looks: Floats) -> tuple[Floats, Floats]:
    """What so many even looks at a member leave, its polls paid, and what one more look is worth: the slope of it.

    The slope is (weight/rate − due)·P(2, rate/looks), and no more than where plain polling begins to be as good;
    there, and with fewer looks, it is a straight line down to plain polling. Concave, so it bounds uneven looks.

    >>> left, worth = look_worth(np.ones(2), np.ones(2), np.full(2, 0.2), np.array([5.0, 0.0]))
    >>> left.round(6).tolist(), worth.round(6).tolist()
    ([0.725077, 0.438503], [0.014018, 0.097849])
    """
    with np.errstate(all="ignore"):
        share = np.where(weight > 0.0, due * change_rate / weight, np.inf)
        polled = (share < 1.0) & (change_rate > 0.0)
        theta = 1.0 - np.where(polled, share, 0.5)
        y = p2_inverse(1.0 - theta)
        turn = np.maximum(y + np.log(theta), 0.0)
        x = np.where(looks > 0.0, change_rate / looks, np.inf)
        worth = weight * theta / change_rate * gammainc(2.0, np.minimum(x, turn))
        told = weight * theta * -np.expm1(-x) / x
        left = np.where(x <= turn, told, weight * np.exp(-y) + worth * looks)
    still = np.where((change_rate == 0.0) & (weight > 0.0), weight, 0.0)
    return np.asarray(np.where(polled, left, still)), np.asarray(np.where(polled, worth, 0.0))
