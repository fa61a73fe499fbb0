"""Turning what a user passes into float64, or one clear sentence naming the element that breaks the rule."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.threads import by_threads
from unstale.errors import InputError, require, sentence

Floats = NDArray[np.float64]
#: budgets, weights, costs, rates and caps end here: products of three of them are still doubles
LARGEST = 1e100
#: columns from this length on are worth more than one thread to look through
LONG = 4_000_000
# more do not read faster from one memory, and where there are fewer processors they do no harm
_THREADS = 4
# how many numbers a thread takes at a time, and looks at twice
_SHARE, _BLOCK = 1 << 22, 1 << 16
T = TypeVar("T")


def number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    remedy: str = "",
) -> float:
    """`value` as a float within (above, most] or [least, most], never NaN, infinite only if allowed.

    >>> number("budget", 3, above=0)
    3.0
    """
    rule = _rule(above, least, most, infinite)
    remedy = remedy or f"give {name} as such a number"
    try:
        x = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(sentence(name, repr(value), rule, remedy)) from None
    # Python reads 1_000 and digits of every script; people who write them mean something else, or mistyped.
    require(not isinstance(value, str) or (value.isascii() and "_" not in value), name, repr(value), rule, remedy)
    require(_allowed(np.float64(x), above, least, most, infinite), name, x, rule, remedy)
    return x


def numbers(
    name: str,
    values: ArrayLike,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    remedy: str = "",
) -> Floats:
    """`values` as a float64 array that obeys the rule; the error names the first element that does not.

    >>> numbers("change_rate", [1, 2], least=0)
    array([1., 2.])
    """
    rule = _rule(above, least, most, infinite)
    remedy = remedy or f"give {name} as such numbers"
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(sentence(name, repr(values)[:60], rule, remedy)) from None
    # The extremes tell whether all is well, without a column of answers.
    if x.size and not np.all(_allowed(np.array(extremes(x)), above, least, most, infinite)):
        ok = _allowed(x, above, least, most, infinite)
        if x.ndim == 0:
            raise InputError(sentence(name, float(x), rule, remedy))
        where = np.unravel_index(int(np.argmin(ok)), x.shape)
        index = ", ".join(str(int(i)) for i in where)
        raise InputError(sentence(f"{name}[{index}]", float(x[where]), rule, remedy))
    return x


def extremes(x: Floats) -> tuple[float, float]:
    """The least and the greatest of some numbers, both NaN if one of them is; a long column is read only once.

    >>> extremes(np.array([2.0, 1.0, 3.0]))
    (1.0, 3.0)
    """
    if x.size < LONG or not x.flags.c_contiguous:
        return float(x.min()), float(x.max())
    flat = x.reshape(-1)

    def share(i: int) -> tuple[float, float]:
        part = flat[i * _SHARE : (i + 1) * _SHARE]
        # Block by block: the second look finds the numbers in the processor's cache.
        blocks = [part[at : at + _BLOCK] for at in range(0, part.size, _BLOCK)]
        least, greatest = zip(*((block.min(), block.max()) for block in blocks), strict=True)
        return np.min(least), np.max(greatest)

    least, greatest = zip(*by_threads(share, -(-flat.size // _SHARE), _THREADS), strict=True)
    return float(np.min(least)), float(np.max(greatest))


def plain(x: Floats) -> Floats | float:
    """A 0-d array as a Python float, anything else unchanged: scalars in, scalars out."""
    return float(x) if np.ndim(x) == 0 else x


def _allowed(
    x: Floats | np.float64, above: float | None, least: float | None, most: float | None, infinite: bool
) -> NDArray[np.bool_] | np.bool_:
    ok = ~np.isnan(x) if infinite else np.isfinite(x)
    if above is not None:
        ok = ok & (x > above)
    if least is not None:
        ok = ok & (x >= least)
    if most is not None:
        ok = ok & (x <= most)
    return ok


def _rule(above: float | None, least: float | None, most: float | None, infinite: bool) -> str:
    kind = "a number" if infinite else "a finite number"
    parts = []
    if above is not None:
        parts.append(f"above {above:g}")
    if least is not None and not math.isinf(least):
        parts.append(f"at least {least:g}")
    if most is not None and not math.isinf(most):
        parts.append(f"at most {most:g}")
    return f"must be {kind} {' and '.join(parts)}".rstrip()
