"""Planning of one engine: the price of its fleet is found, due times follow it, and how things stand is published.

Rules of this file:
1. What is recorded next was learned under the state that is published here: both within the scheduler's lock.
2. Planning takes one part in twenty of the time at most.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unstale.core.learning.state import WIDTH, kept
from unstale.engine.collecting import learned
from unstale.engine.config import LATEST
from unstale.engine.first_round import first_allowance
from unstale.engine.loading import LoadedFleet
from unstale.engine.outcomes import Counters
from unstale.engine.pricing import PULSE, FoundPrice, Pricer, next_plan, surcharges_of
from unstale.engine.pulse import KEPT, Done, done, undone
from unstale.engine.pulse import kept as kept_pulse
from unstale.engine.recording import BATCH
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.spending import SOONEST
from unstale.ports import LEARNER, Clock, Price, Store

#: seconds after which the very first price is kept
FIRST_PULSE = 3.0
#: times as long as a plan took, the next one is not begun
PART = 20.0


class Planning:
    """Plans one fleet when it is time; `in_flight` and `peers` tell of the engine what its view shows."""

    def __init__(
        self,
        executor: StoreExecutor[Store],
        fleet: LoadedFleet,
        counters: Counters,
        clock: Clock,
        in_flight: Callable[[], int],
    ) -> None:
        self.started_at = clock.now()
        self.in_flight = in_flight
        self.peers: Callable[[], list[dict[str, Any]]] = list
        self._executor, self._fleet, self._counters, self._clock = executor, fleet, counters, clock
        self._pricer = Pricer(executor)
        #: what the store had counted when this engine began
        self._began: Done | None = None
        self._plan_at = -math.inf
        self._published = Price(-math.inf, 0.0, 0.0)
        self._took = 0.0
        fleet.loaded = self._loaded

    def wait(self, now: float) -> float:
        """Seconds until the next plan; 0 if it is time."""
        return max(self._plan_at - now, 0.0)

    async def plan(self, now: float) -> None:
        """Publish the price at which what falls due until the next look spends the budget."""
        standing, counters = await self._executor.do(lambda store: (store.columns_of([], WIDTH), store.counters()))
        settings, self._began = standing.settings, self._began or done(counters)
        fleet, begun = self._fleet, self._clock.now()
        fleet.amend(settings)
        fleet.bucket.set(fleet.config.rate, fleet.config.burst_for(fleet.scheduler))
        # First polls fill the time ahead and drive the price up: it is looked at again once they should be over.
        first = first_allowance(fleet.scheduler, fleet.config, now, SOONEST)
        until = next_plan(fleet.scheduler, fleet.config, now)
        until = min(until, first.end) if first.rate else until
        async with fleet.lock:
            fleet.dear()
            fleet.cap_hosts()
            fleet.keep_promises()
            spare = fleet.config.spare(fleet.scheduler, fleet.bucket.level(now), now)
            found = await self._pricer.find(
                fleet.scheduler, fleet.config, now=now, until=until, spare=spare, known=settings
            )
            await self._move(found)
            await self._publish(now, found.settings)
        # A clock that was set meanwhile must not end planning for ever. The shorter of the last two counts: the first
        # one may have had to compile.
        took, self._took = self._took, self._clock.now() - begun
        self._plan_at = max(until, now + min(PART * min(took, self._took), LATEST))

    def shift(self, by: float) -> None:
        """The clock was set."""
        self.started_at += by
        self._plan_at += by
        self._published = replace(self._published, at=self._published.at + by)
        self._pricer.shift(by)

    async def finish(self) -> None:
        """Publish how things stand at the end."""
        scheduler = self._fleet.scheduler
        if len(scheduler.ids):
            await self._publish(self._clock.now(), {LEARNER: kept(scheduler.learner)})

    def view(self, now: float) -> dict[str, Any]:
        """How the engine stands, in plain JSON."""
        fleet, counters = self._fleet, self._counters
        return {
            "at": now,
            "started_at": self.started_at,
            "owner": fleet.config.owner,
            "sources": len(fleet.scheduler.ids),
            "budget": fleet.config.budget,
            "settled": fleet.config.settled,
            "price": fleet.scheduler.price,
            "polls": counters.polls,
            "changed": counters.changed,
            "unchanged": counters.unchanged,
            "failed": counters.failed,
            "spent": fleet.bucket.spent,
            "fresh": self._published.fresh,
            "even": self._published.even,
            "began": (self._began or Done()).plain(),
            "surcharges": surcharges_of(fleet.scheduler, fleet.config.hosts),
            "peers": self.peers(),
            "in_flight": self.in_flight(),
            "next_plan": self._plan_at if math.isfinite(self._plan_at) else None,
        }

    def _loaded(self, now: float) -> None:
        self._plan_at = now

    async def _move(self, found: FoundPrice) -> None:
        """Due times follow the price, but for those that a hint has moved meanwhile."""
        if len(found.rows):
            scheduler = self._fleet.scheduler
            ids, due = scheduler.ids[found.rows].tolist(), found.due.tolist()
            was = scheduler.due_at[found.rows].tolist()
            await self._executor.do(lambda store: store.set_due(ids, due, was=was), long=len(ids) > BATCH)
            scheduler.moved(found.rows, found.due)

    async def _publish(self, now: float, settings: dict[str, bytes]) -> None:
        fleet, news = self._fleet, None
        # Oftener at first, for those who watch it begin.
        pulse = min(max(0.1 * (now - self.started_at), FIRST_PULSE), PULSE)
        if len(fleet.scheduler.ids) and now - self._published.at >= pulse:
            counters, before = await self._executor.do(lambda store: (store.counters(), store.setting(KEPT)))
            whole = done(counters)
            since = undone(whole, before or kept_pulse(self._began or whole), priced=True)
            news = self._published = await self._pricer.news(fleet.scheduler, fleet.config, now, since)
            settings[KEPT] = kept_pulse(whole)
        settings |= learned(fleet.scheduler, whole=news is not None or LEARNER in settings)
        settings["engine"] = json.dumps(self.view(now)).encode()
        await self._executor.do(lambda store: store.record([], settings=settings, price=news))
