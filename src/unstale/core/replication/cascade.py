"""Replicas of replicas: freshness along a chain, where each replica polls the one above it [004 sect. V].

What a replica at depth i holds now is what the source held before the ages of the i polls above it added up:
Q = A₁ + … + Aᵢ. So it is fresh exactly if nothing changed during Q, and everything here is the law of one sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.inverse import change_process
from unstale.core.lags import trails
from unstale.core.processes import (
    Constant,
    Empirical,
    LogNormal,
    Pareto,
    Poisson,
    Process,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.core.processes.named import polling
from unstale.core.quadrature import integrate
from unstale.core.replication.redundancy import whole
from unstale.errors import require
from unstale.frozen import dataclass

Law = Callable[[Floats], Floats]

# Chebyshev points of a panel, halvings of one at most, and the error allowed relative to the values in a panel.
_POINTS, _HALVINGS, _PANEL = 17, 48, 2e-13
_BENDS, _AT_ONCE = 128, 128
# A light tail ends where this part of the value at 0 is left; integrals over it are added to this constant part.
_CUT, _BASE = 1e-18, 0.1
# In mean gaps between changes: as far as any integral over a heavy tail looks, and how much must be left there.
_FAR, _LEFT = 1e140, 1e-200
# Laws that cost no more than looking them up in a table, and those of which only the density does.
_CHEAP = (Poisson, Constant, Uniform, Triangular, Pareto, Empirical, LogNormal)
_CHEAP_DENSITY = (*_CHEAP, Weibull)


def cascade_freshness(changes: Process | float, polls: Sequence[Process | float]) -> float:
    """Freshness of the last replica of a chain in which each polls the one before it, the first the source.

    `E[age_survival_changes(A₁ + … + Aᵢ)]`, A the ages of the polls. For Poisson changes it is the product of
    what each would reach at the source. The order of the replicas makes no difference. Changes in bursts
    (Pareto) lose less by depth than Poisson ones, even changes more.
    A bare rate means Poisson changes, even polls. All processes are independent; numbers to a relative 1e-10.
    [004 eqs. 28, 29; the running index of 29 is k, not i].

    >>> cascade_freshness(2.0, [Poisson(2.0)] * 3)
    0.125
    >>> from unstale.core.processes import Pareto
    >>> round(cascade_freshness(Pareto(3.0, 1.0), [Poisson(2.0)] * 2), 12)
    0.335943402659
    """
    return float(cascade_residual(0.0, changes, polls))


def cascade_levels(changes: Process | float, polls: Sequence[Process | float]) -> list[float]:
    """Freshness of every replica of a chain, from the first below the source to the last.

    `cascade_freshness` for each beginning of `polls`, at the price of the last one. Never increasing.
    [004 eq. 28, Figure 9].

    >>> cascade_levels(2.0, [Poisson(2.0)] * 3)
    [0.5, 0.25, 0.125]
    """
    u, chain = _checked(changes, polls)
    if isinstance(u, Poisson):
        return list(accumulate((float(trails(d, u)) for d in chain), mul))
    return [float(level.law(np.zeros(1))[0]) for level in _levels(u, chain)]


def cascade_residual(y: ArrayLike, changes: Process | float, polls: Sequence[Process | float]) -> Floats | float:
    """P(the last replica of a chain is fresh, and the source will not change for another y).

    `E[age_survival_changes(y + A₁ + … + Aᵢ)]`, A the ages of the polls; at y = 0 the freshness, divided by it
    the law of the rest of a fresh period. For Poisson changes `e^(−change_rate·y)·freshness`: depth tells
    nothing of the future. Independent processes. [004 eq. 24, lemma 6].

    >>> from unstale.core.processes import Pareto
    >>> round(cascade_residual(0.5, Pareto(3.0, 1.0), [Poisson(2.0)] * 2), 12)
    0.193339844085
    """
    u, chain = _checked(changes, polls)
    ahead = numbers("y", y, least=0, remedy="give a time from now")
    if isinstance(u, Poisson):
        still = np.asarray(u.age_survival(ahead))
        return plain(still * float(np.prod([float(trails(d, u)) for d in chain])))
    # The order is free: smooth and slow polls first, which leave the least of the bends in the law of the changes.
    chain.sort(key=lambda d: (len(d.kinks), -d.mean))
    return plain(_levels(u, chain)[-1].law(ahead.ravel()).reshape(ahead.shape))


def lasting_rates(change_rate: float, depth: int, rho: float) -> Floats:
    """Poll rates by depth that keep freshness from vanishing, however deep the cascade grows.

    `sync_rate_i = change_rate·((i+1)^rho − 1)`, i = 1 … depth: with Poisson changes and exponential polls
    each hop keeps the share 1 − (i+1)^−rho, and the product of all of them is above 0 exactly for rho > 1.
    So rates must grow faster than the depth, but need not grow exponentially. [004 sect. V-D].

    >>> lasting_rates(1.0, 4, 2.0).tolist()
    [3.0, 8.0, 15.0, 24.0]
    """
    rate = number("change_rate", change_rate, above=0)
    power = _checked_rho(rho)
    hops = np.arange(1.0, whole("depth", depth) + 1.0)
    return np.asarray(rate * ((hops + 1.0) ** power - 1.0))


def lasting_freshness(rho: float) -> float:
    """What is left of freshness at infinite depth under `lasting_rates`: the product of 1 − i^−rho over i ≥ 2.

    `exp(−Σⱼ (ζ(j·rho) − 1)/j)`, ζ the Riemann zeta function; 1/2 for rho = 2, tends to 0 as rho falls to 1 and
    to 1 as it grows. Poisson changes, exponential polls. [004 sect. V-D].

    >>> round(lasting_freshness(2.0), 12), round(lasting_freshness(3.0), 12)
    (0.5, 0.809396597366)
    """
    # The terms fall at least as fast as 2^-j/j
    j = np.arange(1.0, 60.0)
    return float(np.exp(-np.sum(special.zeta(j * _checked_rho(rho), 2.0) / j)))


def _checked(changes: Process | float, polls: Sequence[Process | float]) -> tuple[Process, list[Process]]:
    chain = [d if isinstance(d, Process) else polling("fixed", number("polls", d, above=0)) for d in polls]
    require(chain, "polls", list(polls), "must name one replica at least", "give the poll process of each hop")
    return change_process(changes), chain


def _checked_rho(rho: float) -> float:
    return number("rho", rho, above=1, remedy="at 1 or below, freshness vanishes with depth")


@dataclass(frozen=True, slots=True)
class _Level:
    """y → P(a replica is fresh, and stays so for y): a law that falls to 0 at `end`, over times like `scale`."""

    law: Law
    scale: float
    end: float
    bends: tuple[float, ...] = ()
    #: in units of `scale`: how far the law is tabulated, beyond which it is next to nothing
    far: float = _FAR

    def averaged(self, polls: Process, density: Law) -> _Level:
        """The level below: E[law(y + A)], A the age of polls, which has this density."""

        def law(y: Floats) -> Floats:
            # Some at a time: with many bends each integral has thousands of panels.
            parts = [some(y[i : i + _AT_ONCE]) for i in range(0, len(y), _AT_ONCE)]
            return np.concatenate(parts) if parts else y

        def some(y: Floats) -> Floats:
            last = np.minimum(polls.end, np.maximum(self.end - y, 0.0))
            kinks = [np.full_like(y, k) for k in polls.kinks] + [np.maximum(k - y, 0.0) for k in self.bends]
            points = np.sort(np.minimum([np.zeros_like(y), *kinks, last], last), axis=0)
            whole, _ = integrate(
                lambda x, y: density(x) * (self.law(x + y) + base),
                list(points),
                args=[y],
                scale=min(polls.mean, self.scale),
                rtol=1e-11,
                smooth=True,
            )
            return np.asarray(whole) - (base * np.asarray(polls.age_cdf(last)) if base else 0.0)

        # Where the law ends it has no digits relative to itself, only to its greatest value: so ask for no more.
        base = _BASE * float(self.law(np.zeros(1))[0]) if np.isfinite(self.end) else 0.0
        # A bend of either law makes bends below it, each smoother than the last, so that many need no notice.
        bends = {b - k for b in self.bends for k in (0.0, *polls.kinks) if b > k}
        return _Level(law, self.scale, self.end, tuple(sorted(bends)) if len(bends) <= _BENDS else (), self.far)

    def tabulated(self) -> _Level:
        """The same as Chebyshev polynomials on panels of log(1 + y/scale), halved until each is right."""
        top = float(np.log1p(min(self.end / self.scale, self.far)))
        # A heavy tail is nearly a straight line if both axes are logarithms; a law that ends has no logarithm there.
        heavy = np.isinf(self.end)
        whole = 1.0 if heavy else float(self.law(np.zeros(1))[0])
        nodes = np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)
        between = np.array([-0.97, -0.45, 0.13, 0.77])
        fit = np.linalg.inv(chebyshev.chebvander(nodes, _POINTS - 1)).T
        check = chebyshev.chebvander(between, _POINTS - 1).T
        bends = [np.log1p(b / self.scale) for b in self.bends if b < self.end]
        first = np.unique(np.append(np.linspace(0.0, top, 9), bends))
        low, high = first[:-1], first[1:]
        starts, weights = [np.array([top])], []
        for halving in range(_HALVINGS + 1):
            at = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * np.append(nodes, between)
            values = self.law((self.scale * np.expm1(at)).ravel()).reshape(at.shape)
            values = np.log(values) if heavy else values
            found = values[:, :_POINTS] @ fit
            off = np.abs(found @ check - values[:, _POINTS:]).max(axis=1)
            good = (off <= _PANEL * np.maximum(np.abs(values).max(axis=1), whole)) | (halving == _HALVINGS)
            starts.append(low[good])
            weights.append(found[good])
            low, high = low[~good], high[~good]
            low, high = np.append(low, (low + high) / 2), np.append((low + high) / 2, high)
            if not len(low):
                break
        order = np.argsort(np.concatenate(starts))
        edges, table = np.concatenate(starts)[order], np.concatenate(weights)[np.argsort(np.concatenate(starts[1:]))]
        rows = list(np.ascontiguousarray(table.T))

        def law(y: Floats) -> Floats:
            place = np.log1p(y / self.scale)
            panel = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, len(table) - 1)
            low, high = edges[panel], edges[panel + 1]
            x = np.clip((2.0 * place - low - high) / (high - low), -1.0, 1.0)
            # Clenshaw's recurrence, coefficient by coefficient: each is a short row that stays in the cache.
            value, before = np.take(rows[-1], panel), np.zeros_like(x)
            for row in rows[-2:0:-1]:
                value, before = 2.0 * x * value - before + np.take(row, panel), value
            value = x * value - before + np.take(rows[0], panel)
            return np.exp(value) if heavy else np.where(y >= self.end, 0.0, np.maximum(value, 0.0))

        return _Level(law, self.scale, self.end, self.bends, self.far)


def _levels(changes: Process, chain: list[Process]) -> list[_Level]:
    """The replicas of a chain, each an average of the one above it."""
    found = [_of(changes, lambda y: np.asarray(changes.age_survival(y)))]
    for i, polls in enumerate(chain):
        # All levels but the last are asked thousands of times for the same ages: what is dear is written down first.
        again = i < len(chain) - 1
        level = found[-1].tabulated() if i or (again and not isinstance(changes, _CHEAP)) else found[0]
        found.append(level.averaged(polls, _density(polls, again)))
    return found[1:]


def _density(polls: Process, again: bool) -> Law:
    def density(y: Floats) -> Floats:
        return np.asarray(polls.age_density(y))

    if not again or isinstance(polls, _CHEAP_DENSITY):
        return density
    table = _of(polls, density).tabulated().law
    # Where polls cannot be that old the table has nothing to say.
    return lambda y: np.where(y < polls.end, table(y), 0.0)


def _of(process: Process, law: Law) -> _Level:
    """A law of a process that falls like its ages do."""
    end = process.end
    if np.isinf(end) and np.isinf(process.tail):
        end = process.mean
        while float(process.age_survival(end)) > _CUT:
            end *= 2.0
    far = _FAR
    while np.isinf(end) and far > 1.0 and float(process.age_survival(far * process.mean)) < _LEFT:
        far **= 0.9
    return _Level(law, process.mean, end, process.kinks, far)
