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

from unstale.core.checks import Floats
from unstale.core.learning.siblings import siblings_of
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.budget import Bucket
from unstale.engine.collecting import SIBLINGS, collect, learned
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import NOTHING, Promises, keep_promises, promised
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import rows_of
from unstale.engine.pushing import still_hinted, unworthy
from unstale.engine.said import BUDGET
from unstale.engine.said_settings import SAID
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.costs import POLLS
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.logs import Tell
from unstale.ports import COST_IN, LEARNER, Claim, Clock, FleetColumns, Store

#: sources of a fleet that takes seconds to plan, and a moment to look through
MANY = 100_000


class LoadedFleet:
    """All sources of a store with what is known of them, and the budget for their polls; keeps `Learning`.

    `held` are the claims that are neither recorded nor given back; `loaded` hears that everything was read.
    """

    def __init__(
        self, executor: StoreExecutor[Store], config: EngineConfig, clock: Clock, host_limits: HostLimits, tell: Tell
    ) -> None:
        self.config, self.lock = config, asyncio.Lock()
        #: as the settings give it
        self._given = config
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
        #: whether there is what decides by signals; until then collections are sources like any other, and hints are
        #: followed
        self.listens: Callable[[], bool] = lambda: True
        self._deaf = False
        self._executor, self._clock, self._host_limits, self._tell = executor, clock, host_limits, tell
        #: what the store had counted of edits when the fleet was read
        self.edited = -1
        self._seen, self._words = -1, (b"", b"")
        #: what was promised of sources, and their longest waits without that
        self._promises, self._longest = NOTHING, np.empty(0)

    async def look_around(self) -> None:
        """Has another process written? After an edit, or a word on how to go about it, the fleet is read anew; after a
        word on the budget it is planned."""
        seen = self._executor.moved()
        if seen != self._seen:
            self._seen, self.stirred = seen, True
            edited, words = await self._executor.do(
                lambda store: (store.counters().get("edited", 0), (store.setting(BUDGET), store.setting(SAID)))
            )
            if edited != self.edited or words[1] != self._words[1]:
                self.edited, self.outdated = edited, True
            if words != self._words:
                self._words = words
                self.loaded(self._clock.now())
        if self._deaf and self.listens():
            self._deaf, self.outdated = False, True
        if self.outdated:
            await self.relearn()

    async def relearn(self) -> None:
        """Read the fleet from the store."""
        # What comes up while it is read may not be in it: then it is read once more.
        self.outdated = False
        try:
            await self._relearn()
        except BaseException:
            self.outdated = True
            raise

    async def _relearn(self) -> None:
        async with self.lock:
            if kept_signals := learned(self.scheduler, whole=True):
                await self._executor.do(lambda store: store.record([], settings=kept_signals))
            self.stirred = False
            standing, self._promises, names = await self._executor.do(self._read, long=True)
            # Not before: an answer that was recorded meanwhile would look as if it came from the future.
            now = self._clock.now()
            self.amend(standing.settings, standing.hosts)
            before = self.scheduler.due_times()
            self.scheduler, late = await self._executor.aside(
                scheduler_of, standing, self.config, now, self._host_limits, True
            )
            self.scheduler.learner.siblings = siblings_of(names, standing.settings.get(SIBLINGS, b""))
            self.scheduler.asked_since(before)
            self.scheduler.asked[late] = False
            # As they are without promises; where there are none, nobody changes them.
            longest = self.scheduler.learner.columns.longest
            self._longest = longest.copy() if len(self._promises.source) else longest
            self.keep_promises()
            self.dear()
            self.taken = np.zeros(len(self.scheduler.ids), np.bool_)
            self.take(self.rows([claim.source for claim in self.held()]))
            await self._collect(standing.settings, now)
            self.bucket.set(self.config.rate, self.config.burst_for(self.scheduler))
            state = {LEARNER: kept(self.scheduler.learner)}
            await self._executor.do(lambda store: store.record([], settings=state))
            if len(late):
                ids, due = self.scheduler.ids[late], self.scheduler.due_at[late]
                was = standing.due[late].tolist()
                await self._executor.do(lambda store: store.set_due(ids.tolist(), due.tolist(), was=was))
        self.loaded(now)
        self._tell("loaded", {"sources": len(self.scheduler.ids)})

    def _read(self, store: Store) -> tuple[FleetColumns, Promises, list[str]]:
        """The fleet with what its polls were found to cost in this unit and no other, what is promised of it, and the
        addresses by which siblings are known; none of a fleet that takes long to read."""
        if (store.setting(COST_IN) or POLLS.encode()) != self.unit.encode():
            store.record([], settings={COST_IN: self.unit.encode()})
        standing = store.fleet(WIDTH)
        if not standing.beliefs.any():
            # Nobody has taught anything: what was kept is the guess for a fleet of another size, none perhaps.
            known = {name: value for name, value in standing.settings.items() if name != LEARNER}
            standing = replace(standing, settings=known)
        named = {source: address for source, address, _ in store.names()} if len(standing.source) < MANY else {}
        names = [named.get(source, "") for source in standing.source.tolist()] if named else []
        return standing, promised(store, self._given.amended(standing.settings).contracts), names

    def amend(self, settings: Mapping[str, bytes], hosts: tuple[str, ...] | None = None) -> None:
        """Go by what the settings give and operators have said to the store since."""
        self.config = replace(self._given.amended(settings), hosts=self.config.hosts if hosts is None else hosts)
        self._host_limits.grant(self.config.granted)

    async def _collect(self, settings: Mapping[str, bytes], now: float) -> None:
        """What collections have told, and what that was worth."""
        members, pushes = await self._executor.do(lambda store: (store.members(), store.pushes()), long=True)
        if (members or pushes) and not self.listens():
            self._deaf = True
        else:
            await self._executor.aside(collect, self.scheduler, members, pushes, settings, now)
        self.scheduler.asked[still_hinted(self.scheduler, pushes)] = True

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """One scheduler knows them all."""
        return self.scheduler

    def take(self, rows: Integers) -> None:
        """These are being polled, until they are recorded or given back."""
        self.scheduler.hold(rows)
        self.taken[rows] = True

    async def catch_up(self, now: float) -> None:
        """Others may have made sources due that we expect later."""
        # Of many it takes a while to read who waits.
        many = len(self.scheduler.ids) >= MANY
        await self._made_due(dict(await self._executor.do(lambda store: store.waiting(now), long=many)), now)

    async def _made_due(self, waiting: Mapping[int, float], now: float) -> None:
        rows = self.rows(list(waiting))
        rows = rows[~self.taken[rows]]
        due = np.array([waiting[source] for source in self.scheduler.ids[rows].tolist()])
        # Who has never answered is polled anyway.
        sooner = (due < self.scheduler.due_at[rows]) & np.isfinite(self.scheduler.answered[rows])
        if sooner.any():
            passed = await self._passed_over(rows[sooner], due[sooner], now)
            rows, due = rows[~np.isin(rows, passed)], due[~np.isin(rows, passed)]
        self.scheduler.ask(rows, due)
        self.stirred = False

    async def _passed_over(self, rows: Integers, due: Floats, now: float) -> Integers:
        """Of rows that others have made due, those that stay where they were: a hint is not worth a poll of them."""
        ids = self.scheduler.ids[rows].tolist()
        pushes = {one.source: one for one in await self._executor.do(lambda store: store.pushes(ids))}
        if not pushes:
            return rows[:0]
        if not self.listens():
            self._deaf = True
            return rows[:0]
        passed = unworthy(self.scheduler, rows, due, pushes, now)
        if len(passed):
            sources, planned = self.scheduler.ids[passed].tolist(), self.scheduler.due_at[passed].tolist()
            was = due[np.isin(rows, passed)].tolist()
            await self._executor.do(lambda store: store.set_due(sources, planned, was=was))
        return passed

    @property
    def unit(self) -> str:
        """What the budget counts."""
        return self.config.cost_in

    @property
    def first_rate(self) -> float:
        """First polls per second that have an allowance of their own."""
        return self.config.first_rate

    def recorded(self, sources: Sequence[int], late: int, beyond: float) -> None:
        """If a lease ran out, the store has not learned what we have. What polls used besides is paid now."""
        self.bucket.spend(beyond)
        self.taken[self.rows(sources)] = False
        self.outdated = self.outdated or late > 0

    def rows(self, sources: Sequence[int]) -> Integers:
        """The rows of those of these sources that are known, rising."""
        return rows_of(self.scheduler, sources)

    def dear(self) -> None:
        """What polls cost was learned since: if it is much else, the fleet is read anew, for it has another pace."""
        self.dearest = float(self.scheduler.learner.columns.cost.max(initial=1e-9))
        self.outdated = self.outdated or self.scheduler.costs_moved()

    def keep_promises(self) -> None:
        """What contracts allow moves with what is believed of change rates."""
        keep_promises(self.scheduler, self._promises, self._longest)

    def cap_hosts(self) -> None:
        """Hosts may have asked for other spacings since."""
        for number, name in enumerate(self.config.hosts[: len(self.scheduler.cap)]):
            self.scheduler.cap[number] = self._host_limits.cap(name) if name else math.inf
