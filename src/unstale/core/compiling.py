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
    "carousel",
    "evidence",
    "gamma2",
    "objectives",
    "penalties",
    "points_penalty",
    "kernels.numpy_pass",
    "kernels.numba_pass",
    "kernels.numba_near",
    "kernels.numba_hosts",
    "learning.gamma",
    "learning.harm",
    "learning.mixture",
    "learning.bursts",
    "learning.clock",
    "learning.timing",
    "learning.columns",
    "learning.due",
    "learning.kin_gains",
    "learning.learner",
    "learning.outlay",
    "learning.part_sketch",
    "learning.reach",
    "learning.urgency",
    "signals.scalars",
    "signals.columns",
    "signals.trust",
    "signals.aged",
    "signals.aged_look",
    "signals.choices",
    "signals.hearing",
    "signals.pushed",
)


@cache
def stamp() -> int:
    """A number that changes with the text of any of these files."""
    return text_stamp("unstale.core", TOGETHER)


@cache
def text_stamp(room: str, files: tuple[str, ...]) -> int:
    """A number that changes with the text of any of these files of a room."""
    # By the loader of the room, which may be an archive; nothing is imported for it.
    found: Any = find_spec(room)
    folder = found.origin.removesuffix("__init__.py")
    total = 0
    for name in files:
        total = zlib.crc32(found.loader.get_data(f"{folder}{name.replace('.', '/')}.py"), total)
    return total


def kept(function: F, made_of: int = 0, **options: Any) -> F:
    """The function, compiled by numba on its first call, and kept for later runs if there is a place.

    `made_of` is the stamp of files of another room that are compiled into it.
    """
    import numba

    try:
        made = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # A read-only installation, used by somebody without a home: it is compiled in every process.
        return cast(F, numba.njit(**options)(function))
    # Not a public name of numba's: where it is missing, the function's own file alone counts.
    file: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if hasattr(file, "_version"):
        file._version = f"{file._version} {stamp() + made_of}"
    return cast(F, made)


def was_kept(made: Any) -> bool:
    """Whether something of a function that `kept` gave is there from an earlier run of this version."""
    file: Any = getattr(getattr(made, "_cache", None), "_cache_file", None)
    try:
        return bool(file._load_index())
    except (AttributeError, OSError):
        return False
