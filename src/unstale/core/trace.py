"""A trace: when each of many sources changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.errors import require
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The change times of many sources, as columns: one sorted run of times per source, end to end.

    `times[starts[i]:starts[i + 1]]` are the changes of `names[i]`, rising, no two equal; seconds since the epoch.
    """

    names: tuple[str, ...]
    starts: np.ndarray
    times: Floats

    def __len__(self) -> int:
        return len(self.names)

    def changes(self, i: int) -> Floats:
        """The change times of the i-th source."""
        return self.times[self.starts[i] : self.starts[i + 1]]

    def counts(self) -> np.ndarray:
        """How many changes each source had."""
        return np.diff(self.starts)

    def between(self, start: float, end: float) -> Trace:
        """The same sources, with the changes in [start, end) only.

        >>> trace = Trace.of(["a", "a", "b"], [1.0, 5.0, 3.0])
        >>> trace.between(2.0, 9.0).counts().tolist()
        [1, 1]
        """
        inside = (self.times >= start) & (self.times < end)
        before = np.concatenate([[0], np.cumsum(inside)])
        return Trace(self.names, before[self.starts], self.times[inside])

    def having(self, at_least: int) -> Trace:
        """Only the sources with at least so many changes."""
        return self.take(np.flatnonzero(self.counts() >= at_least))

    def take(self, rows: Sequence[int] | np.ndarray) -> Trace:
        """The sources in these rows, in this order."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = self.counts()[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        index = np.repeat(self.starts[rows] - starts[:-1], counts) + np.arange(starts[-1])
        return Trace(tuple(self.names[i] for i in rows), starts, self.times[index])

    @classmethod
    def of(cls, source: Sequence[str] | np.ndarray, times: Sequence[float] | np.ndarray) -> Trace:
        """A trace from rows in any order; rows that say the same twice count once."""
        names, which = np.unique(np.asarray(source, dtype=object).astype(str), return_inverse=True)
        return cls.coded(names.tolist(), which, times)

    @classmethod
    def coded(cls, names: Sequence[str], which: np.ndarray, times: Sequence[float] | np.ndarray) -> Trace:
        """The same from rows that name their source by its place in `names`: no text is compared.

        >>> trace = Trace.coded(["a", "b"], np.array([1, 0, 1, 1]), [5.0, 3.0, 2.0, 5.0])
        >>> trace.counts().tolist(), trace.changes(1).tolist()
        ([1, 2], [2.0, 5.0])
        """
        when = np.asarray(times, dtype=np.float64)
        require(
            len(which) == len(when),
            "times",
            f"with {len(when)} rows",
            f"must be {len(which)}, one a source",
            "give one time in each row",
        )
        require(bool(np.isfinite(when).all()), "times", "not finite", "must be numbers", "drop the rows without a time")
        order = np.lexsort((when, which))
        which, when = which[order], when[order]
        new = np.ones(len(when), dtype=bool)
        new[1:] = (np.diff(when) > 0.0) | (np.diff(which) > 0)
        which, when = which[new], when[new]
        starts = np.searchsorted(which, np.arange(len(names) + 1))
        return cls(tuple(names), starts, when)
