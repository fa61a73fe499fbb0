"""The system's clock: even between jumps, and following the wall clock when that is set, in either direction.

Rules of this file:
1. Between jumps time runs with the monotonic clock: durations are true, whatever a time server corrects.
2. A wall clock that was set by more than a second is followed at once, forward and back. Who keeps times in memory asks
   `jumped` and moves them along.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from unstale.logs import log
from unstale.ports import Clock

#: seconds by which the wall clock may be off before we follow it
_OFF = 1.0


class SystemClock:
    """Runs with the monotonic clock from the wall clock's time, and follows the wall clock when it is set.

    >>> wall, steady = [1000.0], [5.0]
    >>> clock = SystemClock(lambda: wall[0], lambda: steady[0])
    >>> wall[0] += 3600.0
    >>> clock.now(), clock.jumped()
    (4600.0, 3600.0)
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumped = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        here, wall = self._steady(), self._wall()
        off = wall - here - self._offset
        if abs(off) > _OFF:
            # It was set, or the machine slept.
            self._offset += off
            self._jumped += off
            log("clock_jumped", {"seconds": off, "at": wall})
        return here + self._offset

    def jumped(self) -> float:
        """Seconds by which the clock was set since the start, in all."""
        return self._jumped

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        await asyncio.sleep(seconds)


def jumps_of(clock: Clock) -> Callable[[], float]:
    """By how much a clock was set since the start; clocks of other makes never are."""
    return clock.jumped if isinstance(clock, SystemClock) else lambda: 0.0
