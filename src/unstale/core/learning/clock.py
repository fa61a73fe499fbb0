"""The fleet's week: hours and days in which sources change more, and a clock that runs faster then.

The profile is hour of the day times day of the week, 31 numbers, learned from polls alone: a poll that found a
change spreads the changes expected in its interval over the hours it covers, in proportion to the present
profile (one step of expectation and maximisation), against the time each hour was watched.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import pasted

HOUR = 3600.0
HOURS, DAYS = 24, 7
WEEK = HOURS * DAYS
#: in hours: the epoch began on a Thursday, weeks are counted from there
LONGEST_LESSON = 14.0 * HOURS
#: expected changes by which each of the 31 numbers is drawn to 1
_CAUTION = 10.0


class WeekClock(NamedTuple):
    """Intensity of each hour of the week (mean 1), the sum before each hour, and whether the clock is in use."""

    intensity: Floats
    before: Floats
    trusted: bool


def even_clock() -> WeekClock:
    """A week in which all hours are alike."""
    return WeekClock(np.ones(WEEK), np.arange(WEEK + 1.0), False)


@pasted
def reading(clock: WeekClock, time: float) -> float:
    """The fleet's clock at a time, both in seconds: it gains in busy hours and loses in quiet ones."""
    hours = time / HOUR
    week = math.floor(hours / WEEK)
    rest = hours - week * WEEK
    hour = min(int(rest), WEEK - 1)
    gone: float = week * WEEK + clock.before[hour] + (rest - hour) * clock.intensity[hour]
    return gone * HOUR


@pasted
def attribute(tally: Floats, clock: WeekClock, start: float, end: float, rate: float, changed: bool) -> None:
    """Add one poll to the tally of changes (row 0) and of changes expected of an even week (row 1)."""
    first, last = start / HOUR, end / HOUR
    passed = (reading(clock, end) - reading(clock, start)) / HOUR
    likely = rate * HOUR * passed
    changes = 0.0
    if changed:
        changes = likely / -math.expm1(-likely) if likely > 1e-9 else 1.0
    x = first
    while x < last:
        following = min(math.floor(x) + 1.0, last)
        place = int(math.floor(x) % WEEK)
        hour, day = place % HOURS, HOURS + place // HOURS
        watched = rate * HOUR * (following - x)
        tally[1, hour] += watched
        tally[1, day] += watched
        if changed:
            share = changes * clock.intensity[place] * (following - x) / passed
            tally[0, hour] += share
            tally[0, day] += share
        x = following


def learned_clock(tally: Floats, trusted: bool) -> WeekClock:
    """The clock that a tally teaches: smoothed over neighbouring hours, cautious where little was watched.

    >>> busy = np.ones((2, 31)) * 1000.0
    >>> busy[0, 12] = 3000.0
    >>> clock = learned_clock(busy, True)
    >>> [round(float(x), 2) for x in clock.intensity[10:15]]
    [0.92, 1.38, 1.84, 1.38, 0.92]
    """
    watched = tally[1] * (tally[0, :HOURS].sum() / max(float(tally[1, :HOURS].sum()), 1e-300))
    ratio = (tally[0] + _CAUTION) / (watched + _CAUTION)
    hours, days = ratio[:HOURS], ratio[HOURS:]
    hours = (np.roll(hours, 1) + 2.0 * hours + np.roll(hours, -1)) / 4.0
    intensity = (days[:, None] * hours[None, :]).ravel()
    intensity = intensity / intensity.mean()
    return WeekClock(intensity, np.concatenate([[0.0], np.cumsum(intensity)]), trusted)
