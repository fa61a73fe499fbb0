"""A fleet that is too large to be held, in parts: each is read now and then and remembered by its sketch alone.

Rules of this file:
1. At most one part is in memory. A part is a range of ids; the last one has no end, and new sources are in it.
2. Between two looks at a part its sketch goes by what workers tell of their polls. What was recorded before a part was
   read is in it already.
3. A host whose sources are in several parts has in each the share of its cap that its sources there have of all.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unstale.core.learning.part_sketch import PartSketch, price_of_parts
from unstale.core.learning.state import WIDTH
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import Promises, bounded
from unstale.engine.first_round import never_polled
from unstale.engine.host_limits import HostLimits
from unstale.engine.pricing import surcharges_of
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import PolledSources, asleep, learner_with
from unstale.frozen import dataclass
from unstale.ports import LEARNER, FleetColumns, HostCount, SharedStore

#: sources in a part, and of a fleet that are kept to look at it as a whole
PART, SAMPLE = 50_000, 50_000


@dataclass(slots=True)
class SketchedPart:
    """Sources with ids above `after`, up to `upto` if it is said: how they stood at a moment, in a sketch."""

    after: int
    upto: int | None = None
    read_at: float = -math.inf
    sketch: PartSketch | None = None
    #: what waits for its first poll: how many, and what that costs
    first: int = 0
    first_cost: float = 0.0
    surcharges: Mapping[str, float] | None = None


class _Shares(HostLimits):
    """Of hosts' caps the share that a part of their sources has."""

    def __init__(self, limits: HostLimits, here: Mapping[str, int], all_of: Mapping[str, int]) -> None:
        super().__init__()
        self._limits, self._here, self._all_of = limits, here, all_of

    def cap(self, name: str) -> float:
        here = self._here[name]
        return self._limits.cap(name) * here / max(self._all_of.get(name, here), here)


class FleetInParts:
    """The parts of a fleet, with `scale` as its mean interval."""

    def __init__(self, executor: StoreExecutor[SharedStore], host_limits: HostLimits, size: int = PART) -> None:
        self._executor, self._host_limits, self._size = executor, host_limits, size
        self.parts, self._next = [SketchedPart(0)], 0
        self._hosts: dict[str, int] = {}
        self._state, self._scale, self._objective = b"", 1.0, "freshness"

    @property
    def known(self) -> bool:
        """Whether all parts have been read."""
        return all(part.sketch is not None for part in self.parts)

    def count_hosts(self, hosts: list[HostCount]) -> None:
        """How many sources the hosts have that have a cap."""
        self._hosts = {
            one.name: one.sources for one in hosts if one.name and self._host_limits.cap(one.name) < math.inf
        }

    async def read_next(
        self, config: EngineConfig, promises: Promises, price: float, now: float, span: float, scale: float
    ) -> tuple[int, FleetColumns]:
        """Read the part that was not read for the longest time, and remember its sketch around a price; its place."""
        place, part = self._next, self.parts[self._next]
        standing = await self._executor.do(lambda store: store.part(WIDTH, part.after, part.upto, self._size))
        if part.upto is None and len(standing.source) == self._size:
            part.upto = int(standing.source[-1])
            self.parts.append(SketchedPart(part.upto))
        self._next = (place + 1) % len(self.parts)
        self._state, self._scale, self._objective = standing.settings.get(LEARNER, b""), scale, config.objective
        standing = bounded(standing, promises)
        await self._executor.aside(self._sketch, part, standing, config, price, now, span)
        return place, standing

    def _sketch(
        self, part: SketchedPart, standing: FleetColumns, config: EngineConfig, price: float, now: float, span: float
    ) -> None:
        counts = np.bincount(standing.host, minlength=len(standing.hosts)).tolist()
        here = dict(zip(standing.hosts, counts, strict=True))
        awake = float(standing.cost[~standing.paused].sum())
        own = replace(config, hosts=standing.hosts, budget=awake / self._scale if awake > 0.0 else 1.0)
        scheduler, _ = scheduler_of(standing, own, now, _Shares(self._host_limits, here, self._hosts))
        scheduler.price = price
        scheduler.press_hosts(now, now + 0.5 * span)
        sketch = PartSketch.nothing(price, now, span, len(scheduler.ids))
        sketch.add(scheduler.learner, scheduler.ids, asleep(scheduler))
        waiting = never_polled(scheduler)
        waiting = waiting[scheduler.due_at[waiting] <= now]
        part.read_at, part.sketch = now, sketch
        part.first, part.first_cost = len(waiting), float(scheduler.learner.columns.cost[waiting].sum())
        part.surcharges = surcharges_of(scheduler, standing.hosts)

    def take_up(self, told: PolledSources) -> None:
        """Sources were polled: they are taken out of the sketches as they stood, and put in as they stand."""
        if not len(told.source):
            return
        ends = [part.upto if part.upto is not None else math.inf for part in self.parts]
        places = np.array([bisect_left(ends, source) for source in told.source.tolist()])
        for place in np.unique(places).tolist():
            part = self.parts[place]
            if part.sketch is None:
                continue
            mine = told.where(np.flatnonzero((places == place) & (told.at > part.read_at)))
            for states, times in ((mine.before, -1.0), (mine.after, 1.0)):
                learner, sleeping = learner_with(states, self._scale, self._objective, self._state)
                part.sketch.add(learner, mine.source, sleeping, times)
                new = ~np.isfinite(learner.columns.last) & ~np.isfinite(sleeping)
                part.first = max(part.first + int(times) * int(new.sum()), 0)
                part.first_cost = max(part.first_cost + times * float(learner.columns.cost[new].sum()), 0.0)

    def price(self, cost: float, until: float) -> float:
        """The price at which all that falls due until then costs so much."""
        return price_of_parts([part.sketch for part in self.parts if part.sketch is not None], cost, until)

    @property
    def surcharges(self) -> dict[str, float]:
        """How many times as dear a poll is at hosts whose caps bind."""
        found: dict[str, float] = {}
        for part in self.parts:
            for host, factor in (part.surcharges or {}).items():
                found[host] = max(found.get(host, 1.0), factor)
        return found
