"""The fleet as one engine holds it in memory: read whole from the store, and anew when somebody has edited it.

Rules of this file:
1. The scheduler is touched under its lock: planning a large fleet takes a while, in a thread of its own.
2. It is read within the lock: what is recorded between reading and taking over would be forgotten.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unstale.addresses import host_of
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.budget import Bucket
from unstale.engine.collecting import SIGNALS, collect
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import rows_of
from unstale.engine.said import BUDGET
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.logs import Tell
from unstale.ports import LEARNER, Claim, Clock, Store


class LoadedFleet:
    """All sources of a store with what is known of them, and the budget for their polls; keeps `Learning`.

    `held` are the claims that are neither recorded nor given back; `loaded` hears that everything was read.
    """

    def __init__(
        self, executor: StoreExecutor[Store], config: EngineConfig, clock: Clock, host_limits: HostLimits, tell: Tell
    ) -> None:
        self.config, self.lock = config, asyncio.Lock()
        self.scheduler = Scheduler()
        self.bucket = Bucket(config.rate, config.burst_for(self.scheduler), clock.now())
        #: what the dearest poll costs
        self.dearest = 1e-9
        #: whether the fleet is not what the store holds
        self.outdated = True
        #: whether others have written since we last looked who waits: a hint may have made sources due that we expect
        #: later
        self.stirred = False
        #: which rows are claimed by us and neither recorded nor given back
        self.taken = np.zeros(0, np.bool_)
        self.held: Callable[[], Sequence[Claim]] = tuple
        self.loaded: Callable[[float], None] = lambda now: None
        self._executor, self._clock, self._host_limits, self._tell = executor, clock, host_limits, tell
        self._seen, self._edited, self._word = -1, -1, b""

    async def look_around(self) -> None:
        """Has another process written? After an edit the fleet is read anew, after a word on the budget planned."""
        seen = self._executor.moved()
        if seen != self._seen:
            self._seen, self.stirred = seen, True
            edited, word = await self._executor.do(
                lambda store: (store.counters().get("edited", 0), store.setting(BUDGET))
            )
            if edited != self._edited:
                self._edited, self.outdated = edited, True
            if word != self._word:
                self._word = word
                self.loaded(self._clock.now())
        if self.outdated:
            await self.relearn()

    async def relearn(self) -> None:
        """Read the fleet from the store."""
        async with self.lock:
            if self.scheduler.collected is not None:
                kept_signals = {SIGNALS: self.scheduler.collected.kept()}
                await self._executor.do(lambda store: store.record([], settings=kept_signals))
            self.stirred = False
            standing = await self._executor.do(lambda store: store.fleet(WIDTH), long=True)
            # Not before: an answer that was recorded meanwhile would look as if it came from the future.
            now = self._clock.now()
            self.config = replace(self.config.amended(standing.settings), hosts=standing.hosts)
            self.scheduler, late = await self._executor.aside(
                scheduler_of, standing, self.config, now, self._host_limits
            )
            self.dearest = float(self.scheduler.learner.columns.cost.max(initial=1e-9))
            self.taken = np.zeros(len(self.scheduler.ids), np.bool_)
            self.take(self.rows([claim.source for claim in self.held()]))
            await self._collect(standing.settings, now)
            self.bucket.set(self.config.rate, self.config.burst_for(self.scheduler))
            state = {LEARNER: kept(self.scheduler.learner)}
            await self._executor.do(lambda store: store.record([], settings=state))
            if len(late):
                ids, due = self.scheduler.ids[late], self.scheduler.due_at[late]
                await self._executor.do(lambda store: store.set_due(ids.tolist(), due.tolist()))
        self.outdated = False
        self.loaded(now)
        self._tell("loaded", {"sources": len(self.scheduler.ids)})

    async def _collect(self, settings: Mapping[str, bytes], now: float) -> None:
        """What collections have told, and what that was worth."""
        members = await self._executor.do(lambda store: store.members(), long=True)
        await self._executor.aside(collect, self.scheduler, members, settings, now)

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """One scheduler knows them all."""
        return self.scheduler

    def take(self, rows: Integers) -> None:
        """These are being polled, until they are recorded or given back."""
        self.scheduler.hold(rows)
        self.taken[rows] = True

    async def catch_up(self, now: float) -> None:
        """Others may have made sources due that we expect later."""
        waiting = dict(await self._executor.do(lambda store: store.waiting(now)))
        rows = self.rows(list(waiting))
        rows = rows[~self.taken[rows]]
        self.scheduler.due_at[rows] = [waiting[source] for source in self.scheduler.ids[rows].tolist()]
        self.stirred = False

    def recorded(self, sources: Sequence[int], late: int) -> None:
        """If a lease ran out, the store has not learned what we have."""
        self.taken[self.rows(sources)] = False
        self.outdated = self.outdated or late > 0

    def rows(self, sources: Sequence[int]) -> Integers:
        """The rows of those of these sources that are known, rising."""
        return rows_of(self.scheduler, sources)

    def host(self, row: int, claim: Claim) -> str:
        """The host whose limits hold for a source."""
        return self.config.hosts[int(self.scheduler.host[row])] or host_of(claim.address)

    def cap_hosts(self) -> None:
        """Hosts may have asked for other spacings since."""
        for number, name in enumerate(self.config.hosts[: len(self.scheduler.cap)]):
            self.scheduler.cap[number] = self._host_limits.cap(name) if name else math.inf
