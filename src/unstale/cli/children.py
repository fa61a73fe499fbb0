"""Processes that we began, and how they end."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from contextlib import suppress


async def ended_within(process: Process, seconds: float) -> None:
    """Wait until a process has ended by itself, and end it if it takes longer.

    It may have ended and still be waited for, while somebody it began holds its output open: then there is nobody to
    be killed.
    """
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
