"""One way to compile the scalar functions of learning: with numba where it is installed, as they are where not.

numba's cache looks at the file of a function alone, not at those it calls: whoever changes a compiled function also
touches the files that call it (`make clean` drops the caches).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError:
    numba = None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """The function, compiled on its first call and kept for later runs; releases the interpreter's lock."""
    return function if numba is None else cast(F, numba.njit(cache=True, nogil=True)(function))
