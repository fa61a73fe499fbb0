"""NumPy's functions of columns as the C library computes them: what a twin must use to be equal to machine code.

On some processors NumPy has faster ones of its own, which differ in the last digit now and then. So each is tried on
some thousand numbers when it is first needed: if one of them differs, numbers are computed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from unstale.core.checks import Floats

F = TypeVar("F", bound=Callable[..., Any])

_TRIED = 4096


@cache
def _by_numpy(name: str) -> bool:
    """Whether NumPy's function of this name is the C library's."""
    numbers = np.random.default_rng(7).exponential(3.0, _TRIED)
    numbers = np.concatenate([numbers, 1e-3 * numbers, 1e3 * numbers] if "log" in name else [-numbers, -1e-3 * numbers])
    return bool((getattr(np, name)(numbers) == _one_by_one(getattr(math, name), numbers)).all())


def _one_by_one(function: Callable[[float], float], numbers: Floats) -> Floats:
    flat = numbers.ravel().tolist()
    return np.fromiter(map(function, flat), np.float64, len(flat)).reshape(numbers.shape)


def _function(name: str) -> Callable[[Floats], Floats]:
    one, many = getattr(math, name), getattr(np, name)

    def of_column(numbers: Floats) -> Floats:
        if not _by_numpy(name):
            try:
                return _one_by_one(one, numbers)
            except (ValueError, OverflowError):
                pass  # infinite or no number: what NumPy says there, everybody says
        return cast(Floats, many(numbers))

    return of_column


exp, expm1, exp2 = _function("exp"), _function("expm1"), _function("exp2")
log, log1p, log2 = _function("log"), _function("log1p"), _function("log2")


def for_columns(formula: F) -> F:
    """A formula of NumPy's functions, for columns, with the C library's in their place."""
    return _with(formula, {"expm1": expm1, "log1p": log1p, "maximum": np.maximum, "minimum": np.minimum})


def for_numbers(formula: F) -> F:
    """The same for single numbers."""
    return _with(formula, {"expm1": math.expm1, "log1p": math.log1p, "maximum": max, "minimum": min})


def _with(formula: F, functions: dict[str, Any]) -> F:
    names = type("functions", (), {k: staticmethod(v) for k, v in functions.items()})
    function = cast(FunctionType, formula)
    return cast(F, FunctionType(function.__code__, {**function.__globals__, "np": names}, function.__name__))
