"""The gaps of many sources as columns, and the sums, ranks and roots that every diagnosis needs of them.

One source is a column of one. What is computed for each source is an array with one number per source.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers
from unstale.core.trace import Trace
from unstale.errors import require
from unstale.frozen import dataclass

#: fewer gaps than this say nothing about a law
FEWEST = 2


@dataclass(frozen=True, slots=True, eq=False)
class Gaps:
    """`lengths[starts[i]:starts[i] + counts[i]]` are the gaps between the changes of source i, in order.

    >>> Gaps.of([1.0, 3.0, 2.0]).means()
    array([2.])
    """

    lengths: Floats
    counts: np.ndarray

    @classmethod
    def of(cls, *sources: ArrayLike) -> Gaps:
        """The gaps of one source, or of several."""
        remedy = "merge changes that happen at one instant"
        columns = [np.atleast_1d(numbers("gaps", gaps, above=0, remedy=remedy)) for gaps in sources]
        return cls(np.concatenate(columns or [np.empty(0)]), np.array([len(c) for c in columns]))._checked()

    @classmethod
    def between(cls, trace: Trace) -> Gaps:
        """The gaps between the changes of every source of a trace."""
        apart = np.diff(trace.times)
        inside = np.ones(len(apart), dtype=bool)
        # what lies between the last change of a source and the first of the next is no gap
        inside[trace.starts[1:-1] - 1] = False
        return cls(apart[inside], trace.counts() - 1)._checked()

    def _checked(self) -> Gaps:
        fewest = int(self.counts.min(initial=FEWEST))
        require(len(self.counts) > 0, "gaps", "of no source", "must be of one at least", "give a list of gaps")
        require(
            fewest >= FEWEST,
            "gaps",
            f"of a source with {fewest}",
            f"must be {FEWEST} at least",
            "leave out sources with fewer changes",
        )
        return self

    @property
    def starts(self) -> np.ndarray:
        """Where the gaps of each source begin."""
        return np.asarray(np.cumsum(self.counts) - self.counts)

    @property
    def owner(self) -> np.ndarray:
        """The number of the source of each gap."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def each(self, column: Floats) -> Floats:
        """One number per source, repeated for each of its gaps."""
        return np.repeat(column, self.counts)

    def sums(self, terms: Floats) -> Floats:
        """The sum of `terms`, one per gap, for each source."""
        return np.asarray(np.add.reduceat(terms, self.starts))

    def means(self, terms: Floats | None = None) -> Floats:
        """The mean of `terms`, or of the gaps themselves, for each source."""
        return np.asarray(self.sums(self.lengths if terms is None else terms) / self.counts)

    def variation(self) -> Floats:
        """The standard deviation of the gaps over their mean: 1 for Poisson changes, more for bursts.

        >>> Gaps.of([1.0, 3.0]).variation()
        array([0.5])
        """
        mean = self.means()
        return np.sqrt(self.means((self.lengths / self.each(mean) - 1.0) ** 2))

    def ascending(self) -> Floats:
        """The gaps, sorted within each source."""
        return self.lengths[np.lexsort((self.lengths, self.owner))]

    def medians(self) -> Floats:
        """The median gap of each source."""
        ordered, start, last = self.ascending(), self.starts, self.counts - 1
        return np.asarray((ordered[start + last // 2] + ordered[start + (last + 1) // 2]) / 2)

    def ranks(self) -> Floats:
        """The rank of each gap among those of its source, from 0; equal gaps share their mean rank."""
        owner = self.owner
        order = np.lexsort((self.lengths, owner))
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (np.diff(self.lengths[order]) > 0) | (np.diff(owner[order]) > 0)
        group = np.cumsum(fresh) - 1
        first = np.flatnonzero(fresh)
        size = np.diff(np.append(first, len(order)))
        ranks = np.empty(len(order))
        ranks[order] = (first + (size - 1) / 2)[group] - self.starts[owner[order]]
        return ranks
