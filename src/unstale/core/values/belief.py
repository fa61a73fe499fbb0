"""Value of a poll when the change rate itself is uncertain: a Gamma belief, seen as Pareto gaps.

Written in L = log(1 + t/exposure). With E(c) = (e^(c·L) − 1)/c, the integral of e^(c·l) over [0, L], there
are three forms of each answer, and each source uses the one that does not cancel. Age is in `belief_age`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats
from unstale.core.gamma2 import by_blocks
from unstale.core.roots.logarithms import newton
from unstale.core.roots.rising import root
from unstale.core.values.base import Rows, Value, column
from unstale.core.values.order import checked_order, gap_mean
from unstale.errors import require

#: Gauss nodes and weights on [0, 1] for the form used while L and shape·L are below 2
_NODES, _WEIGHTS = (0.5 * (x + k) for x, k in zip(np.polynomial.legendre.leggauss(10), (1.0, 0.0), strict=True))
_STEPS = 8


class BeliefForms(NamedTuple):
    """What one objective answers in fixed order, for blocks of (shape, exposure, interval or value)."""

    value: Callable[[Floats, Floats, Floats], Floats]
    slope: Callable[[Floats, Floats, Floats], Floats]
    staleness: Callable[[Floats, Floats, Floats], Floats]
    interval: Callable[[Floats, Floats, Floats], Floats]
    limit: Callable[[Floats, Floats], Floats]


class BeliefValue(Value):
    """Frame of the values under a Gamma(shape, exposure) belief: blocks, and the mean over the gaps of an order."""

    _forms: ClassVar[BeliefForms]

    def __init__(self, shape: ArrayLike, exposure: ArrayLike, order: str = "fixed") -> None:
        self.shape, self.exposure = column("shape", shape, above=0), column("exposure", exposure, above=0)
        require(
            len(self.shape) == len(self.exposure),
            "exposure",
            f"of {len(self.exposure)} sources",
            f"must have as many as shape, {len(self.shape)}",
            "give both for every source",
        )
        self.order = checked_order(order)

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: Rows) -> Self:
        other = copy.copy(self)
        other.shape, other.exposure = self.shape[rows], self.exposure[rows]
        return other

    def value(self, interval: Floats) -> Floats:
        return self._ordered(self._forms.value, interval, 0)

    def slope(self, interval: Floats) -> Floats:
        return self._ordered(self._forms.slope, interval, 1)

    def staleness(self, interval: Floats) -> Floats:
        return self._ordered(self._forms.staleness, interval, 1)

    def limit(self) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return self._forms.limit(self.shape, self.exposure)

    def interval(self, value: Floats) -> Floats:
        with np.errstate(all="ignore"):
            inverse = self._forms.interval if self.order == "fixed" else self._search
            return by_blocks(inverse, self.shape, self.exposure, value)

    def _ordered(self, even: Callable[[Floats, Floats, Floats], Floats], interval: Floats, power: int) -> Floats:
        """E[X^power·even(X·interval)], X the order's gap."""
        if self.order == "fixed":
            with np.errstate(all="ignore"):
                return by_blocks(even, self.shape, self.exposure, interval)

        def block(a: Floats, b: Floats, t: Floats) -> Floats:
            far = np.isinf(t)
            near = np.where(far, 1.0, t)
            # the value turns where t·X passes the mean gap, and the exposure
            turns = np.column_stack([b / a, 10 * b / a, b, 10 * b]) / np.maximum(near, 1e-300)[:, None]

            def of_gap(row: NDArray[np.intp], x: Floats) -> Floats:
                return x**power * even(a[row], b[row], near[row] * x)

            return np.where(far, even(a, b, t), gap_mean(self.order, of_gap, turns))

        with np.errstate(all="ignore"):
            return by_blocks(block, self.shape, self.exposure, interval)

    def _search(self, a: Floats, b: Floats, v: Floats) -> Floats:
        """The interval in other orders, by bracketing around that of fixed order."""
        inside = (v > 0) & (v < self._forms.limit(a, b))
        rows = np.flatnonzero(inside)
        few = self.take(slice(0))
        few.shape, few.exposure = a[rows], b[rows]

        def residual(row: NDArray[np.intp], u: Floats) -> Floats:
            return np.clip(np.log(few.take(row).value(np.exp(u)) / v[rows][row]), -1e3, 1e3)

        out = np.where(v > 0, np.inf, 0.0)
        out[rows] = np.exp(root(residual, np.log(self._forms.interval(a[rows], b[rows], v[rows]))))
        return out


def _limit(a: Floats, b: Floats) -> Floats:
    return np.where(a > 1, b / (a - 1), np.inf)


def span(c: Floats, length: Floats) -> Floats:
    """E(c) = ∫₀ᴸ e^(c·l) dl."""
    return np.where(c == 0, length, np.expm1(c * length) / np.where(c == 0, 1.0, c))


def log_span(b: Floats, t: Floats) -> Floats:
    """log(1 + t/b), also where t/b overflows."""
    z = t / b
    return np.where(np.isinf(z), np.log(t) - np.log(b), np.log1p(z))


def gauss(a: Floats, length: Floats, f: Callable[[Floats, Floats], Floats]) -> Floats:
    """∫₀¹ f(u·L, a·u·L) du, exact to rounding while both arguments stay below 2."""
    length, product = np.minimum(length, 2.0), np.minimum(a * length, 2.0)
    total = np.zeros_like(length)
    for u, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * f(u * length, u * product)
    return total


def _grown(a: Floats, length: Floats) -> Floats:
    """φ/exposure = a·∫₀ᴸ e^(−a·l)·(e^l − 1) dl."""
    small = a * length * gauss(a, length, lambda x, ax: np.exp(-ax) * np.expm1(x))
    # shape below 1 and a long interval
    slow = a * (span(1 - a, length) - span(-a, length))
    fast = span(1 - a, length) - -np.expm1(-length) * np.exp((1 - a) * length)
    return np.where((length < 2) & (a * length < 2), small, np.where(a <= 1, slow, fast))


def _value(a: Floats, b: Floats, t: Floats) -> Floats:
    length = log_span(b, t)
    # L² underflows before t·(a·t/b) does
    small = (1 + a) * length < 1e-17
    return np.where(np.isinf(t), _limit(a, b), np.where(small, t * (a * (t / b) / 2), b * _grown(a, length)))


def _slope(a: Floats, b: Floats, t: Floats) -> Floats:
    length = log_span(b, t)
    return a * -np.expm1(-length) * np.exp(-a * length)


def mean_stale(a: Floats, b: Floats, t: Floats) -> Floats:
    """1 − E(1−a)/z with z = t/b, that is (1/z)·∫₀ᴸ e^l·(1 − e^(−a·l)) dl."""
    length = log_span(b, t)
    # L/z and (1+z)/z, which have limits where z does not
    inverse = np.exp(-length) / -np.expm1(-length)
    per = np.where(length < 1e-17, 1.0, length * inverse)
    small = per * gauss(a, length, lambda x, ax: np.exp(x) * -np.expm1(-ax))
    slow = -np.expm1(-a * length) / -np.expm1(-length) - a * span(1 - a, length) * inverse
    fast = 1.0 - span(1 - a, length) * inverse
    out = np.where((length < 2) & (a * length < 2), small, np.where(a <= 1, slow, fast))
    return np.where(t == 0, 0.0, np.where(np.isinf(t), 1.0, out))


def _interval(a: Floats, b: Floats, v: Floats) -> Floats:
    """Newton's method on log L for the bent value Y(L), which is a·L²/2 first and about L in the end."""
    inside = (v > 0) & (v < _limit(a, b))
    # so short that only a·t²/(2·b) counts, though v/b may underflow
    tiny = (v / b) * np.maximum(a, 1 / a) < 1e-36
    short = np.sqrt(2 * v) * np.sqrt(b / a)
    usable = inside & ~tiny
    a, target = np.where(usable, a, 2.0), np.where(usable, v / b, 0.5)
    goal = _bent(a, np.minimum(target, np.nextafter(1 / np.maximum(a - 1, 1e-300), 0.0)))

    def step(length: Floats) -> Floats:
        miss, steepness = _miss(a, length, goal)
        return miss / steepness

    length, settled = newton(step, np.sqrt(2 * goal / a) + goal, close=1e-8, rounds=_STEPS)
    lost = np.flatnonzero(~settled)
    if len(lost):
        # very small shapes: Y rises so steeply in the middle that Newton's steps overshoot
        rest, aim = a[lost], goal[lost]
        start = np.log(np.sqrt(2 * aim / rest) + aim)
        found = root(lambda row, u: np.clip(_miss(rest[row], np.exp(u), aim[row])[0], -1e3, 1e3), start)
        length[lost] = np.exp(found)
    return np.where(inside, np.where(usable, b * np.expm1(length), short), np.where(v > 0, np.inf, 0.0))


def _bent(a: Floats, grown: Floats) -> Floats:
    """Y = −log(1 − (a−1)·φ/b)/(a−1), which straightens out both the limit (a > 1) and the growth (a < 1)."""
    c = np.where(a == 1, 1.0, a - 1)
    return np.where(a == 1, grown, -np.log1p(-c * grown) / c)


def _miss(a: Floats, length: Floats, goal: Floats) -> tuple[Floats, Floats]:
    """log(Y(L)/goal), and the slope of log Y in log L."""
    c, part = a - 1, -np.expm1(-length)
    grown = _grown(a, length)
    near_limit = c * grown > 0.5
    y = np.where(near_limit, length - np.log1p(c * part) / np.where(near_limit, c, 1.0), _bent(a, grown))
    return np.log(y / goal), length * a * part / (1 + c * part) / y


class BeliefFreshness(BeliefValue):
    """Value of a poll under freshness when all we know of the change rate is a Gamma(shape, exposure) belief.

    φ(t) = (b − (b+t)·s^a)/(a−1) − t·s^a, s = b/(b+t), a = shape, b = exposure: the mean of the Poisson value
    over the belief, equal to the value of Pareto gaps. As a and b grow together it becomes that of
    change_rate = a/b. The limit is b/(a−1) for a > 1 and infinite otherwise: a source we know little of may
    hardly ever change and is not abandoned, whereas one known to change fast can be.
    Both parameters above 0. Relative error below 1e-12 in fixed order, 1e-10 in the others, which
    cost some hundred times more. [003 eq. 49] for Pareto gaps.

    >>> BeliefFreshness([3.0], [2.0]).value(2.0)
    array([0.5])
    """

    _forms = BeliefForms(_value, _slope, mean_stale, _interval, _limit)
