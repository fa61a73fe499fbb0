"""One pass over a fleet at a price, in fixed blocks: compiled for big fleets, NumPy for the rest.

Rules of this file:
1. No temporaries of the fleet's size; a block's sums land in its own row, and the rows are added pairwise.
2. Both ways give the same numbers to about 1e-14, on any number of threads.
3. A change rate or a weight of 0 means no polls; anything invalid is refused, naming the element.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.gamma2 import BLOCK
from unstale.core.kernels.numpy_pass import Priced, careful, quick
from unstale.core.kernels.numpy_pass import response as numpy_response
from unstale.core.threads import by_threads
from unstale.errors import require

T = TypeVar("T")

#: fleets from this size on are worth the compiled pass once it is loaded, and from this on worth loading it: that takes
#: as long as NumPy takes for a few million
COMPILED_FROM, LOADED_FROM = 200_000, 4_000_000

_NO_COST = np.empty(0)
_ONES = np.ones(BLOCK)


class Expected(NamedTuple):
    """What a plan at a price brings: budget spent, Σ weight·freshness, and how many sources are polled."""

    spent: float
    freshness: float
    polled: int


class PassColumns(NamedTuple):
    """A fleet as contiguous columns; an empty cost column means that every poll costs 1."""

    change_rate: Floats
    weight: Floats
    cost: Floats

    @staticmethod
    def of(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None) -> PassColumns:
        rate = np.ascontiguousarray(change_rate, dtype=np.float64)
        require(
            rate.ndim == 1, "change_rate", f"of shape {rate.shape}", "must be a column", "give one number per source"
        )
        columns = [rate]
        for name, values in (("weight", weight), ("cost", cost)):
            column = _NO_COST if values is None else np.ascontiguousarray(values, dtype=np.float64)
            require(
                values is None or column.shape == rate.shape,
                name,
                f"of shape {column.shape}",
                f"must have change_rate's shape {rate.shape}",
                "give one number per source",
            )
            columns.append(column)
        return PassColumns(*columns)

    def rows(self, start: int, stop: int) -> tuple[Floats, Floats, Floats]:
        """Some of the sources; without a cost column there may be up to BLOCK."""
        rate = self.change_rate[start:stop]
        return rate, self.weight[start:stop], self.cost[start:stop] if self.cost.size else _ONES[: rate.size]

    def refuse_invalid(self, rate: Floats, weight: Floats, cost: Floats) -> None:
        """Nothing if these rows are valid; else the columns are searched to name the element that is not."""
        if not rate.size:
            return
        finite = np.isfinite(rate).all() and np.isfinite(weight).all() and np.isfinite(cost).all()
        if not (finite and min(rate.min(), weight.min()) >= 0.0 and cost.min() > 0.0):
            numbers("change_rate", self.change_rate, least=0, remedy="give changes per unit of time")
            numbers("weight", self.weight, least=0, remedy="give the importance of each source")
            numbers("cost", self.cost, above=0, remedy="give what one poll costs")


def spent(
    price: float, change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None = None
) -> tuple[float, float]:
    """Budget spent at a price under Poisson freshness, Σ cost·sync_rate, and its derivative in the price.

    sync_rate = change_rate/x with P(2, x) = s = price·cost·change_rate/weight, 0 from s = 1 on;
    the derivative needs no exponential: d sync_rate/ds = −change_rate·(1+x)/(x³·(1−s)).
    Falls as the price rises, by at least half a percent per percent; jumps by up to cost·change_rate/37 where
    a source is abandoned, because no double below 1 gives longer intervals. [000 sect. 4.3], [003 eq. 49].

    >>> total, slope = spent(0.216431826101502862, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1])
    >>> round(total, 9), round(slope, 6)
    (5.0, -29.061718)
    """
    price = number("price", price, above=0, infinite=True)
    total, slope = spent_by_log(price, PassColumns.of(change_rate, weight, cost))
    with np.errstate(over="ignore"):
        return total, float(np.float64(slope) / price)


def rates(
    price: float, change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None = None, out: Floats | None = None
) -> Floats:
    """The sync rates that are best at a price under Poisson freshness, written to `out`.

    sync_rate = change_rate/x with P(2, x) = price·cost·change_rate/weight, and 0 (abandoned) if that is ≥ 1.
    Every poll is then worth the price, none is worth more. [000 sect. 4.3], [003 eq. 49].

    >>> rates(0.216431826101502862, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1]).round(4)
    array([1.1499, 1.3584, 1.3538, 1.1379, 0.    ])
    """
    price = number("price", price, above=0, infinite=True)
    columns = PassColumns.of(change_rate, weight, cost)
    out = output(columns.change_rate.size, out)
    write_rates(price, columns, out)
    return out


def expected(price: float, change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None = None) -> Expected:
    """What the rates at a price bring: budget spent, Σ weight·freshness and the number of sources polled.

    freshness = (1 − e^(−x))/x = (x+s)/(x·(1+x)), x and s as in `rates`. [000 Table 2].

    >>> plan = expected(0.216431826101502862, [1, 2, 3, 4, 5], [1, 1, 1, 1, 1])
    >>> round(plan.spent, 9), round(plan.freshness / 5, 6), plan.polled
    (5.0, 0.373889, 4)
    """
    price = number("price", price, above=0, infinite=True)
    total, fresh, polled = run("expected_blocks", price, PassColumns.of(change_rate, weight, cost), 3)
    return Expected(total, fresh, round(polled))


def output(size: int, out: Floats | None) -> Floats:
    """`out` if it can take one number per source, a new column if it is None."""
    if out is None:
        return np.empty(size)
    require(
        out.shape == (size,) and out.dtype == np.float64 and out.flags.c_contiguous and out.flags.writeable,
        "out",
        f"of shape {out.shape} and type {out.dtype}",
        f"must be a contiguous float64 column of {size}",
        "leave it out",
    )
    return out


def write_rates(price: float, columns: PassColumns, out: Floats) -> float:
    """Write the sync rates at a price; the budget they spend."""
    return run("rates_blocks", price, columns, 1, out)[0]


def spent_by_log(price: float, columns: PassColumns, of: int = 0) -> tuple[float, float]:
    """Budget spent and its derivative in the logarithm of the price; `of` is how many sources these few stand for."""
    total, slope = run("spent_blocks", price, columns, 2, of=of)
    return total, slope


def run(
    kernel: str, price: float, columns: PassColumns, width: int, out: Floats | None = None, of: int = 0
) -> list[float]:
    """The `width` sums of a kernel over the fleet; `out` takes the rates of the one that writes them."""
    size = columns.change_rate.size
    count = -(-size // BLOCK)
    sums = np.ones((count, 1 + width))  # column 0: the block still has to be done
    if (compiled := compiled_for(max(size, of))) is not None:
        # more shares than threads, so that a thread held up by neighbours does not hold up the pass
        edges = np.linspace(0, count, 4 * compiled.THREADS + 1).astype(int).tolist()
        arguments = (sums,) if out is None else (sums, out)

        def share(i: int) -> None:
            getattr(compiled, kernel)(price, *columns, edges[i], edges[i + 1], *arguments)

        in_threads(share, len(edges) - 1, size)
    for k in np.flatnonzero(sums[:, 0]).tolist():
        r, w, c = columns.rows(k * BLOCK, (k + 1) * BLOCK)
        priced = quick(price, r, w, c)
        if priced is None:
            columns.refuse_invalid(r, w, c)
            priced = careful(price, r, w, c)
        if out is not None:
            out[k * BLOCK : (k + 1) * BLOCK] = priced.sync_rate
        sums[k, 1:] = _sums(kernel, priced, w, c)
    with np.errstate(over="ignore"):
        return [float(column.sum()) for column in sums[:, 1:].T]


def _sums(kernel: str, priced: Priced, weight: Floats, cost: Floats) -> tuple[Any, ...]:
    with np.errstate(over="ignore"):
        spending = cost * priced.sync_rate
        if kernel == "rates_blocks":
            return (np.sum(spending),)
        if kernel == "spent_blocks":
            return np.sum(spending), -np.sum(spending * priced.elasticity())
        return np.sum(spending), np.sum(weight * priced.freshness()), np.count_nonzero(priced.polled)


def in_threads(work: Callable[[int], T], count: int, size: int) -> list[T]:
    """work(0), …, work(count − 1), in order, by threads if the fleet's size is worth them."""
    compiled = compiled_for(size)
    return by_threads(work, count, 1 if compiled is None else compiled.THREADS)


def response(change_rate: Floats, value: Floats) -> tuple[Floats, Floats] | None:
    """Sync rates whose polls are worth `value` under Poisson freshness, and their derivatives in it.

    None if some share is so small that only the general form has its digits. A solver asks this dozens of
    times per plan, so the compiled form is taken as soon as it is loaded (see `warm`), whatever the size.
    """
    rate, slope = np.empty(change_rate.size), np.empty(change_rate.size)
    compiled = numba_pass() if change_rate.size >= LOADED_FROM or loaded() else None
    if compiled is not None:
        columns = (np.ascontiguousarray(x, dtype=np.float64) for x in (change_rate, value))
        strange = compiled.response(*columns, rate, slope)
    else:
        strange = numpy_response(change_rate, value, rate, slope)
    return None if strange else (rate, slope)


def compiled_for(size: int) -> Any:
    """The compiled passes if they are worth it for a fleet of this size, else None."""
    worth = size >= COMPILED_FROM and (size >= LOADED_FROM or loaded())
    return numba_pass() if worth else None


def loaded() -> bool:
    """Whether the compiled passes are there already, so that asking them costs nothing more."""
    return _NAME in sys.modules


def warm() -> bool:
    """Load the compiled passes now, for a program that will plan often; whether numba is there."""
    return numba_pass() is not None


_NAME = "unstale.core.kernels.numba_pass"


@cache
def numba_pass() -> Any:
    """The compiled passes, or None where numba is not installed."""
    try:
        from unstale.core.kernels import numba_pass as compiled
    except ImportError:
        return None
    return compiled
