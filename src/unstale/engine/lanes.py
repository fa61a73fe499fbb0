"""Which untold events may be told now: those of one source one after another, sources side by side.

Rules of this file:
1. An event is handed out when every earlier one of its source was taken.
2. `covered` is the number up to which everything was taken: only that much may be recorded as told.
3. A source whose event was refused waits until `again`, and then behind the others: one that is never taken
   does not keep the rest of the window from being told.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from unstale.logs import log
from unstale.ports import Event

#: answers that take so many times as long as the fastest say that the receiver is busy enough
BUSY = 4.0


class Lanes:
    """A window of untold events, a lane for each source.

    >>> lanes = Lanes()
    >>> lanes.take_in([Event(n, source, "a", 1, 0.0, b"") for n, source in enumerate((7, 7, 8), 1)])
    >>> first, second = lanes.next(), lanes.next()
    >>> first.number, second.number, lanes.next()
    (1, 3, None)
    >>> lanes.taken(second)
    >>> lanes.covered
    0
    >>> lanes.taken(first)
    >>> lanes.covered, lanes.next().number
    (1, 2)
    """

    def __init__(self) -> None:
        self._lanes: dict[int, deque[Event]] = {}
        #: sources whose next event may go out, and those who were refused
        self._free: deque[int] = deque()
        self._refused: list[int] = []
        #: numbers that were not taken yet, rising
        self._left: dict[int, None] = {}
        self._newest = 0
        #: the number up to which it is recorded that everything was told
        self.recorded = 0

    def __len__(self) -> int:
        return len(self._left)

    @property
    def covered(self) -> int:
        """The number up to which everything was taken."""
        return next(iter(self._left)) - 1 if self._left else self._newest

    def take_in(self, events: Sequence[Event]) -> None:
        """Events in rising order; those that are here or were taken are not taken in again."""
        if events and not self._newest:
            self._newest = self.recorded = events[0].number - 1
        if events and events[0].number > self._newest + 1:
            # Numbers have no gaps but those that dropping made.
            log("untold_dropped", {"count": events[0].number - self._newest - 1})
        for event in events:
            if event.number > self._newest:
                self._newest = event.number
                self._left[event.number] = None
                lane = self._lanes.setdefault(event.source, deque())
                lane.append(event)
                if len(lane) == 1:
                    self._free.append(event.source)

    def next(self) -> Event | None:
        """One that may be told now, to be `taken` or `refused` after."""
        return self._lanes[self._free.popleft()][0] if self._free else None

    def taken(self, event: Event) -> None:
        """It was taken: the next one of its source may go out."""
        del self._left[event.number]
        lane = self._lanes[event.source]
        lane.popleft()
        if lane:
            self._free.append(event.source)
        else:
            del self._lanes[event.source]

    def refused(self, event: Event) -> None:
        """It was not taken."""
        self._refused.append(event.source)

    def again(self) -> None:
        """Those who were refused may be tried once more, after the others."""
        self._free.extend(self._refused)
        self._refused.clear()


class Width:
    """How many events are told at a time: one more while answers are quick, one less when they get slow, one after a
    failure.

    More at once than keep a receiver busy would only wait in its queue, and all be told again after a kill.

    >>> width = Width(64)
    >>> for seconds in (0.01, 0.01, 0.05):
    ...     width.answered(seconds)
    >>> width.now
    2
    """

    def __init__(self, most: int) -> None:
        self.now, self._most = 1, most
        self._fastest = math.inf

    def answered(self, seconds: float) -> None:
        """One was taken after so long."""
        self._fastest = min(self._fastest, seconds)
        self.now = min(self.now + 1, self._most) if seconds <= BUSY * self._fastest else max(self.now - 1, 1)

    def failed(self) -> None:
        """One was not taken."""
        self.now = 1
