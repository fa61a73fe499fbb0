"""The plan of a fleet that is too large for one table: the sum of its parts' sketches, and a part read anew at a time.

Rules of this file:
1. A price is found every time it is asked for, of sketches that workers keep up to date. A part is read for at most one
   part in five of the time.
2. What is shared, and how fresh the fleet is, is learned of every so manieth source of all parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import NOTHING, promised
from unstale.engine.first_round import FirstAllowance
from unstale.engine.host_limits import HostLimits
from unstale.engine.parts import PART, SAMPLE, FleetInParts
from unstale.engine.pricing import Pricer
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import unpacked
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Scheduler
from unstale.keeper.spending import seconds_to_next_look
from unstale.ports import Census, Clock, FleetColumns, Lesson, SharedStore

#: sources beyond which a fleet is planned in parts: up to so many each is looked at for every price
LARGE = 100_000
#: times as long as reading a part took, the next one is not read
REST = 4.0
#: seconds after which contracts are read again
PROMISES = 60.0
#: seconds for which workers share an allowance for first polls at least
SHARED = 5.0
#: how long a sketch has to last, in looks at the price and in rounds of all parts
LOOKS, ROUNDS = 4.0, 3.0


@dataclass(frozen=True, slots=True)
class LargePlan:
    """What a plan in parts found; `sample` is a scheduler of every so manieth source."""

    sample: Scheduler
    census: Census
    first: FirstAllowance
    surcharges: dict[str, float]
    settings: dict[str, bytes] = field(default_factory=dict)
    taken_up: list[int] = field(default_factory=list)


class PlanInParts:
    """Plans one large fleet, time and again."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        host_limits: HostLimits,
        pricer: Pricer,
        clock: Clock,
        *,
        large: float = LARGE,
        size: int = PART,
    ) -> None:
        self._executor, self._host_limits, self._pricer, self._clock = executor, host_limits, pricer, clock
        self._most, self._size = large, size
        self.forget()

    def forget(self) -> None:
        """Another one has planned meanwhile, or the clock was set."""
        self._promises, self._promised_at = NOTHING, -math.inf
        self.parts = FleetInParts(self._executor, self._host_limits, self._size)
        self._census, self._counted = Census(0, 0.0, 1.0), -1
        #: every so manieth source of each part, by the part's place, and the scheduler of them
        self._sampled: dict[int, FleetColumns] = {}
        self._sample: Scheduler | None = None
        self._read_at, self._took, self._price = -math.inf, 0.0, 0.0

    async def plans(self, edited: int) -> bool:
        """Whether there are so many sources, as far as is known since they were last edited."""
        if edited != self._counted:
            self._census = await self._executor.do(lambda store: store.census())
            self._counted, self._read_at = edited, -math.inf
            if self._census.sources > self._most:
                self.parts.count_hosts(await self._executor.do(lambda store: store.hosts()))
        return self._census.sources > self._most

    @property
    def usual(self) -> float:
        """What a poll costs on average."""
        return self._census.cost / max(self._census.sources, 1)

    async def plan(
        self, config: EngineConfig, about: FleetColumns, lessons: Sequence[Lesson], now: float, spare: float
    ) -> LargePlan:
        """The price of the fleet as it stands, with what of it is to be told."""
        if now - self._promised_at >= PROMISES:
            self._promises = await self._executor.do(lambda store: promised(store, config.contracts))
            self._promised_at = now
        scale = self._census.cost / config.budget if self._census.cost > 0.0 else 1.0
        look = seconds_to_next_look(np.array([self.usual]), scale, config.rate)
        if not self._price > 0.0:
            self._price = about.price.price if about.price is not None and about.price.price > 0.0 else scale
        self.parts.take_up(unpacked(await self._executor.do(lambda store: store.tallies())))
        if now >= self._read_at or not self.parts.known:
            await self._read(config, look, scale)
        now = self._clock.now()
        self._price = self.parts.price(max(config.rate * look + spare, 0.0), now + look)
        settings, taken_up = dict[str, bytes](), list[int]()
        if self._sample is None:
            self._sample = await self._executor.aside(self._sample_of, config, about, now, scale)
        if self._pricer.will_review(now, about.settings):
            # Only what it learns is of use: the price of a sample is none of the fleet.
            found = await self._pricer.find(
                self._sample, config, now=now, until=now + look, spare=0.0, known=about.settings, lessons=lessons
            )
            settings, taken_up = found.settings, [lesson.number for lesson in lessons]
        self._sample.price = self._price
        first = self._first(config, now)
        return LargePlan(self._sample, self._census, first, self.parts.surcharges, settings, taken_up)

    async def _read(self, config: EngineConfig, look: float, scale: float) -> None:
        """Read the next part, or all if some were never read."""
        while True:
            begun = self._clock.now()
            span = max(LOOKS * look, ROUNDS * (1.0 + REST) * self._took * len(self.parts.parts))
            place, standing = await self.parts.read_next(config, self._promises, self._price, begun, span, scale)
            self._keep_some(place, standing)
            self._took = self._clock.now() - begun
            self._read_at = begun + (1.0 + REST) * self._took
            if self.parts.known:
                return

    def _keep_some(self, place: int, standing: FleetColumns) -> None:
        step = max(self._census.sources // SAMPLE, 1)
        some: dict[str, Any] = {
            name: getattr(standing, name)[::step].copy()
            for name in FleetColumns.__slots__
            if isinstance(getattr(standing, name), np.ndarray)
        }
        self._sampled[place] = replace(standing, **some)
        if place == len(self.parts.parts) - 1:
            self._sample = None

    def _sample_of(self, config: EngineConfig, about: FleetColumns, now: float, scale: float) -> Scheduler:
        """A scheduler of the sample, without hosts: what it learns is of sources."""
        pieces = [self._sampled[place] for place in sorted(self._sampled)]
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(piece, name) for piece in pieces])
            for name in FleetColumns.__slots__
            if isinstance(getattr(about, name), np.ndarray)
        }
        whole["host"] = np.zeros_like(whole["host"])
        standing = replace(about, hosts=("",), **whole)
        cost = float(standing.cost[~standing.paused].sum())
        few = replace(config, hosts=("",), budget=cost / scale if cost > 0.0 else 1.0)
        return scheduler_of(standing, few, now, HostLimits())[0]

    def _first(self, config: EngineConfig, now: float) -> FirstAllowance:
        """The allowance for what waits for its first poll, as far as it is known of the parts."""
        count = sum(part.first for part in self.parts.parts)
        if not count or not config.first_rate > 0.0:
            return FirstAllowance()
        seconds = max(count / config.first_rate, SHARED)
        return FirstAllowance(sum(part.first_cost for part in self.parts.parts) / seconds, now + SHARED)
