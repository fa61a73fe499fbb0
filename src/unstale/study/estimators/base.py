"""What every estimator of a change rate takes and answers.

Rules of this file:
1. Observations are columns: all polls of the first source, then all of the second; a source has at least one.
2. An interval is as long as it was: it runs from one look at the source to the next.
3. An estimator answers what its formula says, 0 and inf included; `chance_of_inf` says how likely inf is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

#: what an estimator needs to see: whether there was a change, or also when the latest one was
Sees = Literal["bits", "last-modified"]
#: the polls an estimator is right for: any times known beforehand, even ones, or the events of a Poisson process
Timing = Literal["any", "even", "poisson"]


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What polls taught about many sources, as columns: one run of polls per source, in order, end to end.

    `intervals` are the times since the poll before, `changed` whether the poll found a change, `since` (None if
    not told) the time from the latest change to the poll, read only where `changed`; rows
    `starts[i]` to `starts[i + 1]` are those of the i-th source, which is polled `sync_rate[i]` times per unit
    of time: as planned, or as measured where no plan is given. Make one with `Observations.of`.
    """

    intervals: Floats
    changed: NDArray[np.bool_]
    since: Floats | None
    starts: NDArray[np.intp]
    sync_rate: Floats

    @classmethod
    def of(
        cls,
        intervals: ArrayLike,
        changed: ArrayLike,
        *,
        since: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        sync_rate: ArrayLike | None = None,
    ) -> Observations:
        """Checked columns: a row of polls is one source, a matrix has one source per row.

        Sources with different numbers of polls come end to end, with those numbers as `counts`. `intervals`,
        `since` and `sync_rate` may be one number for all.

        >>> Observations.of(2.0, [[1, 0, 1], [0, 0, 1]]).total(1.0).tolist()
        [3.0, 3.0]
        """
        bits = numbers("changed", changed, remedy="give 1 for a poll that found a change, else 0")
        lengths = _lengths(bits, counts)
        flat = bits.ravel()
        _all((flat == 0) | (flat == 1), "changed", flat, "must be 0 or 1", "give 1 for a poll that found a change")
        between = _column("intervals", intervals, bits)
        _all(
            (between > 0) & (between < np.inf),
            "intervals",
            between,
            "must be a finite number above 0",
            "give the times between polls, and merge polls at the same time into one",
        )
        told = None
        if since is not None:
            told = _column("since", since, bits)
            _all(
                (flat == 0) | ((told >= 0) & (told <= between)),
                "since",
                told,
                "must be from 0 to the interval, as the change came after the poll before",
                "leave out polls whose last-modified time cannot be true",
            )
        starts = np.concatenate([[0], np.cumsum(lengths)])
        measured = lengths / np.add.reduceat(between, starts[:-1])
        planned = measured if sync_rate is None else numbers("sync_rate", sync_rate, above=0)
        require(
            planned.ndim == 0 or planned.shape == measured.shape,
            "sync_rate",
            f"of shape {planned.shape}",
            f"must be one number or {len(measured)}",
            "give the planned polls per unit of time of each source",
        )
        return cls(between, flat == 1, told, starts, np.broadcast_to(planned, measured.shape))

    def __len__(self) -> int:
        return len(self.sync_rate)

    def counts(self) -> NDArray[np.intp]:
        """How many polls each source had."""
        return np.diff(self.starts)

    def changes(self) -> Floats:
        """How many polls of each source found a change."""
        return self.total(self.changed)

    def total(self, values: ArrayLike) -> Floats:
        """The sum of `values`, one per poll, over the polls of each source."""
        each = np.broadcast_to(np.asarray(values, dtype=np.float64), self.intervals.shape)
        return np.add.reduceat(each, self.starts[:-1])


class Estimator(ABC):
    """A rule that turns observations into change rates; changes are taken for Poisson by all of them.

    `mean`, `bias` and `chance_of_inf` are exact for `polls` polls `interval` apart: evenly, or, for the
    timing "poisson", on average.
    """

    #: one or two words, as tables call it
    name: ClassVar[str]
    sees: ClassVar[Sees] = "bits"
    timing: ClassVar[Timing] = "any"
    #: where it comes from
    citation: ClassVar[str]

    @abstractmethod
    def estimate(self, seen: Observations) -> Floats:
        """The change rate of each source, per unit of time of the intervals."""

    @abstractmethod
    def mean(self, change_rate: float, interval: float, polls: int) -> float:
        """E[estimate | finite] of a source with this change rate."""

    def bias(self, change_rate: float, interval: float, polls: int) -> float:
        """E[estimate | finite] − change_rate."""
        return self.mean(change_rate, interval, polls) - float(change_rate)

    def chance_of_inf(self, change_rate: float, interval: float, polls: int) -> float:
        """The probability that the estimate is infinite."""
        checked(change_rate, interval, polls)
        return 0.0


def checked(change_rate: float, interval: float, polls: int) -> tuple[float, float, int]:
    """The arguments of `mean`: a rate of 0 or more, an interval above 0, a whole number of polls."""
    rate = number("change_rate", change_rate, least=0)
    between = number("interval", interval, above=0)
    n = number("polls", polls, least=1, most=1e6)
    require(n == int(n), "polls", polls, "must be a whole number", "give how many polls there are")
    return rate, between, int(n)


def _lengths(bits: Floats, counts: ArrayLike | None) -> NDArray[np.intp]:
    if counts is None:
        require(
            bits.ndim in (1, 2) and bits.size > 0,
            "changed",
            f"of shape {bits.shape}",
            "must be a row of polls or one row per source",
            "give counts for rows of different lengths",
        )
        rows, each = (1, bits.size) if bits.ndim == 1 else bits.shape
        return np.full(rows, each, dtype=np.intp)
    given = numbers("counts", counts, least=1, remedy="leave out sources that were never polled")
    whole = given.astype(np.intp)
    require(
        given.ndim == 1 and bool(np.all(given == whole)) and whole.sum() == bits.size and bits.ndim == 1,
        "counts",
        f"with a sum of {given.sum():g}",
        f"must be whole numbers that add up to the {bits.size} polls",
        "give the number of polls of each source",
    )
    return whole


def _column(name: str, values: ArrayLike, like: Floats) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(sentence(name, repr(values)[:60], "must be numbers", "give times in one unit")) from None
    require(
        column.ndim == 0 or column.shape == like.shape,
        name,
        f"of shape {column.shape}",
        f"must match changed of shape {like.shape}",
        "give one number per poll, or one",
    )
    return np.broadcast_to(column, like.shape).ravel()


def _all(ok: NDArray[np.bool_], name: str, values: Floats, rule: str, remedy: str) -> None:
    first = int(np.argmin(ok))
    require(ok[first], f"{name}[{first}]", float(values[first]), rule, remedy)
