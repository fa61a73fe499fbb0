"""What a backtest replays: the changes, the time for learning and the time that counts, the weights."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.objectives import objective_of
from unstale.core.trace import Trace
from unstale.errors import require
from unstale.frozen import dataclass

#: sources with fewer changes in the window are left out
FEWEST = 5
#: share of the window in which polls teach and nothing is counted
LEARNING = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The changes in [start, end) of the sources with at least 5 of them; polls and freshness count from `split` on.

    `weight` has one number per source. Every copy is fresh at `start`. Times are seconds since the epoch.
    """

    trace: Trace
    start: float
    split: float
    end: float
    weight: Floats
    objective: str = "freshness"

    @classmethod
    def of(
        cls,
        trace: Trace,
        *,
        weights: ArrayLike | None = None,
        objective: str = "freshness",
        start: float | None = None,
        end: float | None = None,
        at_most: int | None = None,
        seed: int = 1,
    ) -> Setting:
        """Cut a trace to a window, from its first change to its last if not told.

        `weights` are those of the trace's sources; `at_most` keeps a random sample of the sources with enough changes.
        """
        objective_of(objective)
        require(len(trace.times), "trace", "without changes", "must have some", "give another file")
        weight = np.ones(len(trace)) if weights is None else numbers("weight", weights, least=0.0)
        require(
            weight.shape == (len(trace),),
            "weight",
            f"of shape {weight.shape}",
            f"must have one for each of the {len(trace)} sources",
            "leave it out for equal weights",
        )
        begin = float(trace.times.min()) if start is None else number("start", start)
        # the window is open at its end, and the last change belongs to it
        stop = float(np.nextafter(trace.times.max(), np.inf)) if end is None else number("end", end)
        require(begin < stop, "start", _day(begin), f"must be before the end, {_day(stop)}", "choose another window")
        inside = trace.between(begin, stop)
        rows = np.flatnonzero(inside.counts() >= FEWEST)
        require(
            len(rows),
            "trace",
            f"from {_day(begin)} to {_day(stop)}",
            f"has no source with {FEWEST} changes",
            f"its most active one has {int(inside.counts().max())}, choose a longer window",
        )
        if at_most is not None and at_most < len(rows):
            require(at_most > 0, "at_most", at_most, "must be above 0", "leave it out for all sources")
            rows = np.sort(np.random.default_rng(seed).choice(rows, at_most, replace=False))
        require(
            np.any(weight[rows] > 0),
            "weight",
            0,
            "is that of all sources with enough changes",
            "give some of them more",
        )
        return cls(inside.take(rows), begin, begin + LEARNING * (stop - begin), stop, weight[rows], objective)

    def __len__(self) -> int:
        return len(self.trace)

    @property
    def counted(self) -> float:
        """The length of the time that counts."""
        return self.end - self.split

    def budget(self, polls_per_change: float) -> float:
        """Polls per second: so many for each change in the window, spread over all of it.

        >>> setting = Setting.of(Trace.of(["a"] * 5, [0.0, 1.0, 4.0, 5.0, 10.0]), start=0.0, end=20.0)
        >>> setting.budget(2.0), setting.split
        (0.5, 8.0)
        """
        each = number("polls_per_change", polls_per_change, above=0, remedy="1 polls as often as there are changes")
        return each * len(self.trace.times) / (self.end - self.start)

    def allowed(self, polls_per_change: float) -> float:
        """Polls that the budget allows in the time that counts."""
        return self.budget(polls_per_change) * self.counted


def _day(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d")
