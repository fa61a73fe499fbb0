"""A whole fleet, simulated source by source: what a plan's rates achieve, measured instead of computed.

Rules of this file:
1. Sources are independent, and so are the runs of one source; each has its own random numbers, so nothing
   depends on threads.
2. Every run is stationary from its first moment, so its averages have the expectations of the formulas exactly,
   however short the horizon is against a source's interval.
3. A source that is never polled has freshness 0 and age inf, unless it never changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers
from unstale.core.poisson_orders import Order
from unstale.core.processes.named import named
from unstale.core.values import value_of
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.sim import draws, kernels
from unstale.sim.copy import checked_seed, require_events
from unstale.sim.statistics import Estimate

#: the gaps of each order as the kernels know them
_KINDS = {"fixed": draws.CONSTANT, "random": draws.SWEEP, "purely-random": draws.EXPONENTIAL}
#: sources simulated at a stretch by one thread
PART = 256


@dataclass(frozen=True, slots=True)
class FleetRun:
    """What a simulated fleet was like: per source, and weighted together."""

    freshness: Estimate
    age: Estimate
    weight: Floats
    #: per source over all runs: polls, changes, and polls that found a change
    polls: NDArray[np.int64]
    changes: NDArray[np.int64]
    found: NDArray[np.int64]
    #: simulated time of each source
    time: float

    @property
    def fleet_freshness(self) -> Estimate:
        """Weighted mean freshness; sources are independent, so their errors add up in squares."""
        return self._weighted(self.freshness)

    @property
    def fleet_age(self) -> Estimate:
        """Weighted mean age; inf if a source that counts changes and is never polled."""
        return self._weighted(self.age)

    @property
    def events(self) -> int:
        """Polls and changes that were simulated."""
        return int(self.polls.sum() + self.changes.sum())

    def _weighted(self, each: Estimate) -> Estimate:
        counted = self.weight > 0
        weight = self.weight[counted]
        total = float(weight.sum())
        if total == 0:
            return Estimate(np.nan, np.nan)
        value, error = np.asarray(each.value)[counted], np.asarray(each.error)[counted]
        mean = float(np.sum(weight * value)) / total
        return Estimate(mean, float(np.sqrt(np.sum((weight * error) ** 2))) / total if np.isfinite(mean) else np.inf)


def simulate_fleet(
    change_rate: ArrayLike,
    sync_rate: ArrayLike,
    order: Order = "fixed",
    *,
    horizon: float,
    seed: int = 0,
    process: str | ArrayLike = "poisson",
    weight: ArrayLike | None = None,
    runs: int = 2,
    done: Callable[[float], None] | None = None,
) -> FleetRun:
    """Simulate every source `runs` times for the time `horizon`, polled at its sync_rate in this order.

    `process` says how changes come, one for all or one per source: poisson, pareto:3, weibull:0.7, constant, …
    Errors come from the spread between the runs of a source, so two runs give a good one for the fleet and a
    poor one for a single source. Random order is simulated with the true dependence of its gaps
    [000 Algorithm B.2]. Same arguments, same result, bit for bit; `done` hears the share done now and then.

    >>> run = simulate_fleet([1.0, 2.0], [1.0, 2.0], horizon=1000.0, seed=1, runs=20)
    >>> np.abs(run.freshness.z(0.632120558829)) < 4
    array([ True,  True])
    """
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0, remedy="give changes per unit of time"))
    sync = np.broadcast_to(numbers("sync_rate", sync_rate, least=0, remedy="give polls per unit of time"), rate.shape)
    counts = np.ones(rate.shape) if weight is None else np.broadcast_to(numbers("weight", weight, least=0), rate.shape)
    horizon = number("horizon", horizon, above=0, remedy="give the time to simulate, such as 30 days")
    runs = int(number("runs", runs, least=2, remedy="give 2 or more, or there is no error"))
    seed = checked_seed(seed)
    require(order in _KINDS, "order", repr(order), "is unknown", "take fixed, random or purely-random")
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        interval = 1.0 / sync
        pace = 1.0 / rate
        before = np.minimum(rate * interval, kernels.FORGOTTEN)
        busy = np.where(sync > 0, rate * horizon + before + horizon * sync, 0.0)
    require_events(runs * float(busy.sum()), "horizon", horizon)
    kind, shape, scale = _laws(process, rate)
    sums = np.empty((7, rate.size))

    def work(first: int, last: int) -> None:
        kernels.fleet_runs(
            draws.word(seed), first, last, runs, kind, shape, scale, pace, _KINDS[order], 0.0, interval, horizon, sums
        )

    kernels.in_threads(work, rate.size, PART, done)
    error = np.sqrt(sums[[1, 3]] / (runs * (runs - 1.0)))
    error[1, np.isinf(sums[2])] = np.inf
    polls, changes, found = sums[4:].astype(np.int64)
    return FleetRun(
        freshness=Estimate(sums[0], error[0]),
        age=Estimate(sums[2], error[1]),
        weight=counts,
        polls=polls,
        changes=changes,
        found=found,
        time=horizon * runs,
    )


def _laws(process: str | ArrayLike, rate: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Kind, shape and scale of the gaps between changes, source by source."""
    names = np.asarray(process, dtype=str)
    require(
        names.shape in ((), rate.shape),
        "process",
        f"of shape {names.shape}",
        f"must be one name or {rate.size}",
        "give one for each source",
    )
    kind, shape = np.empty(rate.shape, dtype=np.int64), np.empty(rate.shape)
    with np.errstate(divide="ignore"):
        scale = 1.0 / rate
    for text in np.unique(names):
        rows = np.broadcast_to(names == text, rate.shape)
        law = draws.law_of(named(str(text), 1.0))
        if law is None:
            raise InputError(sentence("process", repr(str(text)), "cannot be simulated here", "use simulate_copy"))
        kind[rows], shape[rows] = law[:2]
        scale[rows] *= law[2]
    return kind, shape, scale


def predicted(
    change_rate: ArrayLike, sync_rate: ArrayLike, order: Order = "fixed", process: str | ArrayLike = "poisson"
) -> tuple[Floats, Floats]:
    """Freshness and mean age of each source by the formulas: what a simulation of the same fleet should give.

    >>> fresh, age = predicted([1.0], [1.0])
    >>> fresh.round(6), age.round(6)
    (array([0.632121]), array([0.132121]))
    """
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    with np.errstate(divide="ignore"):
        interval = 1.0 / np.broadcast_to(numbers("sync_rate", sync_rate, least=0), rate.shape)
    names = np.asarray(process, dtype=str)
    stale, age = np.empty(rate.shape), np.empty(rate.shape)
    for text in np.unique(names):
        rows = np.broadcast_to(names == text, rate.shape)
        shape = named(str(text), 1.0)
        for objective, out in (("freshness", stale), ("age", age)):
            out[rows] = value_of(objective, rate[rows], order=order, changes=shape).staleness(interval[rows])
    return 1.0 - stale, age
