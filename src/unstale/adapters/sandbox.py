"""Where what strangers wrote is parsed: in processes beside the engine, which are ended when they take too long.

Rules of this file:
1. A job ends within its limits of CPU time, memory and waiting, or its process is killed and replaced; who asked hears
   why. Nothing that plans, records or shuts down waits for one.
2. A job gets a short time first. What needs more waits for the one process that has patience: those who are quick are
   not held up by those who are not, however many these are.
3. The processes inherit no secret: their environment is empty but for where Python finds its modules.
4. Large arguments are neither copied nor sent before their process is free; they are for the one with patience at once,
   which alone may have much memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from unstale.adapters.sandbox_child import LENGTH, READY, WORDS
from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.logs import log

T = TypeVar("T")
P = ParamSpec("P")

#: answers longer than this are none of ours
LONGEST_ANSWER = 16 * 2**20
#: seconds of waiting for a second of CPU time, for a machine may be busy, and for a process to start: what parses uses
#: CPU time, so that this ends only what does something else, or what runs where CPU time cannot be bounded
PATIENCE, START = 20.0, 20.0
#: jobs that may wait for the process with patience
WAITING = 16
#: bytes beyond which an argument is large, and how many are sent at a time
LARGE, PIECE = 2**20, 2**18
#: bytes of memory that a job may have beside what its process has: most of them, and the one with patience
LITTLE, MUCH = 48 * 2**20, 128 * 2**20


class SandboxError(InputError):
    """A body could not be parsed within the limits; the text says which."""


class _TooLong(Exception):
    """The process was ended, for it took too long."""


class _Large:
    """An argument that goes beside the rest of a job, as it is."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __reduce_ex__(self, protocol: Any) -> tuple[type[bytes], tuple[pickle.PickleBuffer]]:
        return bytes, (pickle.PickleBuffer(self._data),)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[..., object]
    args: tuple[object, ...]

    @property
    def large(self) -> bool:
        return any(isinstance(one, bytes) and len(one) > LARGE for one in self.args)

    def pieces(self, seconds: float) -> Iterator[bytes | memoryview]:
        """What is sent: the job without its large arguments, then these, each with its length before it."""
        beside: list[pickle.PickleBuffer] = []
        args = tuple(_Large(one) if isinstance(one, bytes) and len(one) > PIECE else one for one in self.args)
        rest = pickle.dumps((self.work, args, seconds), protocol=5, buffer_callback=beside.append)
        yield LENGTH.pack(len(beside)) + LENGTH.pack(len(rest)) + rest
        for one in beside:
            view = one.raw()
            yield LENGTH.pack(len(view))
            yield from (view[at : at + PIECE] for at in range(0, len(view), PIECE))


@dataclass(slots=True, eq=False)
class _Child:
    process: asyncio.subprocess.Process

    async def ask(self, job: _Job, seconds: float) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for piece in job.pieces(seconds):
            self.process.stdin.write(piece)
            await self.process.stdin.drain()
        (length,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
        if length > LONGEST_ANSWER:
            raise _TooLong
        return await self.process.stdout.readexactly(length)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class _Lane:
    """Processes that all give a job the same CPU time and memory, so many at once."""

    def __init__(self, seconds: float, processes: int, memory: int) -> None:
        self.seconds, self.memory, self.waiting = seconds, memory, 0
        self._free = asyncio.Semaphore(processes)
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    async def do(self, job: _Job) -> dict[str, Any]:
        """The answer; _TooLong if there is none."""
        self.waiting += 1
        try:
            async with self._free:
                return await self._ask(job)
        finally:
            self.waiting -= 1

    async def _ask(self, job: _Job) -> dict[str, Any]:
        child = self._idle.pop() if self._idle else None
        while child is not None and child.process.returncode is not None:
            child = self._idle.pop() if self._idle else None
        child = child or await self._begin()
        answer: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(PATIENCE * self.seconds):
                answer = json.loads(await child.ask(job, self.seconds))
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError, BrokenPipeError):
            raise _TooLong from None
        finally:
            # Also if whoever asked has gone: what it does then nobody knows.
            if answer is None or answer["last"]:
                child.end()
                await self._gone(child)
            else:
                self._idle.append(child)
        return answer

    async def _begin(self) -> _Child:
        paths = os.pathsep.join(path for path in sys.path if path)
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LANG") if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "unstale.adapters.sandbox_child",
            str(self.memory),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**kept, "PYTHONPATH": paths},
            start_new_session=True,
        )
        child = _Child(process)
        self._all = {one for one in self._all if one.process.returncode is None} | {child}
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START):
                await process.stdout.readexactly(len(READY))
        except (TimeoutError, asyncio.IncompleteReadError):
            child.end()
            raise SandboxError("a process that parses could not be started: try again later") from None
        except asyncio.CancelledError:
            child.end()
            raise
        return child

    async def _gone(self, child: _Child) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await child.process.wait()

    async def close(self) -> None:
        for child in self._all:
            child.end()
        for child in self._all:
            await self._gone(child)
        self._idle.clear()


class Sandbox:
    """Runs functions of strangers' bytes in other processes; keeps the contract `ports.Aside`.

    `quick` and `slow` are seconds of CPU time: what all may have, and what one at a time may have besides.
    """

    def __init__(self, *, quick: float = 0.5, slow: float = 5.0, processes: int | None = None) -> None:
        count = processes or max(2, min(os.cpu_count() or 2, 8))
        self._quick, self._slow = _Lane(quick, count, LITTLE), _Lane(slow, 1, MUCH)

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """What `work`, a function of a module, gives for these arguments; it must be plain JSON."""
        said = await self._answer(_Job(work, args))
        if why := "".join(c for c in str(said.get("why") or "")[:WORDS] if c.isprintable()):
            raise SandboxError(why)
        if "failed" in said:
            what = f"needs more than {MUCH >> 20} MiB of memory" if said["failed"] == "memory" else "cannot be parsed"
            raise SandboxError(f"its body {what} ({said['failed']}): compare it whole, or drop less of it")
        result: T = said["answer"]
        return result

    async def _answer(self, job: _Job) -> dict[str, Any]:
        quick, slow = self._quick, self._slow
        if not job.large:
            with contextlib.suppress(_TooLong):
                said = await quick.do(job)
                if said.get("failed") != "memory":
                    return said
        name = getattr(job.work, "__name__", "work")
        if slow.waiting >= WAITING:
            log("parser_ended", {"work": name, "seconds": quick.seconds})
            raise SandboxError(f"its body takes more than {quick.seconds:g} s to parse, and so do many others'")
        try:
            return await slow.do(job)
        except _TooLong as error:
            log("parser_ended", {"work": name, "seconds": slow.seconds}, error)
            reason = f"its body takes more than {slow.seconds:g} s to parse: compare it whole, or drop less of it"
            raise SandboxError(reason) from None

    async def close(self) -> None:
        """End all processes, whatever they do."""
        await self._quick.close()
        await self._slow.close()
