"""What a run achieved: exact integrals over the history of every copy, with standard errors by batch means.

Rules of this file:
1. A stale stretch is an interval of time with an origin, the first change the copy lacks; its age is the time
   since then, so the integral of a penalty w over it is w2(end − origin) − w2(begin − origin), exactly.
2. An unseen change is the same with its own time as origin. Both are cut at the ends of batches.
3. Sources and times are compared together: complex numbers sort by their first part, then by the second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats, number
from unstale.core.penalties import Penalty
from unstale.frozen import dataclass
from unstale.sim.statistics import Estimate, batch_means

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Log:
    """Every poll of a run, in the order of time."""

    source: Rows
    started: Floats
    arrived: Floats
    answered: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure: an estimate per source (arrays), and that of the fleet, weighted."""

    source: Estimate
    fleet: Estimate


class Measured:
    """What was measured between warmup and horizon. Each measure is computed when it is asked for."""

    def __init__(
        self,
        weight: Floats,
        cost: Floats,
        changes: list[Floats],
        requests: list[Floats],
        log: Log,
        horizon: float,
        warmup: float,
        batches: int,
    ) -> None:
        self.log, self.horizon, self.warmup = log, horizon, warmup
        self._weight, self._cost = weight, cost
        self._edges = np.linspace(warmup, horizon, batches + 1)
        self._changed_source, self._changed = _columns(changes)
        self._asked_source, self._asked = _columns(requests)
        n = len(weight)
        # Every copy is there and fresh at time 0.
        source = np.concatenate([np.arange(n), log.source[log.answered]])
        read = np.concatenate([np.zeros(n), log.started[log.answered]])
        order = np.lexsort((read, source))
        self._source, self._read = source[order], read[order]
        self._arrived = np.concatenate([np.zeros(n), log.arrived[log.answered]])[order]
        self._counted = log.started >= warmup

    # ---- measures ----

    @cached_property
    def freshness(self) -> Measure:
        """Share of time each copy equals its source."""
        stale = self._stale.integral(lambda x: x)
        return self._measure(np.diff(self._edges) - stale)

    @cached_property
    def age(self) -> Measure:
        """Mean age of each copy, 0 while it is fresh."""
        return self._measure(self._stale.integral(lambda x: x * x / 2.0))

    def penalty(self, penalty: Penalty) -> Measure:
        """Mean of the penalty of the age: the staleness under that penalty."""
        return self._measure(self._stale.integral(penalty.w2))

    def consistency(self, tau: float) -> Measure:
        """Share of time each copy is fresh or stale by tau at most (Δ-consistency)."""
        least = number("tau", tau, least=0)
        older = self._stale.integral(lambda x: np.maximum(x - least, 0.0))
        return self._measure(np.diff(self._edges) - older)

    @cached_property
    def missed(self) -> Measure:
        """Mean number of changes each copy lacks; divided by the rate of changes, the mean time they wait."""
        return self._measure(self._unseen.integral(lambda x: x))

    @cached_property
    def lag(self) -> Measure:
        """Mean sum of the lags of all changes a copy lacks."""
        return self._measure(self._unseen.integral(lambda x: x * x / 2.0))

    @cached_property
    def request_freshness(self) -> Measure:
        """Share of requests that met a fresh copy, of each source and of all; NaN where nobody asked."""
        last = _search(self._source, self._arrived, self._asked_source, self._asked, "right") - 1
        fresh = self._asked < self._since[last]
        inside = (self._asked >= self.warmup) & (self._asked < self.horizon)
        batch = np.searchsorted(self._edges, self._asked[inside], side="right") - 1
        cell = self._asked_source[inside] * self._batches + batch
        counts = self._grid(np.bincount(cell, minlength=self._cells))
        met = self._grid(np.bincount(cell, fresh[inside], self._cells))
        return Measure(batch_means(np.where(counts > 0, met, 0.0), counts), batch_means(met.sum(0), counts.sum(0)))

    @cached_property
    def polls(self) -> Rows:
        """Polls of each source, failed ones included."""
        return np.bincount(self.log.source[self._counted], minlength=len(self._weight))

    @cached_property
    def failures(self) -> Rows:
        """Polls of each source that failed."""
        lost = self._counted & ~self.log.answered
        return np.bincount(self.log.source[lost], minlength=len(self._weight))

    @property
    def spent(self) -> float:
        """Budget used per unit of time: Σ cost·polls / time."""
        return float(np.dot(self._cost, self.polls)) / (self.horizon - self.warmup)

    # ---- histories ----

    @cached_property
    def _since(self) -> Floats:
        """For each copy that arrived, the first change it lacks."""
        after = _search(self._changed_source, self._changed, self._source, self._read, "right")
        return _at(self._changed_source, self._changed, after, self._source, np.inf)

    @cached_property
    def _stale(self) -> _Pieces:
        """Stretches in which a copy is stale; origin: the first change it lacks."""
        rows = np.arange(1, len(self._source) + 1)
        replaced = _at(self._source, self._arrived, rows, self._source, self.horizon)
        return self._cut(self._source, self._since, np.maximum(self._arrived, self._since), replaced)

    @cached_property
    def _unseen(self) -> _Pieces:
        """From each change until the copy that has it; origin: the change."""
        first = _search(self._source, self._read, self._changed_source, self._changed, "left")
        copied = _at(self._source, self._arrived, first, self._changed_source, self.horizon)
        return self._cut(self._changed_source, self._changed, self._changed, copied)

    def _cut(self, source: Rows, origin: Floats, begin: Floats, stop: Floats) -> _Pieces:
        """The parts of [begin, stop) within each batch."""
        begin, stop = np.maximum(begin, self.warmup), np.minimum(stop, self.horizon)
        used = begin < stop
        source, origin, begin, stop = source[used], origin[used], begin[used], stop[used]
        first = np.searchsorted(self._edges, begin, side="right") - 1
        count = np.searchsorted(self._edges, stop, side="left") - first
        row = np.repeat(np.arange(len(count)), count)
        batch = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        low = np.maximum(begin[row], self._edges[batch]) - origin[row]
        high = np.minimum(stop[row], self._edges[batch + 1]) - origin[row]
        return _Pieces(source[row] * self._batches + batch, low, high, (len(self._weight), self._batches))

    @property
    def _batches(self) -> int:
        return len(self._edges) - 1

    @property
    def _cells(self) -> int:
        return len(self._weight) * self._batches

    def _grid(self, cells: NDArray[np.generic]) -> Floats:
        return cells.astype(np.float64).reshape(len(self._weight), self._batches)

    def _measure(self, sums: Floats) -> Measure:
        lengths = np.diff(self._edges)
        share = self._weight / self._weight.sum()
        return Measure(batch_means(sums, lengths), batch_means(share @ sums, lengths))


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Stretches of time within one batch each, as ages at their two ends."""

    cell: Rows
    low: Floats
    high: Floats
    shape: tuple[int, int]

    def integral(self, grown: Callable[[Floats], Floats | float]) -> Floats:
        """Σ grown(high) − grown(low) for each source and batch."""
        parts = np.asarray(grown(self.high)) - np.asarray(grown(self.low))
        sums = np.bincount(self.cell, parts, self.shape[0] * self.shape[1])
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)


def _columns(times: list[Floats]) -> tuple[Rows, Floats]:
    """One column of sources and one of times."""
    return np.repeat(np.arange(len(times)), [len(t) for t in times]), np.concatenate(times)


def _pair(source: Rows, time: Floats) -> NDArray[np.complex128]:
    pair = np.empty(len(time), dtype=np.complex128)
    pair.real, pair.imag = source, time
    return pair


def _search(source: Rows, time: Floats, of: Rows, at: Floats, side: str) -> Rows:
    """Where (of, at) would go among the sorted (source, time)."""
    return np.searchsorted(_pair(source, time), _pair(of, at), side=side)  # type: ignore[call-overload,no-any-return]


def _at(source: Rows, time: Floats, row: Rows, of: Rows, default: float) -> Floats:
    """time[row] where that row belongs to the source asked about, else the default."""
    inside = row < len(time)
    near = np.where(inside, row, 0)
    if len(time) == 0:
        return np.full(len(row), default)
    return np.where(inside & (source[near] == of), time[near], default)
