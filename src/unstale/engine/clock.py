"""Clocks: the system's own, and the one of a server that many machines share. Both are even between jumps.

Rules of this file:
1. Between jumps time runs with the monotonic clock: durations are true, whatever a time server corrects.
2. A wall clock that was set by more than a second is followed, forward and back, when whoever takes turns says so: all
   times that are kept in memory are moved in the same step, so that no time of one reckoning meets one of the other.
   What is under way then carries the reckoning it began in (`jumps_of`).
3. Who shares a server's clock never looks at the machine's own wall clock: it may be set to anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from unstale.errors import StoreError
from unstale.logs import log
from unstale.ports import Clock

#: seconds by which the wall clock may be off before we follow it, and between two readings of a server's clock
_OFF, READ = 1.0, 5.0


class SystemClock:
    """Runs with the monotonic clock from the wall clock's time, and goes with the wall clock when it is told to.

    >>> wall, steady = [1000.0], [5.0]
    >>> clock = SystemClock(lambda: wall[0], lambda: steady[0])
    >>> wall[0] += 3600.0
    >>> clock.now(), clock.follow(), clock.now(), clock.jumped()
    (1000.0, None, 4600.0, 3600.0)
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self._jumped = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._steady() + self._offset

    def follow(self) -> None:
        """Go with the wall clock, if it was set or the machine slept."""
        wall = self._wall()
        off = wall - self._steady() - self._offset
        if abs(off) > _OFF:
            self._offset += off
            self._jumped += off
            log("clock_jumped", {"seconds": off, "at": wall})

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
    >>> round(clock.now(), 9), clock.follow(), clock.now(), round(clock.jumped(), 9)
    (999.95, None, 4600.0, 3600.05)
    """

    def __init__(self, steady: Callable[[], float] = _steady) -> None:
        self.steady = steady
        self._offset: float | None = None
        self._jumped = self._set_by = 0.0

    def heard(self, *, asked: float, told: float, answered: float) -> None:
        """What the server's clock said between two readings of `steady`."""
        least, most = told - answered, told - asked
        if self._offset is None:
            self._offset = 0.5 * (least + most)
            return
        offset = min(max(self._offset, least), most)
        off = offset - self._offset
        self._set_by = off if abs(off) > _OFF else 0.0
        self._offset = offset - self._set_by

    def now(self) -> float:
        """Seconds since the epoch, as the server has it."""
        if self._offset is None:
            raise StoreError("the server was not asked for its time yet")
        return self.steady() + self._offset

    def follow(self) -> None:
        """Go with the server's clock, if it was set."""
        if self._set_by and self._offset is not None:
            self._offset += self._set_by
            self._jumped += self._set_by
            log("clock_jumped", {"seconds": self._set_by, "at": self.now()})
            self._set_by = 0.0

    def jumped(self) -> float:
        """Seconds by which the server's clock was set since the start, in all."""
        return self._jumped

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        await asyncio.sleep(seconds)


class StoreTime:
    """The time of a store's server for those who look at it now and then: asked `again` after some seconds.

    `asked` waits for the server, `again` does not, and may have no answer: then time runs on.

    >>> here, there = [5.0], [1000.0]
    >>> now = StoreTime(lambda: there[0], lambda: there[0], lambda: here[0])
    >>> there[0] = 4600.0
    >>> now(), here.append(here.pop() + 5.0), now()
    (1000.0, None, 4600.0)
    """

    def __init__(
        self, asked: Callable[[], float], again: Callable[[], float | None], steady: Callable[[], float] = _steady
    ) -> None:
        self._again, self._clock, self._next = again, SharedClock(steady), 0.0
        self._hear(asked)

    def __call__(self) -> float:
        """Seconds since the epoch, as the server has it."""
        if self._clock.steady() >= self._next:
            self._hear(self._again)
        return self._clock.now()

    def _hear(self, ask: Callable[[], float | None]) -> None:
        begun = self._clock.steady()
        told = ask()
        ended = self._clock.steady()
        self._next = ended + READ
        if told is not None:
            self._clock.heard(asked=begun, told=told, answered=ended)
            self._clock.follow()


class Jumps:
    """By how much a clock was set since this was last asked. Who `leads` takes turns: the clock is told to follow.

    >>> wall = [1000.0]
    >>> jumps = Jumps(SystemClock(lambda: wall[0], lambda: 0.0), leads=True)
    >>> wall[0] += 60.0
    >>> jumps.news(), jumps.news()
    (60.0, 0.0)
    """

    def __init__(self, clock: Clock, *, leads: bool = False) -> None:
        self._clock, self._leads, self._total = clock, leads, jumps_of(clock)
        self._heard = self._total()

    def news(self) -> float:
        """Seconds by which it was set, forward or back; 0 if it was not."""
        if self._leads and isinstance(self._clock, (SystemClock, SharedClock)):
            self._clock.follow()
        before, self._heard = self._heard, self._total()
        return self._heard - before


def jumps_of(clock: Clock) -> Callable[[], float]:
    """By how much a clock was set since the start; clocks of other makes never are."""
    return clock.jumped if isinstance(clock, (SystemClock, SharedClock)) else lambda: 0.0


async def rest(clock: Clock, stop: asyncio.Event, seconds: float) -> None:
    """Let so many seconds pass, or less if `stop` is set."""
    waits = {asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(stop.wait())}
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
