"""The columns of all sources, kept recent while somebody looks at them.

Rules of this file:
1. Reading costs a twentieth of the time at most, half of it while the fleet is edited.
2. Nobody waits for it but the first, and who has just edited something, where it is quick.
"""

from __future__ import annotations

import asyncio
import time

from unstale.service import FleetService
from unstale.service.columns import SourceColumns

#: seconds between two readings at least, and how much longer than a reading the pause is
LEAST, PAUSE = 5.0, 20.0


class Reader:
    """Keeps the columns recent while somebody looks at them."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._columns: SourceColumns | None = None
        self._reading: asyncio.Task[None] | None = None
        self._next = self._took = self._ended = 0.0

    def now(self) -> SourceColumns | None:
        """What was read last, None if that is still to come; reading anew begins where it is time."""
        idle = self._reading is None or self._reading.done()
        if idle and time.monotonic() >= self._next:
            self._reading = asyncio.create_task(self._read())
        return self._columns

    async def ready(self, seconds: float) -> SourceColumns | None:
        """The same, after waiting so long at most for the first reading, or for the one after an edit."""
        edited = (await asyncio.to_thread(self._service.store.counters)).get("edited", 0)
        end = time.monotonic() + seconds
        # What somebody has just changed is what he looks for: one reading more than is under way, which may have begun
        # before.
        for _ in range(2):
            if not self._holds(edited):
                quick = self._took < seconds
                self._next = 0.0 if quick else min(self._next, self._ended + self._took)
                self.now()
                await self._waited(end if quick else 0.0)
        if self.now() is None:
            await self._waited(end)
            if self._reading is not None and self._reading.done():
                self._reading.result()
        return self._columns

    def _holds(self, edited: int) -> bool:
        """Whether so many edits of the fleet are in what was read last."""
        return self._columns is not None and self._columns.names.edited >= edited

    async def _waited(self, end: float) -> None:
        """Wait for the reading that is under way, as long as there is time."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=max(end - time.monotonic(), 0.0))

    async def _read(self) -> None:
        begun = time.monotonic()
        try:
            self._columns = await asyncio.to_thread(self._service.columns, self._columns)
        finally:
            self._ended = time.monotonic()
            self._took = self._ended - begun
            self._next = self._ended + max(LEAST, PAUSE * self._took)
