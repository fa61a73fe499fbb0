"""Adding up a large fleet while it is polled, so that who asks how it stands need not read all of it.

Rule of this file: it takes one part in fifty of the time at most, and what was kept says until when it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import outlook
from unstale.core.learning.state import kept
from unstale.engine.fleet_sums import MANY, SUMS, FleetSums, KeptSums, sums
from unstale.engine.host_limits import HostLimits
from unstale.engine.loading import LoadedFleet
from unstale.engine.store_executor import StoreExecutor
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Bits, Integers, Scheduler, Wholes
from unstale.ports import LEARNER, Clock, Store

#: seconds between two sums at least, and times as long as one takes
EVERY, PART = 5.0, 50.0
#: how many times as long as that they count: the engine may be busy
COUNTS = 3.0


class Summing:
    """Keeps the sums of one fleet in its store."""

    def __init__(
        self, executor: StoreExecutor[Store], fleet: LoadedFleet, clock: Clock, host_limits: HostLimits
    ) -> None:
        self._executor, self._fleet, self._clock, self._host_limits = executor, fleet, clock, host_limits
        self._next = -math.inf

    def wait(self, now: float) -> float:
        """Seconds until the fleet is added up again; 0 if it is time, inf of a small one, which is read as quickly."""
        return max(self._next - now, 0.0) if len(self._fleet.scheduler.ids) > MANY else math.inf

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._next += by

    async def keep(self) -> None:
        """Add up the fleet, and keep that."""
        fleet = self._fleet
        async with fleet.lock:
            now, edited, config = self._clock.now(), fleet.edited, fleet.config
            found = await self._executor.aside(
                _summed, fleet.scheduler, now, config.budget, config.hosts, self._spacing
            )
        every = max(EVERY, PART * (self._clock.now() - now))
        self._next = now + every
        told = KeptSums(now, now + COUNTS * every, edited, config.budget, found)
        await self._executor.do(lambda store: store.record([], settings={SUMS: told.written()}))

    def _spacing(self, host: str) -> float:
        return self._host_limits.rules(host).spacing


@dataclass(frozen=True, slots=True)
class _HeldSources:
    """A scheduler's sources as sums take them."""

    source: Integers
    paused: Bits
    failures: Wholes
    weight: Floats
    cost: Floats
    host: Wholes
    beliefs: Floats
    last: Floats
    found: Floats
    settings: dict[str, bytes]


def _summed(
    scheduler: Scheduler, now: float, budget: float, hosts: tuple[str, ...], spacing: Callable[[str], float]
) -> FleetSums:
    columns = scheduler.learner.columns
    held = _HeldSources(
        scheduler.ids,
        scheduler.paused,
        scheduler.failures,
        scheduler.weight,
        columns.cost,
        np.asarray(scheduler.host),
        columns.rows,
        scheduler.answered,
        columns.found,
        {LEARNER: kept(scheduler.learner)},
    )
    return sums(held, outlook(held, now), budget, hosts, spacing)
