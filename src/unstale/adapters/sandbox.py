"""Where what strangers wrote is parsed: in processes beside the engine, which are ended when they take too long.

Rules of this file:
1. A job ends within its limits of CPU time, memory and waiting, or its process is killed and replaced; who asked hears
   why. Nothing that plans, records or shuts down waits for one.
2. A job gets a short time first. What needs more waits for the one process that has patience: those who are quick are
   not held up by those who are not, however many these are.
3. The processes inherit no secret: their environment is empty but for where Python finds its modules.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from unstale.adapters.sandbox_child import LENGTH, MEMORY, READY
from unstale.errors import InputError
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


class SandboxError(InputError):
    """A body could not be parsed within the limits; the text says which."""


class _TooLong(Exception):
    """The process was ended, for it took too long."""


@dataclass(slots=True, eq=False)
class _Child:
    process: asyncio.subprocess.Process

    async def ask(self, job: bytes) -> bytes:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(LENGTH.pack(len(job)) + job)
        await self.process.stdin.drain()
        (length,) = LENGTH.unpack(await self.process.stdout.readexactly(LENGTH.size))
        if length > LONGEST_ANSWER:
            raise _TooLong
        return await self.process.stdout.readexactly(length)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class _Lane:
    """Processes that all give a job the same CPU time, so many at once."""

    def __init__(self, seconds: float, processes: int) -> None:
        self.seconds, self.waiting = seconds, 0
        self._free = asyncio.Semaphore(processes)
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()

    async def do(self, job: bytes) -> dict[str, Any]:
        """The answer; _TooLong if there is none."""
        self.waiting += 1
        try:
            async with self._free:
                return await self._ask(job)
        finally:
            self.waiting -= 1

    async def _ask(self, job: bytes) -> dict[str, Any]:
        child = self._idle.pop() if self._idle else None
        while child is not None and child.process.returncode is not None:
            child = self._idle.pop() if self._idle else None
        child = child or await self._begin()
        answer: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(PATIENCE * self.seconds):
                answer = json.loads(await child.ask(job))
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
        self._quick, self._slow = _Lane(quick, count), _Lane(slow, 1)

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """What `work`, a function of a module, gives for these arguments; it must be plain JSON."""
        said = await self._answer(work, args)
        if "failed" in said:
            what = f"needs more than {MEMORY >> 20} MiB of memory" if said["failed"] == "memory" else "cannot be parsed"
            raise SandboxError(f"its body {what} ({said['failed']}): compare it whole, or drop less of it")
        result: T = said["answer"]
        return result

    async def _answer(self, work: Callable[..., object], args: tuple[object, ...]) -> dict[str, Any]:
        quick, slow = self._quick, self._slow
        with contextlib.suppress(_TooLong):
            return await quick.do(pickle.dumps((work, args, quick.seconds)))
        name = getattr(work, "__name__", "work")
        if slow.waiting >= WAITING:
            log("parser_ended", {"work": name, "seconds": quick.seconds})
            raise SandboxError(f"its body takes more than {quick.seconds:g} s to parse, and so do many others'")
        try:
            return await slow.do(pickle.dumps((work, args, slow.seconds)))
        except _TooLong as error:
            log("parser_ended", {"work": name, "seconds": slow.seconds}, error)
            reason = f"its body takes more than {slow.seconds:g} s to parse: compare it whole, or drop less of it"
            raise SandboxError(reason) from None

    async def close(self) -> None:
        """End all processes, whatever they do."""
        await self._quick.close()
        await self._slow.close()
