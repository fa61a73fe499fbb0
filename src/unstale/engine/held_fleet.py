"""The fleet of a worker: the sources of the shards that it holds, in memory as an engine has all of its own.

Rules of this file:
1. What concerns the fleet as a whole comes from the planner: price, mean interval, the learner's shared state. Due
   times here follow the price, and the store is told of them.
2. What polls teach of the fleet as a whole is gathered, and passed on as a lesson; nothing is taught twice.
3. Once a shard was lost nothing is begun until everything is read anew.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.state import WIDTH, restore
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import promised
from unstale.engine.held_demand import HeldDemand
from unstale.engine.held_following import followed
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.held_signals import HeldMembers, HeldSignals
from unstale.engine.lessons import Untold
from unstale.engine.loading import LoadedFleet
from unstale.engine.published_plan import PublishedPlan
from unstale.engine.pushing import still_hinted
from unstale.engine.said_settings import SAID, fields_said
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.tallies import UntoldPolls
from unstale.keeper.scheduler import Scheduler
from unstale.keeper.spending import seconds_to_next_look
from unstale.logs import Tell
from unstale.ports import LEARNER, Clock, Grant, SharedStore

#: seconds between two looks at due times at least, and times as long as one took
FOLLOW, PART = 1.0, 20.0
#: the share by which the mean interval may move before the fleet is read anew
MOVED = 0.01


class HeldFleet(LoadedFleet):
    """The sources of held shards with what is known of them, and a share of the budget; keeps `Learning`."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        host_limits: HeldHostLimits,
        tell: Tell,
    ) -> None:
        # The allowance for first polls is shared out with the budget.
        super().__init__(executor, replace(config, first_rate=0.0), clock, host_limits, tell)
        self._shared, self._limits = executor, host_limits
        #: first polls per second with an allowance: as the settings give it, and as it is now
        self._first_given = self._first_rate = config.first_rate
        self.plan = PublishedPlan()
        self.bucket.set(0.0, 1.0)
        #: the shards that are held, as they were taken; whether one was lost since the fleet was read
        self.epochs: Mapping[int, int] = {}
        self.lost, self._reading = True, False
        #: the shared state that was told last, and the one that is gone by; the mean interval that is
        self._told_state, self._state, self._scale = b"", b"", 0.0
        self._follow_at, self._demand = -math.inf, HeldDemand()
        #: what collections tell
        self.signals = HeldSignals(executor, config.owner, clock)
        #: all that was ever put into the bucket beside the share
        self.credited = 0.0
        #: sources that were sent away from a busy host since they were polled last, in that order
        self.sent: dict[int, None] = {}
        #: how sources stood before and after polls, and what these have taught, as far as nobody was told yet
        self.polls, self.untold = UntoldPolls(), Untold()

    def hear(self, plan: PublishedPlan, grant: Grant, epochs: Mapping[int, int], state: bytes) -> bool:
        """What a sign of life brought; whether a shard was lost or taken."""
        self.outdated |= (plan.listings is None) != (self.plan.listings is None)
        self.plan, self._told_state = plan, state
        # What came in until now came in by the share of before.
        self.bucket.level(self._clock.now())
        self.bucket.set(grant.share, plan.burst_of(grant.share, self.scheduler.put_aside()))
        self.bucket.credit(max(grant.credit - self.credited, 0.0))
        self.credited = grant.credit
        self.outdated |= abs(plan.scale - self._scale) > MOVED * self._scale
        if epochs == self.epochs:
            return False
        self.lost = self.lost or any(epochs.get(shard) != epoch for shard, epoch in self.epochs.items())
        self.epochs, self.outdated = dict(epochs), True
        return True

    def amend(self, settings: Mapping[str, bytes], hosts: tuple[str, ...] | None = None) -> None:
        """Go by what the settings give and operators have said to the store since."""
        before = self.config.contracts, self.config.granted
        super().amend(settings, hosts)
        self.outdated |= (self.config.contracts, self.config.granted) != before
        self._first_rate = fields_said(settings.get(SAID, b"")).get("first_rate", self._first_given)
        self.config = replace(self.config, first_rate=0.0)

    def shift(self, by: float) -> None:
        """The clock was set: due times that no longer make sense are made anew when the fleet is read."""
        self._follow_at += by
        self.bucket.shift(by)
        self.outdated = True

    async def relearn(self) -> None:
        """Read the sources of the held shards from the store."""
        # What is heard meanwhile may not be in it: a shard that goes then is lost, whatever was read.
        epochs, self.outdated, self._reading = self.epochs, False, True
        async with self.lock:
            owner, plan, promises, self.stirred = self.config.owner, self.plan, self.config.contracts, False
            self.untold.keep(self.lesson())
            await self._keep_signals(whole=True)
            standing, self._promises, pushes, members = await self._shared.do(
                lambda store: (
                    store.held_fleet(owner, WIDTH),
                    promised(store, promises),
                    store.pushes(),
                    HeldMembers.read(store, owner, plan.listings),
                ),
                long=True,
            )
            now, few = self._clock.now(), float(standing.cost[~standing.paused].sum())
            config = replace(
                self.config,
                hosts=standing.hosts,
                budget=few / plan.scale if few > 0.0 else 1.0,
                objective=plan.objective or self.config.objective,
            )
            before = self.scheduler.due_times()
            scheduler, late = await self._shared.aside(scheduler_of, standing, config, now, self._limits)
            scheduler.asked_since(before)
            scheduler.asked[still_hinted(scheduler, pushes)] = True
            scheduler.asked[late] = False
            scheduler.price = plan.price or scheduler.price
            await self._shared.aside(
                self.signals.collect, scheduler, members, pushes, standing.settings, plan.listings, now
            )
            self.scheduler, self.config = scheduler, replace(self.config, hosts=standing.hosts)
            self._longest = scheduler.learner.columns.longest.copy()
            self.keep_promises()
            self.dear()
            self.taken = np.zeros(len(scheduler.ids), np.bool_)
            self.take(self.rows([claim.source for claim in self.held()]))
            self._told_state = self._state = standing.settings.get(LEARNER, b"")
            self._scale = plan.scale
            self.untold.begin(scheduler.learner.timing)
            if len(late):
                ids, due, was = scheduler.ids[late].tolist(), scheduler.due_at[late].tolist(), standing.due[late]
                await self._shared.do(lambda store: store.set_due(ids, due, was=was.tolist()))
        self.outdated |= self.config.contracts != promises
        self.lost = any(self.epochs.get(shard) != epoch for shard, epoch in epochs.items())
        self._reading, self._follow_at = False, -math.inf
        self._tell("loaded", {"sources": len(self.scheduler.ids)})

    async def look_around(self) -> None:
        """Has another process written, or a sign of life brought something new? Then the fleet goes by it."""
        if (seen := self._shared.moved()) != self._seen:
            self._seen, self.stirred = seen, True
        if self.outdated or self._reading:
            await self.relearn()
        elif self._told_state != self._state:
            await self._hear_state()

    async def catch_up(self, now: float) -> None:
        """Others have made sources due: those of which they tell, or else whoever is."""
        told = await self._shared.do(lambda store: None if (some := store.hastened()) is None else store.heads(some))
        if told is None:
            return await super().catch_up(now)
        return await self._made_due({head.source: head.due for head in told if head.due <= now}, now)

    async def _hear_state(self) -> None:
        """What is learned of the fleet as a whole was reviewed: what is recorded next was learned under that."""
        async with self.lock:
            settings = (await self._shared.do(lambda store: store.columns_of([], WIDTH))).settings
            learner, state = self.scheduler.learner, settings.get(LEARNER, b"")
            self.untold.keep(self.lesson())
            lives = learner.shared.half_lives.copy()
            if restore(learner, state):
                learner.shared.half_lives[:] = lives
            self._told_state = self._state = state
            self.untold.begin(learner.timing)

    async def follow(self, now: float) -> None:
        """Due times follow the price."""
        if now < self._follow_at or not len(self.scheduler.ids):
            return
        async with self.lock:
            scheduler, plan = self.scheduler, self.plan
            scheduler.price = plan.price
            self.cap_hosts()
            self.keep_promises()
            self.dear()
            look = seconds_to_next_look(scheduler.learner.columns.cost, plan.scale, plan.rate)
            begun = self._clock.now()
            found = await self._shared.aside(followed, scheduler, now, look, plan.listings)
            rows, due, self._demand.by_signals = found
            # Who was sent away from a busy host has its turn there, whatever the price does meanwhile.
            others = ~np.isin(rows, self.rows(list(self.sent)))
            rows, due = rows[others], due[others]
            if len(rows):
                ids, was = scheduler.ids[rows].tolist(), scheduler.due_at[rows].tolist()
                await self._shared.do(lambda store: store.set_due(ids, due.tolist(), was=was))
                scheduler.moved(rows, due)
            await self._keep_signals()
        self._follow_at = now + max(FOLLOW, PART * (self._clock.now() - begun))

    def leave_alone(self, sources: Sequence[int]) -> None:
        """Begin no more polls of these: others are to have them."""
        self.taken[self.rows(sources)] = True

    def demand(self, now: float) -> dict[str, float]:
        """What the planner and others go by, asked once with every sign of life."""
        return {**self._demand.facts(self.scheduler, self.taken, now), "credited": self.credited}

    @property
    def unit(self) -> str:
        """What the budget counts, as the planner tells."""
        return self.plan.cost_in

    @property
    def first_rate(self) -> float:
        """First polls per second that have an allowance of their own."""
        return self._first_rate

    async def scheduler_for(self, sources: Sequence[int]) -> Scheduler:
        """One scheduler knows them all; how they stand is remembered where the planner has sketches of them."""
        self.polls.begin(self.scheduler, self.rows(sources) if self.plan.in_parts else None)
        return self.scheduler

    def recorded(self, sources: Sequence[int], late: int, beyond: float) -> None:
        """If a claim was lost, the store has not learned what we have."""
        super().recorded(sources, late, beyond)
        if not late:
            self.polls.end(self.scheduler, self._clock.now())

    def lesson(self) -> Floats | None:
        """What polls have taught of the fleet as a whole since this was asked last; None if there is no state yet."""
        return self.untold.take(self.scheduler.learner.timing)

    async def keep_signals(self) -> None:
        """Others may hold the collections from now on: what was learned of them is kept."""
        async with self.lock:
            await self._keep_signals(whole=True)

    async def _keep_signals(self, *, whole: bool = False) -> None:
        # Of a shard that was lost others know better.
        if not self.lost:
            await self.signals.keep(self.scheduler, self._clock.now(), whole=whole)
