"""Memory that was freed goes back to the system: a large fleet is read and looked at in columns of many megabytes.

The C library keeps what it was given back for the next who asks, in pieces of whatever size; after a start of a million
sources that is as much again as a third of what is held. It is glibc's to be told; elsewhere nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

#: the option of `mallopt` that says from which size on memory is mapped by itself, and that size
_MAPPED, _LARGE = -3, 2**20
#: the one that says how many heaps threads share, and how many: each keeps what is spare for itself
_HEAPS, _SHARED = -8, 2


@cache
def _library() -> Any:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def keep_none_spare() -> None:
    """From now on what is large is given back when it is freed. Unasked, the C library does so less with every one."""
    if _library() is not None:
        _library().mallopt(_MAPPED, _LARGE)
        _library().mallopt(_HEAPS, _SHARED)


def give_back() -> None:
    """Give back what many small pieces have left."""
    if _library() is not None:
        _library().malloc_trim(0)
