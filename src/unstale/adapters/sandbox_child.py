"""The process in which what strangers wrote is parsed: it may be ended at any moment, and holds no secret.

Rules of this file:
1. It reads a job, does it within its limits and writes the answer; the end of its input is its own end.
2. An answer is JSON: whoever asked need not trust what a parser may have been made to do.
3. It imports nothing but what a job needs, for it is started anew after every job that went wrong.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

#: a job and its answer have their length before them
LENGTH = struct.Struct(">Q")
#: what it says when it is there
READY = b"ready\n"
#: bytes of address space a process may have, and bytes of memory beyond which it does no further job
MEMORY, FAT = 2**30, 192 * 2**20


def main() -> None:
    """Do jobs until there are none."""
    _limit()
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a parser prints must not look like an answer.
    os.dup2(2, 1)
    answers.write(READY)
    answers.flush()
    while (head := _exactly(jobs, LENGTH.size)) is not None:
        job = _exactly(jobs, LENGTH.unpack(head)[0])
        if job is None:
            return
        work, args, seconds = pickle.loads(job)  # written by our own parent
        done = _done(work, args, seconds)
        del job, args
        last = _resident() > FAT
        answer = json.dumps({**done, "last": last}).encode()
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()
        if last:
            return


def _done(work: Callable[..., Any], args: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    _arm(seconds)
    try:
        return {"answer": work(*args)}
    except MemoryError:
        return {"failed": "memory"}
    except Exception as error:
        return {"failed": type(error).__name__}
    finally:
        _arm(0.0)


def _exactly(file: BinaryIO, count: int) -> bytes | None:
    """So many bytes, or None if there are no more."""
    found = file.read(count)
    return found if len(found) == count else None


def _arm(seconds: float) -> None:
    """Be ended after so much CPU time, whatever is being done then, also in C; 0 disarms."""
    try:
        from signal import ITIMER_PROF, setitimer
    except ImportError:  # Not on Windows: there the parent's patience is all.
        return
    setitimer(ITIMER_PROF, seconds)


def _limit() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _resident() -> int:
    """Bytes of memory in use; what a process used at most is told wrongly of one that was begotten by a larger one."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


if __name__ == "__main__":
    main()
