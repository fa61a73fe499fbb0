"""One way to compile the scalar functions of learning: with numba where it is installed, as they are where not.

numba keeps what it compiled and looks at the file of a function alone, not at those it calls. So the sources of all of
them are part of the stamp: a change in one compiles all anew, also when a newer version is installed over an older one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar, cast

try:
    import numba
except ImportError:
    numba = None

F = TypeVar("F", bound=Callable[..., Any])

_TOGETHER = (
    "belief",
    "learning.gamma",
    "learning.mixture",
    "learning.bursts",
    "learning.clock",
    "learning.timing",
    "learning.columns",
)


def _stamp() -> int:
    total = 0
    for name in _TOGETHER:
        spec = find_spec(f"unstale.core.{name}")
        loader = cast(Any, spec.loader if spec else None)
        total = zlib.crc32(loader.get_data(spec.origin) if spec else b"", total)
    return total


_STAMP = 0 if numba is None else _stamp()


def compiled(function: F) -> F:
    """The function, compiled on its first call and kept for later runs; releases the interpreter's lock."""
    if numba is None:
        return function
    made = numba.njit(cache=True, nogil=True)(function)
    # Not a public name of numba's: where it is missing, the stamp is that of the function's own file.
    kept: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(kept, "_source_stamp"):
        kept._source_stamp = (kept._source_stamp, _STAMP)
    return cast(F, made)
