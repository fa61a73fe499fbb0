"""A worker among others on one store: an engine for the shards that it holds; the price comes from whoever plans.

Rules of this file:
1. Nothing is claimed before the store has heard a sign of life, granted a share of the budget and given shards.
2. Without a planner the last price and the last share hold.
3. A shard that others should hold is polled no more, and let go of once all its polls are recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from unstale.engine.budget import Bucket
from unstale.engine.clock import Jumps
from unstale.engine.config import EngineConfig
from unstale.engine.held_claiming import HeldClaiming
from unstale.engine.held_fleet import HeldFleet
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.held_signals import HeldListener
from unstale.engine.holding import LifeHeard, ShardHolding, SignOfLife
from unstale.engine.host_limits import Rules
from unstale.engine.joining import MemberOf, member_like
from unstale.engine.judge import kept_bodies
from unstale.engine.outcomes import Counters, PollOutcome
from unstale.engine.polling import Begin, ContentOf, Look, PollsUnderWay
from unstale.engine.published_plan import PublishedPlan
from unstale.engine.recording import Recorder
from unstale.engine.said_settings import SAID
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.turns import Turns
from unstale.logs import Tell, logged
from unstale.ports import Aside, Claim, Clock, SharedStore

#: seconds between looks while there is nothing to poll for
CALM = 0.1


class Worker:
    """Polls the sources of the shards that it holds, in a store that others poll from too.

    `life` is a way to the store for signs of life; `rules` is the settings' word for each host.
    """

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        life: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        look: Look,
        *,
        rules: Callable[[str], Rules] | None = None,
        begin: Begin = lambda claim, ended: None,
        content: ContentOf = lambda claim: None,
        tell: Tell = lambda name, facts: None,
        aside: Aside | None = None,
        member_of: MemberOf = member_like,
    ) -> None:
        tell = logged(tell)
        self._executor, self._clock, self._tell = executor, clock, tell
        self._host_limits = HeldHostLimits(rules)
        self._fleet = HeldFleet(executor, config, clock, self._host_limits, tell)
        self._polls = PollsUnderWay(
            config.polls,
            lambda claim: look(self._claiming.timed(claim)),
            content,
            self._host_limits,
            clock,
            tell,
            ended=self._ended,
            begins=lambda claim, host: self._claiming.begins(claim, host, self._holding.sure_until),
            unbegun=lambda claim, host: self._claiming.unbegun(claim, host),
            begin=lambda claim, ended: begin(self._claiming.timed(claim), ended),
            aside=aside,
            kept=kept_bodies(executor),
        )
        self._recorder = Recorder(executor, self._fleet, clock, tell, lambda: self._claiming.busy)
        self._claiming = HeldClaiming(
            executor,
            self._fleet,
            self._polls,
            self._host_limits,
            clock,
            lambda: len(self._recorder.done),
        )
        self._fleet.held = self._held
        self._listener = HeldListener(executor, self._fleet, member_of, tell)
        self._recorder.heard = self._listener.heard
        self._holding = ShardHolding(
            life, config.owner, clock, tell, sign=self._sign, heard=self._heard, untold=self._untold
        )
        self._turns = Turns(
            executor,
            config,
            self._polls,
            self._recorder,
            tell,
            step=self._step,
            waiting=self._claiming.lines.leave,
            finish=self._finish,
        )
        self._jumps = Jumps(clock, leads=True)
        self._edited = -1
        #: shards that others should hold
        self._unwanted: tuple[int, ...] = ()
        self._started_at = clock.now()

    @property
    def counters(self) -> Counters:
        """What was done since the start."""
        return self._recorder.counters

    @property
    def bucket(self) -> Bucket:
        """What may be spent now."""
        return self._fleet.bucket

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set; then finish what is in flight, or give it back, and free the shards."""
        ended = asyncio.Event()
        living = asyncio.create_task(self._holding.run(ended))
        try:
            await self._turns.run(stop)
        finally:
            ended.set()
            await living
            await self._holding.leave()

    async def _step(self) -> float:
        if by := self._jumps.news():
            for part in (self._host_limits, self._claiming, self._holding, self._fleet):
                part.shift(by)
        await self._claiming.give_back_late()
        fleet = self._fleet
        if not fleet.plan.scale > 0.0 or not fleet.epochs:
            return CALM
        await fleet.look_around()
        await self._leave_shards()
        await fleet.follow(self._clock.now())
        return await self._claiming.step(self._clock.now(), CALM)

    async def _leave_shards(self) -> None:
        """What others should hold is not polled any more; once nothing of it is under way, it is theirs."""
        if not self._unwanted:
            return
        unwanted = self._unwanted
        sources = await self._executor.do(lambda store: store.sources_of(unwanted))
        if unwanted != self._unwanted:
            # They are others by now.
            return
        self._fleet.leave_alone(sources)
        if set(sources).isdisjoint(claim.source for claim in self._held()):
            await self._fleet.keep_signals()
            self._holding.let_go = unwanted

    async def _finish(self) -> None:
        await self._claiming.give_back_late()
        await self._fleet.keep_signals()

    def _sign(self, lesson: bool) -> SignOfLife:
        now, counters, fleet = self._clock.now(), self.counters, self._fleet
        facts: dict[str, float] = {
            name: getattr(counters, name) for name in ("polls", "changed", "unchanged", "failed")
        }
        facts |= {
            "spent": fleet.bucket.spent,
            "in_flight": len(self._polls.under_way),
            "late": self._claiming.passed_on,
            "lag": self._claiming.lag,
            "price": fleet.plan.price,
            "started_at": self._started_at,
            "moved": self._listener.moved,
            "shards": len(fleet.epochs),
            "sources": len(fleet.scheduler.ids),
            **fleet.demand(now),
        }
        return SignOfLife(
            fleet.bucket.rate,
            fleet.bucket.level(now),
            fleet.bucket.burst,
            facts,
            fleet.lesson() if lesson else None,
            fleet.polls.take(),
            self._host_limits.taken(),
        )

    def _untold(self, said: SignOfLife) -> None:
        self._host_limits.keep(said.words)
        if said.lesson is not None:
            self._fleet.untold.keep(said.lesson)

    def _heard(self, found: LifeHeard) -> None:
        fleet = self._fleet
        # What was left alone for others and is ours again is polled again.
        ours_again = set(self._unwanted) - set(found.held.unwanted)
        fleet.outdated |= found.edited != self._edited or bool(ours_again)
        self._edited, self._unwanted = found.edited, found.held.unwanted
        fleet.amend({SAID: found.said})
        if fleet.hear(PublishedPlan.read(found.plan), found.grant, found.held.epochs, found.state):
            self._host_limits.take_over(self._clock.now(), found.words)
            if fleet.lost:
                # Nothing that waits may begin: its host is another's now, perhaps.
                self._claiming.pass_on([*self._claiming.lines.leave(), *self._polls.leave()])

    def _ended(self, outcome: PollOutcome, host: str) -> None:
        self._claiming.over(outcome.claim)
        self._recorder.add(outcome)
        self._claiming.lines.advance(host)

    def _held(self) -> list[Claim]:
        done = [outcome.claim for outcome in self._recorder.done]
        return [*self._polls.held(), *self._claiming.lines.claims(), *self._claiming.late, *done]
