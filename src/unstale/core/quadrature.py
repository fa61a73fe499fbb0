"""One integral for all: adaptive, over many integrals at once, with a bound that is kept or an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core import special
from unstale.core.checks import Floats, numbers, plain
from unstale.errors import ConvergenceError, InputError, require, sentence

# Gauss-Kronrod pair (10, 21) on [−1, 1], from the outside in: nodes, Kronrod and Gauss weights [QUADPACK].
_X = (
    0.9956571630258081,
    0.9739065285171717,
    0.9301574913557082,
    0.8650633666889845,
    0.7808177265864169,
    0.6794095682990244,
    0.5627571346686047,
    0.4333953941292472,
    0.2943928627014602,
    0.14887433898163122,
)
_K = (
    0.011694638867371874,
    0.032558162307964725,
    0.054755896574351995,
    0.07503967481091996,
    0.0931254545836976,
    0.10938715880229764,
    0.12349197626206584,
    0.13470921731147334,
    0.14277593857706009,
    0.14773910490133849,
)
_G = (0.06667134430868814, 0.1494513491505806, 0.21908636251598204, 0.26926671930999635, 0.29552422471475287)
_NODES = np.array([-x for x in _X] + [0.0] + list(reversed(_X)))
_KRONROD = np.array([*_K, 0.1494455540029169, *reversed(_K)])
_GAUSS = np.zeros(21)
_GAUSS[1:10:2], _GAUSS[11:20:2] = _G, _G[::-1]

# In t: a finite piece is seen from 1e-275 of its length on, an infinite one from 1e-137 to 1e137 scales.
_GRID = np.array([-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0])
# From here to one more: a piece that is not stretched. A power of two, so that halvings are exact.
_STRAIGHT, _LONG = 8.0, 8.0
# Halvings, panels for one integral and on average for many, and the error that rounding leaves in any sum.
_ROUNDS, _PANELS, _EACH, _NOISE = 60, 4096, 64, 1e-14


def integrate(
    f: Callable[..., Floats],
    points: Sequence[ArrayLike],
    *,
    args: Sequence[ArrayLike] = (),
    scale: float = 1.0,
    rtol: float = 1e-10,
    smooth: bool = False,
) -> tuple[Floats | float, Floats | float]:
    """∫ f(x, *args) dx from the first point to the last, and a bound of its error, for many limits at once.

    `points` are the limits and, between them, every place where f jumps or bends, ascending; the last may be
    inf. Points and `args` broadcast; f gets arrays of one shape and works elementwise. `scale` is the
    time in which f varies beyond the last finite point; thirty orders of magnitude off is still found. A
    spike between the nodes, where f is 0 at all of them, is not: give its place as a point.

    Each piece is stretched by a double exponential (tanh-sinh; exp-sinh if infinite), which cures ends:
    singularities, steep starts, heavy tails. Then Gauss-Kronrod panels are halved until the bound
    Σ|K21 − G10| (sharpened as in QUADPACK) is below rtol·|integral|. scipy's tanhsinh was measured first: it
    returned 8e-10 for a promised 1e-10 on e^(−x) over [0, 1000], and needs f analytic within each piece.
    Where f is `smooth` up to each inner point from both sides, the pieces between them are taken as they are: one panel
    instead of six. A ConvergenceError carries the estimate and the bound that was reached.

    >>> value, error = integrate(lambda x, rate: np.exp(-rate * x), [0.0, np.inf], args=[[1.0, 4.0]])
    >>> value.round(9).tolist()
    [1.0, 0.25]
    """
    limits, arguments, shape = _checked(points, args)
    owner, a, b, low, high = _pieces(limits, smooth)
    count = limits.shape[1]
    # As many panels as patience has: a few thousand, or some for each integral and each of its pieces.
    most = max(_PANELS, _EACH * count, 4 * len(owner))
    total, size, bound = np.zeros(count), np.zeros(count), _beyond(f, arguments, limits, scale)
    for _ in range(_ROUNDS):
        values, sizes, errors = _panels(f, arguments, owner, a, b, low, high, scale)
        whole, all_size, all_bound = (
            kept + np.bincount(owner, new, count) for kept, new in ((total, values), (size, sizes), (bound, errors))
        )
        allowed = np.maximum(rtol * np.abs(whole), _NOISE * all_size)
        # A panel may err by its share, in size, of what is allowed, and never less than by 1/256 of it: the
        # rounding of f where it is small would be halved for ever. The others are halved.
        with np.errstate(all="ignore"):
            share = allowed[owner] * np.fmax(sizes / all_size[owner], 1 / 256) / 2
        short = (all_bound > allowed)[owner] & (errors > share)
        if not np.any(short) or np.count_nonzero(short) > most:
            break
        for kept, new in ((total, values), (size, sizes), (bound, errors)):
            kept += np.bincount(owner[~short], new[~short], count)
        middle = (low[short] + high[short]) / 2
        low, high = np.concatenate([low[short], middle]), np.concatenate([middle, high[short]])
        owner, a, b = (np.concatenate([each[short], each[short]]) for each in (owner, a, b))
    value, error = plain(whole.reshape(shape)), plain(all_bound.reshape(shape))
    # NaN must fail too: a comparison the other way round would let it pass.
    if not np.all(all_bound <= allowed):
        worst = float(np.max(np.where(np.isnan(all_bound), np.inf, all_bound)))
        rule = f"is not enough, the error may be {worst:.3g}"
        remedy = "keep f finite, add the points where it jumps, or raise rtol"
        raise ConvergenceError(sentence("rtol", f"{rtol:g}", rule, remedy), value, error)
    return value, error


def _checked(points: Sequence[ArrayLike], args: Sequence[ArrayLike]) -> tuple[Floats, list[Floats], tuple[int, ...]]:
    """Limits as rows over all integrals, arguments flat, and the shape of the answer."""
    require(len(points) >= 2, "points", list(points), "must be two or more", "give the limits of the integral")
    rows = [numbers("points", p, infinite=True) for p in points]
    try:
        flat = np.broadcast_arrays(*rows, *(np.asarray(arg) for arg in args))
    except ValueError:
        shapes = [np.shape(each) for each in (*rows, *args)]
        rule, remedy = "must broadcast", "give points and args of one shape"
        raise InputError(sentence("shapes", shapes, rule, remedy)) from None
    limits = np.array([row.ravel() for row in flat[: len(rows)]])
    ascending = np.all(limits[1:] >= limits[:-1]) and np.all(np.isfinite(limits[:-1]))
    require(ascending, "points", "given", "must ascend and be finite but for the last", "sort and clip them")
    return limits, [arg.ravel() for arg in flat[len(rows) :]], flat[0].shape


def _pieces(limits: Floats, smooth: bool) -> tuple[NDArray[np.intp], Floats, Floats, Floats, Floats]:
    """The first panels: owner, the ends of the piece in x and of the panel in t; straight ones lie beyond _STRAIGHT."""
    row, owner = np.nonzero(limits[1:] > limits[:-1])
    a, b = limits[row, owner], limits[row + 1, owner]
    # What is long beside its distance from the start may fall by orders of magnitude.
    straight = smooth & (b - a <= _LONG * (a - limits[0, owner]))
    bent = np.flatnonzero(~straight)
    count = len(_GRID) - 1
    which = np.append(np.tile(bent, count), np.flatnonzero(straight))
    low, high = np.full(len(which), _STRAIGHT), np.full(len(which), _STRAIGHT + 1.0)
    low[: len(bent) * count] = np.repeat(_GRID[:-1], len(bent))
    high[: len(bent) * count] = np.repeat(_GRID[1:], len(bent))
    return owner[which], a[which], b[which], low, high


def _panels(
    f: Callable[..., Floats],
    arguments: list[Floats],
    owner: NDArray[np.intp],
    a: Floats,
    b: Floats,
    low: Floats,
    high: Floats,
    scale: float,
) -> tuple[Floats, Floats, Floats]:
    """Integral, integral of |f|, and error bound of each panel."""
    half = (high - low)[:, None] / 2
    t = (low + high)[:, None] / 2 + half * _NODES
    bent, length = np.pi * np.sinh(np.minimum(t, _GRID[-1])), (b - a)[:, None]
    straight = (low >= _STRAIGHT)[:, None]
    with np.errstate(all="ignore"):
        ahead = np.where(np.isfinite(length), length * special.expit(bent), scale * np.exp(bent / 2))
        slope = ahead * np.where(np.isfinite(length), special.expit(-bent), 0.5) * np.pi * np.cosh(t) * half
        if np.any(straight):
            ahead = np.where(straight, length * (t - _STRAIGHT), ahead)
            slope = np.where(straight, length * half, slope)
        x = a[:, None] + ahead
        terms = np.asarray(f(x, *(np.broadcast_to(arg[owner][:, None], x.shape) for arg in arguments))) * slope
        value, size = terms @ _KRONROD, np.abs(terms) @ _KRONROD
        # QUADPACK's bound: |K − G| is the error of G; that of K is smaller the smoother f is in the panel.
        gap = np.abs(terms @ (_KRONROD - _GAUSS))
        roughness = np.abs(terms - (value / 2)[:, None]) @ _KRONROD
        error = np.where(roughness > 0, roughness * np.minimum(1.0, (200 * gap / roughness) ** 1.5), gap)
    return value, size, np.where(np.isfinite(value), error, np.inf)


def _beyond(f: Callable[..., Floats], arguments: list[Floats], limits: Floats, scale: float) -> Floats:
    """What lies outside the nodes, going on with the power of x found there: at the start of each piece, and
    beyond the last node of an infinite one."""
    length = np.diff(limits, axis=0)
    reach = np.pi * np.sinh(_GRID[-1])
    with np.errstate(all="ignore"):
        near = np.where(np.isinf(length), scale * np.exp(-reach / 2), length * np.exp(-reach))
        rest = _continued(f, arguments, limits[:-1], near, 2.0).sum(axis=0)
        far = np.full(limits[-1].shape, scale * np.exp(reach / 2))
        tail = _continued(f, arguments, limits[-2], far, 0.5)
        return np.asarray(rest + np.where(np.isinf(limits[-1]), tail, 0.0))


def _continued(f: Callable[..., Floats], arguments: list[Floats], a: Floats, step: Floats, factor: float) -> Floats:
    """∫ of the power law through f at a + step and a + factor·step, on the far side of the former."""
    here, inside = (
        np.abs(np.asarray(f(a + y, *(np.broadcast_to(arg, y.shape) for arg in arguments))) * y)
        for y in (step, step * factor)
    )
    # Where the power law diverges, a thousand times the last term: a real divergence exceeds every tolerance
    # even so, and the last bits of numbers near the smallest double, which look like one, do not.
    growth = np.maximum(np.log2(inside / here), 1e-3)
    return np.where(here > 0, here / np.where(np.isnan(growth), 1e-3, growth), 0.0)
