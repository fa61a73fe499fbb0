"""What was compiled is kept for later runs, where there is a place for it and as long as nothing in it has changed.

numba looks at the file of a function alone, not at those it calls or takes constants from. So the sources of all that
are compiled together are part of the version: a change in one compiles all anew, also when a newer one is installed
over an older one. Of another version nothing is read, for what it names may be gone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

#: what compiled functions are made of
TOGETHER = (
    "belief",
    "evidence",
    "gamma2",
    "objectives",
    "penalties",
    "phase",
    "points_penalty",
    "kernels.numpy_pass",
    "kernels.numba_pass",
    "learning.gamma",
    "learning.harm",
    "learning.mixture",
    "learning.bursts",
    "learning.clock",
    "learning.timing",
    "learning.columns",
    "learning.due",
    "learning.outlay",
    "signals.scalars",
    "signals.columns",
    "signals.trust",
    "signals.choices",
    "signals.hearing",
)


@cache
def stamp() -> int:
    """A number that changes with the text of any of these files."""
    # By the loader of the room, which may be an archive; nothing is imported for it.
    room: Any = find_spec("unstale.core")
    folder = room.origin.removesuffix("__init__.py")
    total = 0
    for name in TOGETHER:
        total = zlib.crc32(room.loader.get_data(f"{folder}{name.replace('.', '/')}.py"), total)
    return total


def kept(function: F, **options: Any) -> F:
    """The function, compiled by numba on its first call, and kept for later runs if there is a place."""
    import numba

    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # A read-only installation, used by somebody without a home: it is compiled in every process.
        return cast(F, numba.njit(**options)(function))
    # Not a public name of numba's: where it is missing, the function's own file alone counts.
    file: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(file, "_version"):
        file._version = f"{file._version} {stamp()}"
    return cast(F, made)
