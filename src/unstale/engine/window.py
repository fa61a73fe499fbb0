"""How many polls are under way at once: more while it is the network that is waited for, no more than keep the pace.

Rules of this file:
1. While few polls end from one turn to the next, twice as many may be under way; while very many do, half as many.
2. Where as many are under way as may be, half as many are tried now and then, and kept if polls end as fast: those
   beyond them only stood in queues, and took the connections of hosts that are to be polled next.
3. A trial under which polls end more slowly is over at once, and the next one comes later.
"""

from __future__ import annotations

import math

#: polls under way at once at first, and always while they end as fast as they begin: more only take connections
FEW = 64
#: what half as many must keep of the pace; half of it is lost where the network is waited for, nothing where we are
KEPT = 0.75
#: seconds over which a pace is measured at least; seconds between two trials that fail, doubled each time, at most
STRETCH, PAUSE, LONGEST = 0.25, 1.0, 300.0


class PollWindow:
    """How many may be under way, at most `most`; told at each turn how many have `ended` in all."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, min(FEW, most)
        #: how many had ended at the last turn; from which one on the pace is measured, and since when
        self._ended, self._first, self._since = 0, 0, math.nan
        #: the pace before the trial that is on, 0 if none is; when the next one may be, and the pause if it fails
        self._before, self._next, self._pause = 0.0, -math.inf, PAUSE

    def turn(self, ended: int, now: float, *, full: bool) -> bool:
        """See how many may be under way from now on, `full` if others wait for them to end; whether it is more.

        >>> window = PollWindow(256)
        >>> [(window.turn(ended, 0.0, full=False), window.size) for ended in (10, 20, 2000)]
        [(True, 128), (True, 256), (False, 128)]
        """
        done, self._ended, before = ended - self._ended, ended, self.size
        if 2 * done < self.size:
            self.size = min(2 * self.size, self.most)
        elif done > 4 * self.size:
            self.size = min(max(self.size // 2, FEW), self.most)
        if self.size > before and self._before:
            self._failed(now)
        if self.size != before or not full:
            self._begin(ended)
        else:
            self._measure(ended, now)
        return self.size > before

    def _begin(self, ended: int) -> None:
        """Measure anew, once those have ended that are under way."""
        self._first, self._since, self._before = ended + self.size, math.nan, 0.0

    def _measure(self, ended: int, now: float) -> None:
        if ended < self._first:
            return
        if not now >= self._since:  # Only begun, or the clock was set.
            self._first, self._since = ended, now
            return
        if now - self._since < STRETCH or ended - self._first < 2 * self.size:
            return
        pace, before = (ended - self._first) / (now - self._since), self._before
        if before and pace < KEPT * before:
            self.size = min(2 * self.size, self.most)
            self._failed(now)
        elif self.size > FEW and not now < self._next <= now + LONGEST:
            self.size = max(self.size // 2, FEW)
            self._begin(ended)
            self._before = pace
            return
        self._begin(ended)

    def _failed(self, now: float) -> None:
        self._next, self._pause = now + self._pause, min(2.0 * self._pause, LONGEST)
