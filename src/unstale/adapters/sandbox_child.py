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
#: characters of a reason
WORDS = 500
#: bytes of memory beyond those that it began with, from which on a process does no further job
FAT = 32 * 2**20
#: bytes that a process has to begin with, where the system does not tell
_BEGUN = 64 * 2**20


def main() -> None:
    """Do jobs until there are none."""
    _limit(int(sys.argv[1]))
    fat = _resident() + FAT
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # What a parser prints must not look like an answer.
    os.dup2(2, 1)
    answers.write(READY)
    answers.flush()
    while True:
        try:
            work, args, seconds = _job(jobs)
        except EOFError:
            return
        done = _done(work, args, seconds)
        del args
        last = _resident() > fat
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
        return {"failed": type(error).__name__, "why": _why(error)}
    finally:
        _arm(0.0)


def _why(error: Exception) -> str:
    """What a reader of ours says of bytes that are none of its own; of any other fault only its name is told."""
    from unstale.errors import InputError

    return str(error)[:WORDS] if isinstance(error, InputError) else ""


def _job(file: BinaryIO) -> Any:
    """The next job: how many large arguments it has, the rest of it, and these."""
    (count,) = LENGTH.unpack(_exactly(file, LENGTH.size))
    rest, *beside = (_exactly(file, LENGTH.unpack(_exactly(file, LENGTH.size))[0]) for _ in range(count + 1))
    return pickle.loads(rest, buffers=beside)  # written by our own parent


def _exactly(file: BinaryIO, count: int) -> bytes:
    """So many bytes; EOFError if there are no more."""
    found = file.read(count)
    if len(found) < count:
        raise EOFError
    return found


def _arm(seconds: float) -> None:
    """Be ended after so much CPU time, whatever is being done then, also in C; 0 disarms."""
    try:
        from signal import ITIMER_PROF, setitimer
    except ImportError:  # Not on Windows: there the parent's patience is all.
        return
    setitimer(ITIMER_PROF, seconds)


def _limit(memory: int) -> None:
    """So many bytes of memory beside those that it has; what is begun by a parser is not written to any file."""
    try:
        import resource
    except ImportError:
        return
    taken = _told("VmData") or _BEGUN
    resource.setrlimit(resource.RLIMIT_DATA, (taken + memory, taken + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _resident() -> int:
    """Bytes of memory in use; what a process used at most is told wrongly of one that was begotten by a larger one."""
    return _told("RssAnon")


def _told(name: str) -> int:
    """What the system says of this process in bytes, 0 if it says nothing."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
    except (OSError, ValueError, StopIteration):
        return 0


if __name__ == "__main__":
    main()
