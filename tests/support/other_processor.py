"""NumPy as on another processor: what passes a transcendental function ends one unit in the last place elsewhere.

NumPy has its own exp, log, sin and power for every instruction set (SSE, AVX2, AVX-512, NEON). All of them are right
to within a unit in the last place or so, and no two of them agree in every bit. A test, an example or a figure
that leans on the last bit passes here and fails there. `pytest -p support.other_processor` shows which ones do,
without the other processor: it moves about two thirds of the results by one unit, up or down. Which way depends on
the result alone, so that equal arguments give equal results, as on any real processor. What is exact everywhere
(whole numbers, powers of two, infinities) stays exact. Compiled kernels keep the processor's own functions:
`NUMBA_CPU_NAME` changes those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

#: every function of which NumPy keeps versions for several instruction sets
NAMES = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "power", "float_power", "cbrt"),
    *("sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh"),
)


def nudged(result: Any) -> Any:
    """The result as another processor might have it: a unit in the last place up, down, or the same."""
    if not isinstance(result, np.ndarray | np.floating) or result.dtype != np.float64:
        return result
    values = np.asarray(result)
    whole = np.isfinite(values) & (np.trunc(values) == values)
    exact = whole | (np.frexp(values)[0] == 0.5) | ~np.isfinite(values)
    # A bit mixer, so that neighbours go different ways.
    bits = np.atleast_1d(np.abs(values)).view(np.uint64).reshape(values.shape)
    way = (bits ^ (bits >> np.uint64(7)) ^ (bits >> np.uint64(23))) % np.uint64(3)
    moved = np.where(way == 0, np.nextafter(values, np.inf), np.where(way == 1, np.nextafter(values, -np.inf), values))
    moved = np.where(exact, values, moved)
    if isinstance(result, np.ndarray):
        # In place: the caller may have said where the result goes.
        result[...] = moved
        return result
    return np.float64(moved)


def elsewhere(here: np.ufunc) -> Callable[..., Any]:
    """The function as another processor has it; compiled code goes on with the one that is here."""

    @functools.wraps(here)
    def there(*arguments: Any, **options: Any) -> Any:
        return nudged(here(*arguments, **options))

    for name in ("reduce", "accumulate", "outer", "at", "nin", "nout", "nargs", "types"):
        setattr(there, name, getattr(here, name))
    try:
        from numba.extending import overload
    except ImportError:
        return there
    if here.nin == 1:
        overload(there)(lambda x: lambda x: here(x))
    else:
        overload(there)(lambda x, y: lambda x, y: here(x, y))
    return there


def pytest_configure() -> None:
    """Before the product is imported."""
    try:
        from numba.core.registry import cpu_target
    except ImportError:
        pass
    else:
        # numba looks its functions up by what NumPy names so when it begins: let it begin.
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    for name in NAMES:
        setattr(np, name, elsewhere(getattr(np, name)))
