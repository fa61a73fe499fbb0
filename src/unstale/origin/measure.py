"""How fresh copies truly were, from when their sources changed and when they were polled: exact, nothing sampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers
from unstale.core.trace import Trace
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class TrueFreshness:
    """Share of time that each copy equalled its source, and its mean age in seconds; weighted means of the fleet."""

    freshness: Floats
    age: Floats
    weight: Floats

    @property
    def fleet_freshness(self) -> float:
        """Weighted mean freshness."""
        return float(np.average(self.freshness, weights=self.weight))

    @property
    def fleet_age(self) -> float:
        """Weighted mean age."""
        return float(np.average(self.age, weights=self.weight))


def measured_freshness(
    changes: Trace, polls: Trace, start: float, end: float, weight: ArrayLike | None = None
) -> TrueFreshness:
    """How fresh the copies of `changes`' sources were from `start` to `end`, if `polls` brought what was there.

    `freshness = 1 − (stale time)/(end − start)`, `age = ∫ (time since the first change not copied) dt/(end − start)`:
    a poll at p makes the copy equal its source as it is at p, changes at p included, until the next change.
    Polls before `start` count for what they brought. A source without a copy is stale, and as old as the time
    since `start`. Sources are matched by name; those without polls may be left out of `polls`.
    Assumes that `changes` holds every change from the first poll on. [000 sect. 2.2].

    >>> changes, polls = Trace.of(["a", "a"], [3.0, 8.0]), Trace.of(["a", "a"], [1.0, 6.0])
    >>> kept = measured_freshness(changes, polls, 0.0, 10.0)
    >>> kept.freshness.tolist(), kept.age.tolist()
    ([0.4], [0.7])
    """
    start, end = number("start", start), number("end", end)
    require(start < end, "start", start, f"must be before the end, {end}", "swap the two")
    n = len(changes)
    weight = np.ones(n) if weight is None else numbers("weight", weight, least=0)
    require(
        weight.shape == (n,) and weight.sum() > 0,
        "weight",
        f"of shape {weight.shape}",
        f"must have one number for each of {n} sources, one above 0",
        "leave it out for equal ones",
    )
    source, polled = _rows(changes, polls)
    used = polled < end
    source, polled = source[used], polled[used]
    # Before its first poll a source has no copy, as if a change at the start had never been copied.
    owner, begin = np.concatenate([np.arange(n), source]), np.concatenate([np.full(n, -np.inf), polled])
    order = np.lexsort((begin, owner))
    owner, begin = owner[order], begin[order]
    last = np.append(owner[1:] != owner[:-1], True)
    until = np.where(last, end, np.append(begin[1:], end))
    missed = np.where(np.isinf(begin), start, _next_change(changes, owner, begin))
    low, high = np.maximum(missed, start), np.maximum(until, start)
    stale = low < high
    owner, missed, low, high = owner[stale], missed[stale], low[stale], high[stale]
    length = high - low
    lost = np.bincount(owner, length, n)
    aged = np.bincount(owner, length * ((low - missed) + (high - missed)) / 2.0, n)
    return TrueFreshness(1.0 - lost / (end - start), aged / (end - start), weight)


def steady_freshness(changes: Trace, interval: ArrayLike, start: float, end: float) -> Floats:
    """How fresh copies would have been from `start` to `end`, had each been polled every `interval` all along.

    `∫ min(s(t)/interval, 1) dt/(end − start)`, s the time since the last change: so likely the last poll came after it,
    if the first one came at any moment. The same changes as happened, averaged over all ways to begin. A source that
    is polled never, `interval` inf, has no copy; one that has not changed yet is fresh. [000 sect. 2.2].

    >>> changes = Trace.of(["a", "a"], [3.0, 8.0])
    >>> steady_freshness(changes, [2.0], 0.0, 10.0).tolist(), steady_freshness(changes, [np.inf], 0.0, 10.0).tolist()
    ([0.8], [0.0])
    """
    n, every = len(changes), np.broadcast_to(numbers("interval", interval, above=0, infinite=True), len(changes))
    owner = np.concatenate([np.arange(n), np.repeat(np.arange(n), changes.counts())])
    begin = np.concatenate([np.full(n, -np.inf), changes.times])
    order = np.lexsort((begin, owner))
    owner, begin = owner[order], begin[order]
    until = np.where(np.append(owner[1:] != owner[:-1], True), np.inf, np.append(begin[1:], np.inf))
    low, high = np.clip(begin, start, end), np.clip(until, start, end)
    known, wait = np.isfinite(begin), every[owner]
    since = np.where(known, begin, 0.0)

    def grown(t: Floats) -> Floats:
        x = t - since
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(x <= wait, x * x / (2.0 * wait), x - wait / 2.0))

    fresh = np.where(known, grown(high) - grown(low), (high - low) * np.isfinite(wait))
    return np.asarray(np.bincount(owner, fresh, n) / (end - start))


def _rows(changes: Trace, polls: Trace) -> tuple[NDArray[np.int64], Floats]:
    """Every poll with the row of its source in `changes`."""
    place = {name: i for i, name in enumerate(changes.names)}
    try:
        rows = np.array([place[name] for name in polls.names], dtype=np.int64)
    except KeyError as error:
        rule, remedy = "is not a source of changes", "measure polls of sources whose changes are known"
        raise InputError(sentence("polls of", error, rule, remedy)) from None
    return np.repeat(rows, polls.counts()), polls.times


def _next_change(changes: Trace, source: NDArray[np.int64], t: Floats) -> Floats:
    """The first change of each source after t, inf if there is none."""
    owner = np.repeat(np.arange(len(changes)), changes.counts())
    # Complex numbers sort by their first part, then by the second: sources and times in one search.
    place = np.searchsorted(_pair(owner, changes.times), _pair(source, t), side="right")
    there = place < changes.starts[1:][source]
    return np.where(there, np.append(changes.times, np.inf)[np.where(there, place, 0)], np.inf)


def _pair(source: NDArray[np.int64], t: Floats) -> NDArray[np.complex128]:
    pair = np.empty(len(t), dtype=np.complex128)
    pair.real, pair.imag = source, t
    return pair
