"""Telling of changes by running a command for each."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from unstale.adapters.event_text import event_text
from unstale.errors import require
from unstale.ports import Event

#: seconds that one run may take
SECONDS = 60.0


class CommandSink:
    """Runs `argv`, without a shell, once per event: the event as JSON on its input, its fields in the environment.

    Exit 0 is taken. After `seconds` it is killed with everything it started. What it prints is dropped, its error
    output is ours.
    """

    #: one at a time: programs that people write for this need not expect another run of themselves
    batch, width = 1, 1

    def __init__(self, argv: Sequence[str], *, seconds: float = SECONDS) -> None:
        fine = argv and all(isinstance(word, str) and "\0" not in word for word in argv)
        require(
            fine,
            "command",
            f"of {len(argv)} words",
            "must be a program and its arguments",
            "write them as a list of texts",
        )
        self._argv, self._seconds = tuple(argv), seconds
        # Arguments may hold secrets, so the name shows none.
        mark = sha256("\0".join(argv).encode()).hexdigest()[:8]
        self.name = f"command {Path(argv[0]).name} {mark}"

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """Run for each in turn, up to the first that fails; how many were taken, and why not the next."""
        for taken, event in enumerate(events):
            if reason := await self._run(event):
                return taken, f"{self._argv[0]}: {reason}"
        return len(events), ""

    async def close(self) -> None:
        """Nothing to give back."""

    async def _run(self, event: Event) -> str:
        told = {
            "UNSTALE_EVENT": str(event.number),
            "UNSTALE_SOURCE": str(event.source),
            "UNSTALE_ADDRESS": event.address,
            "UNSTALE_VERSION": str(event.version),
            "UNSTALE_AT": repr(event.at),
            "UNSTALE_DIGEST": event.digest.hex(),
        }
        try:
            process = await _begin(self._argv, os.environ | told)
        except OSError as error:
            return f"it could not be run, {error.strerror}"
        try:
            async with asyncio.timeout(self._seconds):
                await process.communicate(event_text(event))
        except TimeoutError:
            return f"it took more than {self._seconds:g} s"
        finally:
            await _end(process)
        code = process.returncode
        if not code:
            return ""
        return f"it exited with {code}" if code > 0 else f"it was ended by {signal.Signals(-code).name}"


async def _begin(argv: Sequence[str], environment: Mapping[str, str]) -> Process:
    """Start it in a group of its own. Who is stopped meanwhile still gets hold of it, and ends it with its group."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=DEVNULL, env=environment, start_new_session=True)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _end(await starting)
        raise


async def _end(process: Process) -> None:
    """Kill a process that still runs, and its group with it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
