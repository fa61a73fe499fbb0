"""A worker among others on one store: it holds no fleet, only what it polls; the price comes from whoever plans.

Rules of this file:
1. Nothing is claimed before the store has heard a sign of life and granted a share of the budget.
2. Beliefs are read when outcomes are recorded: who holds a claim is the only one who changes them.
3. Without a planner the last price and the last share hold.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import SharedTiming
from unstale.core.learning.mixture import Shared
from unstale.core.learning.state import WIDTH
from unstale.engine.config import BURST_SECONDS, EngineConfig, scheduler_of
from unstale.engine.judge import Content
from unstale.engine.lessons import tallied
from unstale.engine.loop import BATCH, BEAT, Engine
from unstale.engine.outcomes import PollOutcome
from unstale.engine.shared_host_limits import SharedHostLimits
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.keeper.scheduler import Scheduler
from unstale.ports import LEARNER, Claim, Clock, Fetched, FleetColumns, SharedStore

#: seconds between signs of life, between lessons passed on, and between looks for what is due while nothing is
LIFE, LESSON, CALM = 1.0, 10.0, 0.1
#: the setting in which a planner tells workers about the fleet as a whole
PLAN = "plan"


class Worker(Engine):
    """Polls what it claims from a store that others claim from too."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        look: Callable[[Claim], Awaitable[Fetched]],
        *,
        content: Callable[[Claim], Content | None] = lambda claim: None,
        tell: Callable[[str, Mapping[str, Any]], None] = lambda name, facts: None,
    ) -> None:
        self._shared = SharedHostLimits()
        self._shared_executor = executor
        super().__init__(executor, config, clock, look, content=content, host_limits=self._shared, tell=tell)
        self.bucket.set(0.0, self.bucket.burst)
        self._scale, self._price, self._dearest = math.nan, math.nan, 1.0
        self._beat_at = self._lesson_at = -math.inf
        #: the learner's shared state as it was published, and as it is here; its tallies when last passed on, and what
        #: could not be passed on
        self._state = b""
        self._learned: tuple[Shared, SharedTiming] | None = None
        self._passed_on, self._unsent = np.zeros(1), np.zeros(1)
        self._most, self._calm = BATCH, BEAT
        #: when the polls of claims must have begun, by token, and those that were not
        self._begin_by: dict[int, float] = {}
        self._late: list[Claim] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set; then finish what is in flight, or give it back, and free the share."""
        try:
            await super().run(stop)
        finally:
            try:
                await self._give_back_late()
                await self._shared_executor.do(lambda store: store.leave(self.config.owner))
            except StoreError as error:
                self._tell("store_failed", {"reason": str(error)})

    async def _step(self) -> float:
        now = self.clock.now()
        if now >= self._beat_at:
            await self._live(now)
        await self._give_back_late()
        now = self.clock.now()
        told = self._executor.moved()
        if told != self._seen:
            self._seen, self._calm = told, BEAT
        if (shut := self.config.opens_in(now)) > 0.0:
            return min(shut, LIFE)
        free = self.config.polls - len(self._polls) - len(self._done)
        room = min(self._most, free, int(self.bucket.level(now) / self._dearest + 1e-9))
        if room < 1 or math.isnan(self._scale):
            return min(max(self.bucket.wait(self._dearest, now), BEAT), CALM)
        claims = await self._executor.do(
            lambda store: store.claim(now, room, lease=self.config.lease, owner=self.config.owner)
        )
        self._begin_all(claims, now)
        self._calm = BEAT if claims else min(2.0 * self._calm, CALM)
        return 0.0 if len(claims) == self._most else self._calm

    async def _live(self, now: float) -> None:
        """A sign of life; what others have to know is passed on, and what the planner says is heard."""
        news = self._shared.taken()
        lesson = None
        if self._learned is not None and now >= self._lesson_at:
            lesson, self._lesson_at = self._taught(), now + LESSON
        held, level = self.bucket.rate, self.bucket.level(now)
        facts = {name: getattr(self.counters, name) for name in ("polls", "changed", "unchanged", "failed")}
        facts |= {"spent": self.bucket.spent, "in_flight": self.in_flight}

        def live(store: SharedStore) -> tuple[float, bytes]:
            if news:
                store.heard(news)
            told = None if lesson is None else lesson.tobytes()
            share = store.beat(self.config.owner, held, level, self.bucket.burst, facts, told)
            return share, store.setting(PLAN)

        try:
            share, published = await self._shared_executor.do(live)
        except StoreError:
            self._shared.keep(news)
            if lesson is not None:
                self._unsent = self._unsent + lesson
            raise
        plan = json.loads(published or b"{}")
        self._scale, self._dearest = plan.get("scale", math.nan), plan.get("dearest", 1.0)
        self._price = plan.get("price", math.nan)
        self.bucket.set(share, max(BURST_SECONDS * share, 2.0 * self._dearest))
        self._beat_at = now + LIFE

    def _begin_all(self, claims: Sequence[Claim], claimed_at: float) -> None:
        # A poll has to end before its claim does.
        latest = claimed_at + 0.5 * self.config.lease
        for claim in claims:
            self._begin_by[claim.token] = min(claim.begin_by, latest)
            # What it costs is known when it is recorded.
            self.bucket.spend(self._dearest)
            self._start(claim, str(claim.source))

    async def _poll(self, claim: Claim, host: str) -> None:
        # The last moment to notice that we were stopped, or that the store took its time: others may be at the host.
        if self.clock.now() <= self._begin_by.pop(claim.token):
            await super()._poll(claim, host)
        else:
            self._late.append(claim)
            self.bucket.spend(-self._dearest)

    async def _give_back_late(self) -> None:
        """Claims that were not begun in time go back; fewer at a time come sooner."""
        late, self._late = self._late, []
        self._most = max(self._most // 2, 1) if late else min(self._most + 1, BATCH)
        if late:
            owner = self.config.owner
            await self._executor.do(lambda store: store.give_back(owner, late))

    async def _record(self, batch: Sequence[PollOutcome]) -> None:
        sources = [outcome.claim.source for outcome in batch]
        standing = await self._executor.do(lambda store: store.columns_of(sources, WIDTH))
        self.scheduler = self._scheduler_of(standing)
        cost = dict(zip(standing.source.tolist(), standing.cost.tolist(), strict=True))
        await super()._record(batch)
        for source in sources:
            self.bucket.spend(cost.get(source, self._dearest) - self._dearest)

    def _scheduler_of(self, standing: FleetColumns) -> Scheduler:
        """The scheduler of a few sources of a fleet, whose mean interval and shared learning are given."""
        state, few = standing.settings.get(LEARNER, b""), float(standing.cost[~standing.paused].sum())
        config = replace(self.config, budget=few / self._scale if few > 0.0 else 1.0)
        known = self._learned is not None and state == self._state
        if known:
            standing = replace(standing, settings={})
        scheduler, _ = scheduler_of(standing, config, self.clock.now(), self.host_limits)
        scheduler.price = self._price
        if known and self._learned is not None:
            scheduler.learner.shared, scheduler.learner.timing = self._learned
        else:
            if self._learned is not None:
                self._unsent = self._taught()
            self._state, self._learned = state, (scheduler.learner.shared, scheduler.learner.timing)
            self._passed_on = tallied(scheduler.learner.timing)
        return scheduler

    def _taught(self) -> Floats:
        """What polls have taught of the fleet as a whole since this was asked last."""
        assert self._learned is not None
        counters = tallied(self._learned[1])
        lesson: Floats = counters - self._passed_on + self._unsent
        self._passed_on, self._unsent = counters, np.zeros(1)
        return lesson

    async def _load(self) -> None:
        """There is no fleet here that could be wrong."""
        self._unlearned = False

    async def _publish(self, now: float, price: float, settings: dict[str, bytes]) -> None:
        """Publishing is the planner's."""
