"""What a value answers about every source of a fleet, and the frame its members share.

Rules of this file:
1. Columns are bound: entry i of every argument and answer belongs to source i; a scalar stands for all.
2. Inputs of the methods are trusted; columns are checked once, when the value is made.
3. A source that never changes (change_rate 0) is worth nothing to poll: value, limit and staleness are 0.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, numbers
from unstale.core.gamma2 import by_blocks
from unstale.core.values.order import checked_order
from unstale.errors import require

Rows = NDArray[np.intp] | NDArray[np.bool_] | slice


class Value(ABC):
    """What polling each source of a fleet is worth, per unit of weight.

    A source polled every t has staleness C(f) = f·h(1/f), f = 1/t, where h is the penalty of one interval.
    The value φ(t) = −C'(f) is the staleness that one more poll per unit of time removes. It starts at 0 and
    never falls as t grows, so at a price each source has one best interval, where weight·φ(t) = price·cost.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Number of sources."""

    @abstractmethod
    def value(self, interval: Floats) -> Floats:
        """φ(interval): what a poll after each interval is worth; 0 at 0, `limit()` at inf."""

    @abstractmethod
    def slope(self, interval: Floats) -> Floats:
        """dφ/d(interval)."""

    @abstractmethod
    def interval(self, value: Floats) -> Floats:
        """The shortest interval worth `value`: `free()` for 0, inf from `limit()` on."""

    @abstractmethod
    def limit(self) -> Floats:
        """φ(inf); a source is abandoned iff weight·limit ≤ price·cost."""

    def free(self) -> Floats:
        """The longest intervals whose polls are worth nothing, because no penalty is ever met: mostly 0."""
        return np.zeros(len(self))

    @abstractmethod
    def staleness(self, interval: Floats) -> Floats:
        """Long-run average penalty when polled at these mean intervals; inf gives that of no polls at all."""

    @abstractmethod
    def take(self, rows: Rows) -> Value:
        """The same for some of the sources, in the order of `rows`."""

    def response(self, value: Floats) -> tuple[Floats, Floats]:
        """The sync rates at which polls are worth `value`, and their derivatives in it: what a solver asks."""
        interval = self.interval(value)
        with np.errstate(all="ignore"):
            rate = 1.0 / interval
            slope = -rate * rate / self.slope(interval)
        return rate, np.where(np.isfinite(slope), slope, 0.0)


class RateValue(Value):
    """Frame of the values known by one change rate per source and one order of polls for all.

    Members answer for blocks of (change_rate > 0, argument) in `_value`, `_slope`, `_interval`, `_staleness`
    and `_limit`; this class cuts the columns into blocks and settles sources that never change.
    """

    def __init__(self, change_rate: ArrayLike, order: str = "fixed") -> None:
        self.change_rate = column("change_rate", change_rate, least=0)
        self.order = checked_order(order)

    def __len__(self) -> int:
        return len(self.change_rate)

    def take(self, rows: Rows) -> Self:
        other = copy.copy(self)
        other.change_rate = self.change_rate[rows]
        return other

    def value(self, interval: Floats) -> Floats:
        return self._by_rate(self._value, interval)

    def slope(self, interval: Floats) -> Floats:
        return self._by_rate(self._slope, interval)

    def staleness(self, interval: Floats) -> Floats:
        return self._by_rate(self._staleness, interval)

    def limit(self) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.change_rate > 0, self._limit(self.change_rate), 0.0)

    #: what `free` answers, the same for all sources that change
    _harmless = 0.0

    def free(self) -> Floats:
        # A hair less, so that the inverse of the inverse is not more.
        return np.where(self.change_rate > 0, self._harmless * (1 - 2.0**-50), np.inf)

    def interval(self, value: Floats) -> Floats:
        def block(rate: Floats, v: Floats) -> Floats:
            limit = np.where(rate > 0, self._limit(rate), 0.0)
            inside = (v > 0) & (v < limit)
            t = self._interval(np.where(inside, rate, 1.0), np.where(inside, v, self._limit(np.ones(1)) / 2))
            return np.where(inside, t, np.where(v > 0, np.inf, self._harmless * (1 - 2.0**-50)))

        with np.errstate(all="ignore"):
            return by_blocks(block, self.change_rate, value)

    def _by_rate(self, function: Callable[[Floats, Floats], Floats], interval: Floats) -> Floats:
        def block(rate: Floats, t: Floats) -> Floats:
            # a source that never changes is always as good as just polled
            alive = rate > 0
            return function(np.where(alive, rate, 1.0), np.where(alive, t, 0.0))

        with np.errstate(all="ignore"):
            return by_blocks(block, self.change_rate, interval)

    @abstractmethod
    def _value(self, rate: Floats, t: Floats) -> Floats: ...

    @abstractmethod
    def _slope(self, rate: Floats, t: Floats) -> Floats: ...

    @abstractmethod
    def _interval(self, rate: Floats, v: Floats) -> Floats: ...

    @abstractmethod
    def _limit(self, rate: Floats) -> Floats: ...

    @abstractmethod
    def _staleness(self, rate: Floats, t: Floats) -> Floats: ...


def column(name: str, values: ArrayLike, *, above: float | None = None, least: float | None = None) -> Floats:
    """`values` as a checked column: one float64 per source."""
    x = np.atleast_1d(numbers(name, values, above=above, least=least))
    require(x.ndim == 1, name, f"of shape {x.shape}", "must be one column", "give one number per source")
    return x
