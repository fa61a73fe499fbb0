"""The system's clock, kept from going back while the engine runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

#: seconds by which the wall clock may be ahead before we follow it
_AHEAD = 1.0


class SystemClock:
    """Runs with the monotonic clock from the wall clock's time at the start, and follows the wall clock forward.

    A wall clock that is set back is followed at the next start: until then time goes on from where it was.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """Seconds since the epoch."""
        here, wall = self._steady(), self._wall()
        if wall - here > self._offset + _AHEAD:
            # Set forward, or the machine slept.
            self._offset = wall - here
        return here + self._offset

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        await asyncio.sleep(seconds)
