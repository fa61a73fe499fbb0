"""Freshness and age of Poisson sources under the three orders of polling [000 Table 2], in closed form.

Everything is a function of r = change_rate/sync_rate, the changes per mean interval; `exp_mean` keeps it free
of cancellation from r = 1e-300 to 1e300. Columns of any length go through in blocks that stay in cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, numbers, plain
from unstale.core.exponential import exp_mean
from unstale.errors import require

Order = Literal["fixed", "random", "purely-random"]
#: elements per pass: temporaries stay in cache, and below the size for which memory is mapped anew each time
BLOCK = 8_192
_TINY = np.finfo(np.float64).tiny


def order_freshness(
    change_rate: ArrayLike, sync_rate: ArrayLike, order: Order = "fixed", sources: int | None = None
) -> Floats | float:
    """Share of time a copy of a Poisson source is fresh, by the order in which sources are polled.

    With r = change_rate/sync_rate: fixed `(1−e^(−r))/r`; random (each round a new permutation)
    `(1 − ((1−e^(−r))/r)²)/r`; purely-random `1/(1+r)`. Falls from 1 (r = 0) to 0 like 1/r; fixed order
    is best at every r. `sources` = N gives the exact value for N sources polled one per slot, of which
    [000 Table 2] is the limit N → ∞; for N = 1 all orders are fixed. A source that never changes is
    fresh even unpolled; rates both infinite are refused. Relative error below 1e-14.

    [000 Table 2], whose text says fixed order is 30 % fresher than purely-random at r = 1: it is 26.4 %.

    >>> round(order_freshness(1.0, 1.0), 12)
    0.632120558829
    """
    if order == "fixed" or sources is None:
        return _by_blocks(_FRESH[_known(order)], change_rate, sync_rate)
    n = _count(sources)
    return _by_blocks(lambda r: _finite_fresh(r, order, n), change_rate, sync_rate)


def order_staleness(change_rate: ArrayLike, sync_rate: ArrayLike, order: Order = "fixed") -> Floats | float:
    """1 − order_freshness, accurate relative to itself also when a copy is almost always fresh.

    With mₙ = exp_mean(n, r): fixed `r·m₂/2`; random `r·(m₂/4 + (1+m₁)·m₃/6)`; purely-random `r/(1+r)`.
    For rare changes it is r times 1/2, 7/12 and 1. [000 Table 2].

    >>> order_staleness(1e-12, 1.0)
    4.999999999998334e-13
    """
    return _by_blocks(_STALE[_known(order)], change_rate, sync_rate)


def order_age(
    change_rate: ArrayLike, sync_rate: ArrayLike, order: Order = "fixed", sources: int | None = None
) -> Floats | float:
    """Mean age of a copy of a Poisson source (0 while fresh), by the order in which sources are polled.

    With I = 1/sync_rate, r = change_rate·I: fixed `I·(1/2 − 1/r + (1−e^(−r))/r²)`; random
    `I·(7/12 − 1/r + (1−((1−e^(−r))/r)²)/r²)` ([000] prints the same as 1/3 + (1/2 − 1/r)² …);
    purely-random `I·r/(1+r)`. Rises with change_rate to I/2, 7·I/12 and I. A source never polled has age
    inf unless it never changes. `sources` as in order_freshness. Relative error below 1e-14.

    [000 Table 2]; the text's "one fourth of random-order" at r = 1 is against purely-random.

    >>> round(order_age(1.0, 1.0), 12)
    0.132120558829
    """
    kernel = _AGE[_known(order)]
    if order != "fixed" and sources is not None:
        n = _count(sources)
        kernel = lambda r: _finite_age(r, order, n)  # noqa: E731
    share = np.asarray(_by_blocks(kernel, change_rate, sync_rate))
    sync = np.asarray(sync_rate, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return plain(np.where(share == 0, 0.0, share / sync))


def _fresh_fixed(r: Floats) -> Floats:
    # expm1(x)/x at x = −r, kept off 0/0; r is this block's own
    x = np.negative(r, out=r)
    np.minimum(x, -_TINY, out=x)
    return np.divide(np.expm1(x), x, out=x)


def _stale_fixed(r: Floats) -> Floats:
    return _times(r, exp_mean(2, r), 2.0) / 2


def _age_fixed(r: Floats) -> Floats:
    return _times(r, exp_mean(3, r), 3.0) / 6


def _fresh_random(r: Floats) -> Floats:
    return exp_mean(2, r) * (1.0 + exp_mean(1, r)) / 2


def _stale_random(r: Floats) -> Floats:
    m1 = exp_mean(1, r)
    return _times(r, exp_mean(2, r), 2.0) / 4 + (1.0 + m1) * _times(r, exp_mean(3, r), 3.0) / 6


def _age_random(r: Floats) -> Floats:
    two, three, four = (_times(r, exp_mean(n, r), float(n)) for n in (2, 3, 4))
    return three / 12 + (1.0 + exp_mean(1, r)) * four / 24 + two / 12


def _fresh_purely_random(r: Floats) -> Floats:
    return 1.0 / (1.0 + r)


def _stale_purely_random(r: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(1.0 / (1.0 + 1.0 / r))


def _finite_fresh(r: Floats, order: Order, n: int) -> Floats:
    if order == "random":
        gap, weight = _lattice(n)
        return np.asarray(np.sum(weight * gap * exp_mean(1, r[..., None] * gap), axis=-1))
    # gaps are geometric numbers of slots; y = changes per slot
    y = r / n
    m1 = exp_mean(1, y)
    return m1 / (_times(r, m1, float(n)) + np.exp(-y))


def _finite_age(r: Floats, order: Order, n: int) -> Floats:
    if order == "random":
        gap, weight = _lattice(n)
        x = r[..., None] * gap
        return np.asarray(np.sum(weight * gap**2 * _times(x, exp_mean(3, x), 3.0), axis=-1) / 6)
    y = r / n
    m1 = exp_mean(1, y)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # P(k, y)/yᵏ, by series where the quotient would be 0/0
        second = np.where(y < 1e-3, (0.5 - y / 3 + y * y / 8 - y**3 / 30), special.gammainc(2.0, y) / y**2)
        third = np.where(y < 1e-3, (1 - 3 * y / 4 + 3 * y * y / 10 - y**3 / 12) / 6, special.gammainc(3.0, y) / y**3)
        rest = np.where(np.isinf(r), 0.0, r * (third / n - second) / n)
    steady = _times(r, m1, float(n))
    return ((1 - 0.5 / n) * steady + rest) / (steady + np.exp(-y))


def _lattice(n: int) -> tuple[Floats, Floats]:
    """Gaps between the places of a source in two independent permutations of n slots, and their odds."""
    k = np.arange(1 - n, n, dtype=np.float64)
    return 1.0 + k / n, (n - np.abs(k)) / n**2


def _times(r: Floats, mean: Floats, limit: float) -> Floats:
    """r·exp_mean(n, r), whose limit is n."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(r), limit, r * mean)


def _by_blocks(kernel: Callable[[Floats], Floats], change_rate: ArrayLike, sync_rate: ArrayLike) -> Floats | float:
    """kernel(change_rate/sync_rate) element by element; 0/0 counts as 0, inf/inf is refused."""
    change, sync = np.asarray(change_rate), np.asarray(sync_rate)
    if change.dtype != np.float64 or sync.dtype != np.float64:
        change = numbers("change_rate", change_rate, least=0, infinite=True)
        sync = numbers("sync_rate", sync_rate, least=0, infinite=True)
    try:
        shape = np.broadcast_shapes(change.shape, sync.shape)
    except ValueError:
        names, shapes = "change_rate and sync_rate of shapes", f"{change.shape} and {sync.shape}"
        require(False, names, shapes, "must fit each other", "give one each per source")
    flat = [
        x.reshape(-1) if x.shape == shape or x.ndim == 0 else np.broadcast_to(x, shape).reshape(-1)
        for x in (change, sync)
    ]
    out = np.empty(shape)
    view = out.reshape(-1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for start in range(0, view.size, BLOCK):
            c, s = (x if x.size == 1 and view.size != 1 else x[start : start + BLOCK] for x in flat)
            # a NaN makes min NaN, so one comparison finds every broken rule
            if not (c.min() >= 0 and s.min() >= 0 and not (c.max() == np.inf == s.max())):
                _refuse(c, s)
            # fmax takes 0/0, a source that neither changes nor is polled, to "no changes at all"
            r = np.divide(c, s)
            view[start : start + BLOCK] = kernel(np.fmax(r, 0.0, out=r))
    return plain(out)


def _refuse(change: Floats, sync: Floats) -> None:
    numbers("change_rate", change, least=0, infinite=True)
    numbers("sync_rate", sync, least=0, infinite=True)
    both = np.isinf(change) & np.isinf(sync)
    require(
        not both.any(),
        "change_rate and sync_rate",
        np.inf,
        "must not both be infinite",
        "only their ratio matters: give finite rates",
    )


def _known(order: Order) -> Order:
    rule = "must be 'fixed', 'random' or 'purely-random'"
    require(order in _FRESH, "order", repr(order), rule, "choose one of them")
    return order


def _count(sources: int) -> int:
    n = int(sources)
    rule = "must be a whole number of at least 1"
    require(n == sources and n >= 1, "sources", sources, rule, "leave it out for many")
    return n


_FRESH = {"fixed": _fresh_fixed, "random": _fresh_random, "purely-random": _fresh_purely_random}
_STALE = {"fixed": _stale_fixed, "random": _stale_random, "purely-random": _stale_purely_random}
_AGE = {"fixed": _age_fixed, "random": _age_random, "purely-random": _stale_purely_random}
