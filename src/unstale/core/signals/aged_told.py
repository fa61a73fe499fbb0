"""The least that a member costs under age if its listing is polled at even intervals, by dynamic programming.

Rules of this file:
1. All in mean gaps: `span` is rate·interval of the listing, `share` is due·rate²/weight. Only these two matter.
2. A listing polled at least as often as a told copy may age (`known_age`) is as good as signals that are pushed.
   A rarer one is worth less, the rarest nothing: between these two ends the answer lies between solved points.
3. Polls within a window fall on one of its `_PHASES` parts; so the cost is that of a plan that can be kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from unstale.core.checks import Floats
from unstale.core.signals.aged_points import LOST, SHARES, SPANS
from unstale.core.values.poisson import PoissonAge

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline

_PHASES = 32
#: the points reach from the age of told copies to so many plain intervals, at shares between these
_FARTHEST, _LEAST, _MOST = 3.0, 1e-4, 10.0**1.5
_SWEEPS, _TRIES = 60, 12
#: shares this much apart tell how many polls there are
_APART = 1e-3


class ToldAge:
    """Members at these shares: what each costs per mean gap, age and polls together, under even listings.

    From √(1 + 2·share) − 1 for spans up to that (pushed signals) to plain polling, to which it comes as 1/span.
    Told copies may be left to age, polled between listings, and blind polls made. Exact signals, known Poisson
    rates, even intervals of the listing. [docs/theory/signals.md, (12)].

    >>> told = ToldAge(np.full(3, 0.5))
    >>> told.cost(np.array([0.3, 2.0, np.inf])).round(3).tolist()
    [0.414, 0.526, 0.594]
    """

    def __init__(self, share: Floats) -> None:
        self.share = share
        #: the cost with pushed signals, with none, and the interval of plain polling
        self.pushed, self.plain, self.longest = _ends(share)

    def cost(self, span: Floats) -> Floats:
        pushed, top = self.pushed, _FARTHEST * self.longest
        with np.errstate(all="ignore"):
            where = np.log(np.clip(span, pushed, top) / pushed) / np.log(top / pushed)
            lost = _table().ev(np.log(np.clip(self.share, _LEAST, _MOST)), np.nan_to_num(where))
            rest = (self.plain - pushed) * (1.0 - np.clip(lost, 0.0, 1.0)) * np.minimum(top / span, 1.0)
        return np.asarray(np.where(span <= pushed, pushed, self.plain - np.nan_to_num(rest)))

    def polls(self, span: Floats) -> Floats:
        """Polls per mean gap: the slope of the cost in share, for the cost is the least of lines, one a policy.

        >>> ToldAge(np.array([0.5])).polls(np.array([0.1])).round(4).tolist()     # pushed: 1/√(1 + 2·share)
        [0.7071]
        """
        more, less = ToldAge(self.share * (1.0 + _APART)), ToldAge(self.share * (1.0 - _APART))
        with np.errstate(all="ignore"):
            return np.asarray((more.cost(span) - less.cost(span)) / (2.0 * _APART * self.share))


def _ends(w: Floats) -> tuple[Floats, Floats, Floats]:
    pushed = 2.0 * w / (np.sqrt(1.0 + 2.0 * w) + 1.0)
    y = PoissonAge(np.ones(len(w))).interval(w)
    with np.errstate(all="ignore"):
        plain = np.where(y < 1e-4, y * y / 2.0, y + np.expm1(-y))
    return pushed, plain, y


@lru_cache(maxsize=1)
def _table() -> RectBivariateSpline:
    """The share of the way from pushed signals to none that is lost, over log share and the place of the span."""
    from scipy.interpolate import RectBivariateSpline

    lost = np.reshape(LOST, (SHARES, SPANS))
    return RectBivariateSpline(
        np.log(np.geomspace(_LEAST, _MOST, SHARES)), np.linspace(0.0, 1.0, SPANS), lost, kx=1, ky=1
    )


def solved(x: Floats, w: Floats, phases: int = _PHASES) -> Floats:
    """g for each span and share, by iterating values of fresh copies at every phase of a window.

    fresh(s) = least of: a blind poll at a later phase; no poll until the listing, which tells the age a, and then
    told(a) = least over times t of a·t + t²/2 − g·t + share + fresh(phase of t). g is right where fresh(0) = 0.

    >>> solved(np.array([0.3, 2.0]), np.array([0.5, 0.5])).round(3).tolist()
    [0.414, 0.526]
    """
    d = x / phases
    at = np.arange(phases) * d[:, None]
    later = np.arange(2 * phases) * d[:, None]
    points, weights = np.polynomial.legendre.leggauss(2)
    ages = ((np.arange(phases)[:, None] + (points + 1.0) / 2.0).ravel())[None, :] * d[:, None]
    # how likely each age is at the listing, for a copy that was fresh at each phase
    left = x[:, None] - at
    likely = (
        np.exp(np.minimum(ages[:, None, :] - left[:, :, None], 0.0)) * np.tile(weights / 2.0, phases) * d[:, None, None]
    )
    likely = np.where(ages[:, None, :] < left[:, :, None], likely, 0.0)
    blind = np.arange(1, phases) * d[:, None]
    stretch, rest = _collected(blind), _collected(left)
    pushed, plain, _ = _ends(w)
    low, high = pushed.copy(), np.minimum(plain, (rest[:, 0] - w * np.expm1(-x)) / x)
    fresh = np.zeros_like(at)
    g, above, below = low.copy(), np.full(len(x), np.nan), np.full(len(x), np.nan)
    for _ in range(_TRIES):
        for _ in range(_SWEEPS):
            wait = later * later / 2.0 - g[:, None] * later + w[:, None] + np.tile(fresh, 2)
            told = np.min(ages[:, :, None] * later[:, None, :] + wait[:, None, :], axis=2)
            new = rest - g[:, None] * left + np.einsum("bja,ba->bj", likely, told)
            for j in range(phases - 2, -1, -1):
                reach = phases - 1 - j
                polled = stretch[:, :reach] - g[:, None] * blind[:, :reach] + w[:, None] + new[:, j + 1 :]
                new[:, j] = np.minimum(new[:, j], polled.min(axis=1))
            first = new[:, 0].copy()
            new[:, 0] = 0.0
            moved = np.abs(new - fresh).max()
            fresh = new
            if moved < 1e-10 * float(w.max()) and moved < 1e-9:
                break
        under = first > 0.0
        low, above = np.where(under, g, low), np.where(under, first, above)
        high, below = np.where(under, high, g), np.where(under, below, first)
        with np.errstate(all="ignore"):
            secant = low + above * (high - low) / (above - below)
        g = np.where(np.isfinite(secant) & (secant > low) & (secant < high), secant, 0.5 * (low + high))
    return g


def _collected(t: Floats) -> Floats:
    """The age that a copy collects in t, fresh at first."""
    return np.asarray(np.where(t < 1e-3, t**3 / 6.0, t * t / 2.0 - t - np.expm1(-t)))
