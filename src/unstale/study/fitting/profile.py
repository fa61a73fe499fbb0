"""When sources are awake: changes by hour and weekday, and whether the hours differ by more than chance.

Times are seconds since the epoch; `utc_offset` is in hours, so that the hours are those on the wall there.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.trace import Trace
from unstale.frozen import dataclass

HOUR, DAY = 3_600.0, 86_400.0
#: 1970-01-01 was a Thursday; weekdays count from Monday
_EPOCH_HOURS = 3 * 24


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Changes per day by weekday (rows, from Monday) and hour (columns); NaN for hours that never came.

    `strength` is the length of the mean of all times of day on the clock's circle: 0 flat, 1 one instant.
    """

    activity: Floats
    counts: Floats
    exposure: Floats
    strength: float

    @property
    def hours(self) -> Floats:
        """Changes per day in each hour of the day."""
        return _ratio(self.counts.sum(axis=0), self.exposure.sum(axis=0))

    @property
    def weekend(self) -> float:
        """The change rate of Saturday and Sunday over that of the other days; NaN if either never came."""
        days, time = self.counts.sum(axis=1), self.exposure.sum(axis=1)
        parts = slice(5, 7), slice(0, 5)
        ends, rest = _ratio(*(np.array([column[part].sum() for part in parts]) for column in (days, time)))
        return float(ends / rest) if rest > 0.0 else math.nan


def profile(trace: Trace, utc_offset: float = 0.0) -> Profile:
    """The changes of all sources together by weekday and hour, from the first of them to the last.

    >>> two = Trace.of(["a", "a"], [4 * 86_400.0, 18 * 86_400.0])  # Mondays, at midnight
    >>> float(profile(two).activity[0, 0]), round(profile(two, utc_offset=1).weekend, 6)
    (24.0, 0.0)
    """
    offset = number("utc_offset", utc_offset, least=-14, most=14, remedy="give hours ahead of UTC, for example 2")
    local = trace.times + offset * HOUR
    hour = np.floor(local / HOUR).astype(np.int64)
    counts = np.bincount((hour + _EPOCH_HOURS) % 168, minlength=168).astype(float)
    # how long each hour of the week was there to be changed in
    first, last = float(local.min()), float(local.max())
    weeks, rest = divmod(last - first, 7 * DAY)
    begins = np.arange(np.floor(first / HOUR), np.ceil((first + rest) / HOUR))
    inside = np.clip(np.minimum((begins + 1) * HOUR, first + rest) - np.maximum(begins * HOUR, first), 0.0, HOUR)
    part = np.bincount((begins.astype(np.int64) + _EPOCH_HOURS) % 168, inside, 168)
    exposure = np.asarray((weeks * HOUR + part) / DAY, dtype=np.float64)
    angle = np.exp(2j * np.pi * (local % DAY) / DAY)
    shape = (7, 24)
    activity = _ratio(counts, exposure).reshape(shape)
    return Profile(activity, counts.reshape(shape), exposure.reshape(shape), float(np.abs(angle.mean())))


def daily_rhythm(trace: Trace) -> tuple[Floats, Floats, Floats]:
    """Has each source a daily cycle? Strength on the clock's circle, Rayleigh's p, and a p that is fair to bursts.

    n changes at independent random hours have a mean of length `strength`, with `p = exp(−n·strength²)` nearly
    (the correction of Zar, good for small n). A burst puts many changes into one hour without there being a
    cycle; so the second p takes each day's changes as one vector, long if they agree, and asks whether days agree:
    `exp(−|Σ vectors|²/Σ |vector|²)`, the same as the first when no day has two changes.

    >>> noon = Trace.of(["a"] * 9, [86_400.0 * d + 43_200.0 for d in range(9)])
    >>> [round(float(x[0]), 6) for x in daily_rhythm(noon)]
    [1.0, 2e-06, 0.000123]
    """
    counts = trace.counts().astype(float)
    owner = np.repeat(np.arange(len(trace)), trace.counts())
    angle = np.exp(2j * np.pi * (trace.times % DAY) / DAY)
    day = np.floor(trace.times / DAY)
    new = np.ones(len(owner), dtype=bool)
    new[1:] = (np.diff(owner) > 0) | (np.diff(day) > 0)
    first = np.flatnonzero(new)
    vectors = np.add.reduceat(angle, first)
    total = np.bincount(owner, angle.real, len(trace)) + 1j * np.bincount(owner, angle.imag, len(trace))
    apart = np.bincount(owner[first], np.abs(vectors) ** 2, len(trace))
    length = np.minimum(np.abs(total), counts)
    # √(1 + 4n + 4(n² − R²)) − (1 + 2n), without the difference of two large numbers
    root = np.sqrt(1.0 + 4.0 * counts + 4.0 * (counts**2 - length**2))
    plain = np.exp(-4.0 * length**2 / (root + 1.0 + 2.0 * counts))
    with np.errstate(all="ignore"):
        fair = np.exp(-np.where(apart > 0, length**2 / apart, 0.0))
    return length / counts, plain, fair


def _ratio(over: Floats, under: Floats) -> Floats:
    empty = np.full(np.shape(over), np.nan)
    return np.asarray(np.divide(over, under, out=empty, where=np.asarray(under) > 0))
