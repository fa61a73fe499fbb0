"""What decides polls: timetables and orders fixed beforehand, and the scheduler, which hears how each poll went.

A policy gives every source its first due time and, after each poll, the next one. Worlds and policies know
nothing of each other's insides: an open-loop policy never looks at an outcome, the scheduler at nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core import orders
from unstale.core.baselines import BASELINES
from unstale.core.carousel import carousel
from unstale.core.checks import Floats, number, numbers
from unstale.core.learning.state import WIDTH
from unstale.core.phase import jitter
from unstale.core.poisson_orders import Order
from unstale.core.windows import Windows
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.keeper import Answer, Outcome
from unstale.keeper.known import known_rates
from unstale.keeper.living import learner_of
from unstale.keeper.scheduler import Scheduler
from unstale.sim.world import World, column

NEVER = float("inf")
Rngs = Sequence[np.random.Generator]


class Policy(Protocol):
    """Two questions; both answers are due times, inf for never."""

    def start(self, world: World, horizon: float, rngs: Rngs) -> Sequence[float]:
        """The first due time of every source, in a run from 0 to `horizon`; `rngs` has a stream per source."""
        ...

    def next(self, source: int, outcome: Outcome, now: float, rng: np.random.Generator) -> float:
        """When to poll this source again; times already past mean at once."""
        ...


@dataclass(frozen=True, slots=True)
class Polled:
    """How polls of many sources went, in columns: one poll of each. `last_modified` is NaN where it was not told."""

    source: NDArray[np.intp]
    at: Floats
    answered: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    last_modified: Floats


class Independent(ABC):
    """A policy whose answer for one source never depends on another's polls: many may be asked about at once."""

    @abstractmethod
    def next_each(self, polled: Polled) -> Floats:
        """When to poll each of these again, in whatever order of time their polls are told."""


class _Planned(ABC):
    """Frame of policies whose poll times are known at the start: `_times` gives those of each source."""

    def start(self, world: World, horizon: float, rngs: Rngs) -> Sequence[float]:
        self._left: list[Iterator[float]] = [iter(t.tolist()) for t in self._times(world, horizon, rngs)]
        return [next(left, NEVER) for left in self._left]

    def next(self, source: int, outcome: Outcome, now: float, rng: np.random.Generator) -> float:
        return next(self._left[source], NEVER)

    @abstractmethod
    def _times(self, world: World, horizon: float, rngs: Rngs) -> Sequence[Floats]: ...


class Timetable(_Planned):
    """Polls at given times: what the functions of `core.orders` lay out, or a recorded log of polls."""

    def __init__(self, times: ArrayLike, source: ArrayLike) -> None:
        self._when, self._who = np.atleast_1d(numbers("times", times, least=0)), np.atleast_1d(source)
        fits = self._when.shape == self._who.shape and (self._who.size == 0 or self._who.dtype.kind in "iu")
        require(fits, "source", f"of shape {self._who.shape}", "must hold a row for each time", "give as many rows")

    def _times(self, world: World, horizon: float, rngs: Rngs) -> Sequence[Floats]:
        for row in (int(self._who.max(initial=0)), int(self._who.min(initial=0))):
            require(0 <= row < len(world), "source", row, f"must be one of the world's {len(world)}", "count from 0")
        return _by_source(self._when, self._who, len(world))


class OpenLoop(_Planned):
    """Every source at its own sync rate, in one of the orders of 000, whatever the polls find.

    `spread` above 0 jitters each interval by that relative half-width; `windows` confines polls to open times,
    as many as without.
    """

    def __init__(
        self, sync_rate: ArrayLike, order: Order = "fixed", *, spread: float = 0.0, windows: Windows | None = None
    ) -> None:
        self.sync_rate = numbers("sync_rate", sync_rate, least=0)
        self.order, self.windows = order, windows
        self.spread = number("spread", spread, least=0, most=1)

    def _times(self, world: World, horizon: float, rngs: Rngs) -> Sequence[Floats]:
        with np.errstate(divide="ignore"):
            interval = 1.0 / column("sync_rate", self.sync_rate, len(world))
        gap = self._gap if self.spread else None
        # One source at a time, each from its own stream: what one is given does not depend on the others.
        drawn = (
            orders.poll_times([t], 0.0, horizon, self.order, phase=[p], rng=rng, gap=gap)[0]
            for t, p, rng in zip(interval, orders.phases(interval), rngs, strict=True)
        )
        if self.windows is None:
            return list(drawn)
        during = Windows(np.clip(self.windows.start, 0.0, horizon), np.clip(self.windows.stop, 0.0, horizon))
        return [during.confine(t, 0.0, horizon) for t in drawn]

    def _gap(self, rng: np.random.Generator, interval: Floats, size: tuple[int, ...]) -> Floats:
        return np.asarray(jitter(np.broadcast_to(interval, size), rng, self.spread))


class CarouselPolicy(_Planned):
    """Polls on an even beat, one per slot, the sources in the order of `core.carousel`."""

    def __init__(self, sync_rate: ArrayLike) -> None:
        self.sync_rate = numbers("sync_rate", sync_rate, least=0)

    def _times(self, world: World, horizon: float, rngs: Rngs) -> Sequence[Floats]:
        sync_rate = column("sync_rate", self.sync_rate, len(world))
        beat = float(sync_rate.sum())
        slots = int(np.ceil(horizon * beat))
        times = (np.arange(slots, dtype=np.float64) + 0.5) / beat
        return _by_source(times, carousel(sync_rate, slots), len(world))


def baseline(rule: str, world: World, change_rate: ArrayLike, budget: float) -> OpenLoop:
    """Even polls at the rates of a rule other software uses; `rule` is one of `core.baselines.BASELINES`."""
    require(rule in BASELINES, "rule", repr(rule), "is unknown", f"take one of {', '.join(BASELINES)}")
    return OpenLoop(BASELINES[rule](change_rate, world.weight, world.cost, budget))


class ScheduledPolicy(Independent):
    """The scheduler at a price: the decisions of the engine, in virtual time.

    `change_rate` is what the rates are taken to be: they are known, and polls teach nothing. Without it polls teach
    them, in a fleet whose mean interval is `mean_interval`; times are seconds then. `surcharge` is what a poll pays on
    top at each host, as a plan's `host_price`. `scheduler` holds what is known, during and after a run.
    """

    def __init__(
        self,
        price: float,
        change_rate: ArrayLike | None = None,
        *,
        mean_interval: float = 1.0,
        objective: str = "freshness",
        shortest: ArrayLike = 0.0,
        longest: ArrayLike = NEVER,
        surcharge: ArrayLike = 0.0,
    ) -> None:
        self.price = number("price", price, above=0, remedy="a free poll is due all the time")
        self.objective = objective
        self._rate = None if change_rate is None else numbers("change_rate", change_rate, least=0)
        self._mean = number("mean_interval", mean_interval, above=0)
        self._surcharge = numbers("surcharge", surcharge, least=0)
        self._bounds = numbers("shortest", shortest, least=0), numbers("longest", longest, above=0, infinite=True)
        require(
            np.all(self._bounds[0] <= self._bounds[1]), "shortest", shortest, "must not exceed longest", "swap them"
        )

    def start(self, world: World, horizon: float, rngs: Rngs) -> Sequence[float]:
        n = len(world)
        # Sources without a host have host −1, the place of the 0.
        extra = np.append(column("surcharge", self._surcharge, len(world.hosts)), 0.0)[world.host]
        by_key = np.argsort(world.key)
        self._rows = np.argsort(by_key)
        # A surcharge is as if the source weighed that much less.
        weight = world.weight * (self.price * world.cost / (self.price * world.cost + extra))
        given = {
            "weight": weight[by_key],
            "cost": np.asarray(world.cost)[by_key],
            "shortest": np.asarray(column("shortest", self._bounds[0], n))[by_key],
            "longest": np.asarray(column("longest", self._bounds[1], n, infinite=True))[by_key],
        }
        ids = world.key[by_key].astype(np.int64)
        if self._rate is None:
            learner = learner_of(self._mean, given, np.zeros((n, WIDTH)), self.objective)
            # Every copy is fresh when a run begins.
            self.scheduler = Scheduler.of(learner, ids, due=np.zeros(n), answered=np.zeros(n), found=np.zeros(n))
            self.scheduler.price = self.price
            due = learner.due_after_answers(np.arange(n), ids, self.price)[self._rows]
        else:
            rate = column("change_rate", self._rate, n)[by_key]
            self.scheduler = known_rates(rate, self.price, ids, **given, objective=self.objective)
            interval = self.scheduler.learner.waits(self.price)[self._rows]
            due = orders.phases(interval) * interval
        self.scheduler.due_at[self._rows] = due
        return [float(x) for x in due]

    def next(self, source: int, outcome: Outcome, now: float, rng: np.random.Generator) -> float:
        told = outcome.last_modified
        polled = Polled(
            np.array([source]),
            np.array([outcome.polled_at]),
            np.array([outcome.answer is not Answer.FAILED]),
            np.array([outcome.answer is Answer.CHANGED]),
            np.array([np.nan if told is None else told]),
        )
        return float(self.next_each(polled)[0])

    def next_each(self, polled: Polled) -> Floats:
        """When each of these is polled again. The price stands, so none of them depends on another."""
        return self.scheduler.decide(
            self._rows[polled.source], polled.answered, polled.at, polled.changed, polled.last_modified
        )


def _by_source(times: Floats, source: NDArray[np.integer[Any]], n: int) -> list[Floats]:
    """Times in ascending order, one array per source."""
    order = np.lexsort((times, source))
    cuts = np.searchsorted(source[order], np.arange(1, n))
    return np.split(times[order], cuts)
