"""Poisson changes that follow the clock of a week: office hours, quiet nights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.processes.base import checked_rate
from unstale.errors import require

WEEK = 604_800.0


class WeeklyPoisson:
    """Poisson events whose intensity at time t is rate·profile[the slot of t in the week].

    The profile is any number of equal slots, such as 168 hours from time 0 on, and is scaled to mean 1, so
    that `rate` is the average number of events per unit of time. (Time 0 of the epoch is a Thursday in UTC.)

    It is no `Process`: its gaps depend on the hour at which they begin, so no law of gaps describes it. The
    law averaged over the week exists, but would hide the very thing this class is for: that polls can be
    timed. It answers what a simulated world asks: the intensity, its integral and inverse, event times.

    >>> office = WeeklyPoisson(2.0, [1.0, 3.0], week=10.0)
    >>> office.intensity([0.0, 5.0]), office.cumulative(7.5)
    (array([1., 3.]), 12.5)
    """

    def __init__(self, rate: float, profile: ArrayLike, week: float = WEEK) -> None:
        self.rate = checked_rate(rate)
        self.week = number("week", week, above=0, remedy="give the length of a week, 604800 in seconds")
        factors = np.atleast_1d(numbers("profile", profile, least=0, remedy="give one factor for each slot"))
        usable = factors.ndim == 1 and factors.size > 0 and factors.sum() > 0
        require(usable, "profile", factors.tolist(), "must have a factor above 0", "give 1 for an even week")
        #: relative intensity of each slot, mean 1
        self.profile = factors / factors.mean()
        self._slot = self.week / factors.size
        self._ends = np.append(0.0, np.cumsum(self.profile * (self.rate * self._slot)))
        self._ends[-1] = self.rate * self.week

    def intensity(self, t: ArrayLike) -> Floats | float:
        """Events per unit of time around time t."""
        _, slot, _ = self._place(numbers("t", t))
        return plain(self.rate * self.profile[slot])

    def cumulative(self, t: ArrayLike) -> Floats | float:
        """Expected number of events from time 0 to t, negative before 0."""
        weeks, slot, inside = self._place(numbers("t", t))
        return plain(weeks * self._ends[-1] + self._ends[slot] + self.rate * self.profile[slot] * inside)

    def inverse(self, events: ArrayLike) -> Floats | float:
        """The time by which `cumulative` has reached `events`; the end of a stretch without events."""
        target = numbers("events", events)
        weeks = np.floor(target / self._ends[-1])
        rest = np.clip(target - weeks * self._ends[-1], 0.0, self._ends[-1])
        last = int(np.flatnonzero(self.profile)[-1])
        slot = np.minimum(np.searchsorted(self._ends, rest, side="right") - 1, last)
        inside = np.clip((rest - self._ends[slot]) / (self.rate * self.profile[slot]), 0.0, self._slot)
        return plain(weeks * self.week + slot * self._slot + inside)

    def sample_times(self, rng: np.random.Generator, start: float, stop: float) -> Floats:
        """Event times in [start, stop), ascending.

        Exact by a change of clock: as many events as a Poisson count with the expected mean, uniform on the
        clock that `cumulative` shows, read back by `inverse`.
        """
        start, stop = number("start", start), number("stop", stop)
        require(start <= stop, "stop", stop, f"must not be before start {start}", "swap them")
        first, last = float(self.cumulative(start)), float(self.cumulative(stop))
        clock = first + (last - first) * np.sort(rng.random(rng.poisson(last - first)))
        return np.asarray(np.clip(self.inverse(clock), start, stop))

    def __repr__(self) -> str:
        return f"WeeklyPoisson(rate={self.rate!r}, profile={self.profile.tolist()!r}, week={self.week!r})"

    def _place(self, t: Floats) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.intp]], Floats]:
        """Whole weeks before t, its slot, and the time since that slot began."""
        weeks = np.floor(t / self.week)
        rest = np.clip(t - weeks * self.week, 0.0, self.week)
        slot = np.minimum(rest / self._slot, self.profile.size - 1).astype(np.intp)
        return weeks, slot, rest - slot * self._slot
