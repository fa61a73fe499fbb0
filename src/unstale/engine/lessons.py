"""What polls taught of a fleet as a whole, beyond the sources' own beliefs: sums, so that many workers' add up."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import SharedTiming


def tallied(timing: SharedTiming) -> Floats:
    """The tallies of clock and bursts in one row."""
    return np.concatenate([timing.hours.ravel(), timing.silences.ravel(), timing.credit])


def teach(timing: SharedTiming, lesson: bytes) -> bool:
    """Add what other polls taught to the tallies; False if the bytes are no lesson.

    >>> from unstale.core.learning.learner import Learner
    >>> here, there = Learner(1, 60.0), Learner(1, 60.0)
    >>> here.observe([0], [60.0], [True])
    >>> teach(there.timing, tallied(here.timing).tobytes())
    True
    >>> bool((tallied(there.timing) == tallied(here.timing)).all())
    True
    """
    parts = (timing.hours, timing.silences, timing.credit)
    more = np.frombuffer(lesson) if len(lesson) % 8 == 0 else np.empty(0)
    if len(more) != sum(part.size for part in parts) or not np.isfinite(more).all():
        return False
    begin = 0
    for part in parts:
        part += more[begin : begin + part.size].reshape(part.shape)
        begin += part.size
    return True


class Untold:
    """What polls have taught here of a fleet as a whole since it was passed on last."""

    def __init__(self) -> None:
        self._passed_on: Floats | None = None
        self._unsent: Floats = np.zeros(1)

    def begin(self, timing: SharedTiming) -> None:
        """Go on with tallies that others made too."""
        self._passed_on = tallied(timing)

    def take(self, timing: SharedTiming) -> Floats | None:
        """What is to be passed on now; None if there is no state yet."""
        if self._passed_on is None:
            return None
        counters = tallied(timing)
        lesson: Floats = counters - self._passed_on + self._unsent
        self._passed_on, self._unsent = counters, np.zeros(1)
        return lesson

    def keep(self, lesson: Floats | None) -> None:
        """This could not be passed on yet."""
        if lesson is not None:
            self._unsent = self._unsent + lesson
