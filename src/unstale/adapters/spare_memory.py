"""Memory that was freed goes back to the system: a large fleet is read and looked at in columns of many megabytes.

The C library keeps what it was given back for the next who asks, in pieces of whatever size; after a start of a million
sources that is as much again as a third of what is held. It is glibc's to be told; elsewhere nothing is done.

The compiler is needed while machine code is read, and its own code fills 75 MB then, which stay where they are. They
are pages of a file that nobody has changed: who needs one again has it from the file, or from what the system has kept
of that.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: the option of `mallopt` that says from which size on memory is mapped by itself, and that size
_MAPPED, _LARGE = -3, 2**20
#: the one that says how many heaps threads share, and how many: each keeps what is spare for itself
_HEAPS, _SHARED = -8, 2
#: the file of the compiler, of which pages are let go of, and the advice that says so
COMPILER, _NOT_NEEDED = "libllvmlite", 4
#: so much more of files in memory is much: reading the code of a kernel needs a sixth of the compiler's, time and again
MUCH = 12 * 2**20
#: of a mapping: its addresses and whether it can be written to, and how many kilobytes of it are no longer the file's
_PLACE, _OWN = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r(.)"), re.compile(r"Anonymous: +(\d+)")


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


def give_back_compiler() -> None:
    """Give back what reading machine code has taken, once that is much: what it has left, and the compiler's pages."""
    # Where the system does not tell what lies where, nothing is done.
    with suppress(OSError):
        if _library() is None or _of_files() < _Given.least + MUCH:
            return
        for begin, size in _read_only(COMPILER):
            _library().madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size), _NOT_NEEDED)
        give_back()
        _Given.least = _of_files()


class _Given:
    """What was left in memory of pages of files when the compiler's were given back last."""

    least = 0


def _of_files() -> int:
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE


@cache
def _read_only(name: str) -> list[tuple[int, int]]:
    """Where, and in how many bytes, a library that is loaded lies as it is in its file: nothing of it would be lost."""
    found, mine = list[tuple[int, int]](), False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if place := _PLACE.match(line):
            begin, end, mine = int(place[1], 16), int(place[2], 16), place[3] == "-" and name in line
        elif mine and (own := _OWN.match(line)) and own[1] == "0":
            found.append((begin, end - begin))
    return found
