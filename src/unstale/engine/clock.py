"""Clocks: the system's own, and the one of a server that many machines share. Both are even between jumps.

Rules of this file:
1. Between jumps time runs with the monotonic clock: durations are true, whatever a time server corrects.
2. A wall clock that was set by more than a second is followed at once, forward and back. Who keeps times in memory asks
   `jumped` and moves them along.
3. Who shares a server's clock never looks at the machine's own wall clock: it may be set to anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from unstale.errors import StoreError
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


def _steady() -> float:
    """Seconds that passed, also while the machine slept, where the system tells."""
    number = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if number is None else time.clock_gettime(number)


class SharedClock:
    """The clock of a server, of which readings are heard now and then.

    A reading was made some time between question and answer: it moves the clock only as far as that says for certain.

    >>> here = [5.0]
    >>> clock = SharedClock(lambda: here[0])
    >>> clock.heard(asked=5.0, told=1000.0, answered=5.2)
    >>> clock.now(), clock.jumped()
    (999.9, 0.0)
    >>> clock.heard(asked=5.0, told=1000.0, answered=5.05)
    >>> round(clock.now(), 9)
    999.95
    >>> clock.heard(asked=5.0, told=4600.0, answered=5.0)
    >>> clock.now(), round(clock.jumped(), 9)
    (4600.0, 3600.05)
    """

    def __init__(self, steady: Callable[[], float] = _steady) -> None:
        self.steady = steady
        self._offset: float | None = None
        self._jumped = 0.0

    def heard(self, *, asked: float, told: float, answered: float) -> None:
        """What the server's clock said between two readings of `steady`."""
        least, most = told - answered, told - asked
        if self._offset is None:
            self._offset = 0.5 * (least + most)
            return
        offset = min(max(self._offset, least), most)
        if abs(off := offset - self._offset) > _OFF:
            self._jumped += off
            log("clock_jumped", {"seconds": off, "at": told})
        self._offset = offset

    def now(self) -> float:
        """Seconds since the epoch, as the server has it."""
        if self._offset is None:
            raise StoreError("the server was not asked for its time yet")
        return self.steady() + self._offset

    def jumped(self) -> float:
        """Seconds by which the server's clock was set since the start, in all."""
        return self._jumped

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        await asyncio.sleep(seconds)


def jumps_of(clock: Clock) -> Callable[[], float]:
    """By how much a clock was set since the start; clocks of other makes never are."""
    return clock.jumped if isinstance(clock, (SystemClock, SharedClock)) else lambda: 0.0
