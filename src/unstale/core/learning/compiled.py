"""One way to compile the scalar functions of learning: with numba where it is installed, as they are where not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from unstale.core.compiling import kept

F = TypeVar("F", bound=Callable[..., Any])

_NUMBA = find_spec("numba") is not None


def compiled(function: F) -> F:
    """The function, compiled on its first call and kept for later runs; releases the interpreter's lock."""
    return kept(function, nogil=True) if _NUMBA else function
