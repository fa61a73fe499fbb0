"""How fast polls end: so many may be claimed ahead that they begin soon, and no more."""

from __future__ import annotations

#: seconds after which it is counted again how many polls end in a second
LATELY = 0.25


class Pace:
    """How many polls end in a second, by those that ended lately.

    >>> pace = Pace(now=0.0)
    >>> pace.of(100, now=0.5), pace.of(100, now=0.6), pace.of(110, now=10.5)
    (200.0, 200.0, 1.0)
    """

    def __init__(self, now: float) -> None:
        self._ended, self._since, self._rate = 0, now, 0.0

    def of(self, ended: int, now: float) -> float:
        """Polls per second, when so many have ended in all."""
        passed = now - self._since
        if passed >= LATELY or passed < 0.0:
            self._rate = (ended - self._ended) / max(passed, LATELY)
            self._ended, self._since = ended, now
        return self._rate
