"""How fast polls end: so many may be claimed ahead that they begin soon, and no more."""

from __future__ import annotations

#: seconds and polls after which it is counted anew how many end in a second: a few that end together are no pace
LATELY, ENOUGH = 0.25, 32


class Pace:
    """How many polls end in a second, by those that ended lately.

    >>> pace = Pace(now=0.0)
    >>> pace.of(100, now=0.5), pace.of(100, now=1.0), pace.of(140, now=2.5), pace.of(140, now=20.5)
    (200.0, 100.0, 56.0, 2.0)
    >>> slow = Pace(now=0.0)
    >>> [slow.of(4 * turn, now=40.0 * turn) for turn in (1, 2, 3)]
    [0.1, 0.1, 0.1]
    >>> few = Pace(now=0.0)  # that end together, but for three tenths of a second
    >>> [round(few.of(n, now=40.0 + 0.3 * n), 2) for n in (1, 2, 3, 4)]
    [0.02, 0.05, 0.07, 0.1]
    """

    def __init__(self, now: float) -> None:
        #: how many had ended, and when: the last time it was counted anew, and the time before
        self._last = self._before = 0, now

    def of(self, ended: int, now: float) -> float:
        """Polls per second, when so many have ended in all."""
        if now < self._last[1]:
            # The clock was set.
            self._last = self._before = ended, now
        first, since = self._before
        if ended - self._last[0] >= ENOUGH and now - self._last[1] >= LATELY:
            self._before, self._last = self._last, (ended, now)
        return (ended - first) / max(now - since, LATELY)
