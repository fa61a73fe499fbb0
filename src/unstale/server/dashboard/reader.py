"""The columns of all sources, kept recent while somebody looks at them.

Rule of this file: reading costs a twentieth of the time at most, and nobody waits for it but the first.
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
        self._next = self._took = 0.0
        self._edited = -1

    def now(self) -> SourceColumns | None:
        """What was read last, None if that is still to come; reading anew begins where it is time."""
        idle = self._reading is None or self._reading.done()
        if idle and time.monotonic() >= self._next:
            self._reading = asyncio.create_task(self._read())
        return self._columns

    async def ready(self, seconds: float) -> SourceColumns | None:
        """The same, after waiting so long at most for the first reading, or for the one after an edit."""
        edited = (await asyncio.to_thread(self._service.store.counters)).get("edited", 0)
        if edited != self._edited and self._took < seconds:
            # What somebody has just changed is what he looks for.
            self._edited, self._next = edited, 0.0
            self.now()
            if self._reading is not None:
                await asyncio.wait({self._reading}, timeout=seconds)
        found = self.now()
        if found is None and self._reading is not None:
            await asyncio.wait({self._reading}, timeout=seconds)
            if self._reading.done():
                self._reading.result()
        return self._columns

    async def _read(self) -> None:
        begun = time.monotonic()
        try:
            self._columns = await asyncio.to_thread(self._service.columns, self._columns)
        finally:
            now = time.monotonic()
            self._took = now - begun
            self._next = now + max(LEAST, PAUSE * self._took)
