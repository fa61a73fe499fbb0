"""The engine: claim what is due, poll it, record what came of it, for as long as it is let.

Its parts each have a file: `claiming`, `polling`, `recording`, `planning`, and `turns`, which a worker has too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from unstale.engine.budget import Bucket
from unstale.engine.claim_now import claim_now
from unstale.engine.claiming import Claiming
from unstale.engine.clock import Jumps
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits
from unstale.engine.joining import MemberOf, member_like
from unstale.engine.judge import kept_bodies
from unstale.engine.listening import Listener
from unstale.engine.loading import MANY, LoadedFleet
from unstale.engine.outcomes import Counters, PollOutcome
from unstale.engine.planning import Planning
from unstale.engine.polling import Begin, ContentOf, Look, PollsUnderWay
from unstale.engine.recording import Recorder
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.summing import Summing
from unstale.engine.turns import Turns
from unstale.errors import InputError
from unstale.keeper.scheduler import Scheduler
from unstale.logs import Tell, logged
from unstale.ports import Aside, Claim, Clock, Fetched, Store


class Engine:
    """Keeps the copies of one store fresh within a budget.

    `look` polls a claimed source and never raises for what the source does; `begin` does so without being awaited,
    where it can; `content` says what counts in its body. `tell(name, facts)` hears of events. Strangers' bodies are
    parsed in `aside`. `member_of` says how whom a collection tells of is listed. While nothing `listens`, for what
    decides by signals is still being compiled, collections are sources like any other.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        config: EngineConfig,
        clock: Clock,
        look: Look,
        *,
        begin: Begin = lambda claim, ended: None,
        content: ContentOf = lambda claim: None,
        host_limits: HostLimits | None = None,
        tell: Tell = lambda name, facts: None,
        aside: Aside | None = None,
        member_of: MemberOf = member_like,
        listens: Callable[[], bool] = lambda: True,
    ) -> None:
        tell = logged(tell)
        self.clock, self.host_limits = clock, host_limits or HostLimits()
        self._executor, self._content = executor, content
        self._fleet = LoadedFleet(executor, config, clock, self.host_limits, tell)
        self._polls = PollsUnderWay(
            config.polls,
            look,
            content,
            self.host_limits,
            clock,
            tell,
            ended=self._ended,
            begin=begin,
            aside=aside,
            kept=kept_bodies(executor),
        )
        self._recorder = Recorder(executor, self._fleet, clock, tell, lambda: self._claiming.busy)
        self._claiming = Claiming(
            executor, self._fleet, self._polls, self.host_limits, clock, lambda: len(self._recorder.done)
        )
        self._planning = Planning(executor, self._fleet, self._recorder.counters, clock, lambda: self.in_flight)
        self._summing = Summing(executor, self._fleet, clock, self.host_limits)
        self._fleet.held, self._fleet.listens = self._held, listens
        self._recorder.heard = Listener(executor, self._fleet, member_of, tell).heard
        self._jumps = Jumps(clock, leads=True)
        self._turns = Turns(
            executor,
            config,
            self._polls,
            self._recorder,
            tell,
            step=self._step,
            waiting=self._claiming.lines.leave,
            finish=self._planning.finish,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set; then finish what is in flight, or give it back."""
        await self._turns.run(stop)

    async def _step(self) -> float:
        """One turn: look around, plan if it is time, claim and begin what is due. Seconds until the next turn."""
        if by := self._jumps.news():
            for part in (self.host_limits, self._claiming, self._planning, self._summing, self.bucket):
                part.shift(by)
            # Due times that no longer make sense are made anew when the fleet is read.
            self._fleet.outdated = True
        await self._fleet.look_around()
        now = self.clock.now()
        if self._planning.wait(now) <= 0.0:
            if len(self.scheduler.ids) >= MANY:
                # A plan of so many takes seconds, and nothing is claimed meanwhile: those who are due are polled then.
                await self._claiming.step(now, 0.0)
            await self._planning.plan(now)
            now = self.clock.now()
        elif self._summing.wait(now) <= 0.0:
            # Not in the turn in which the fleet was read or planned: the first polls come first.
            await self._summing.keep()
            now = self.clock.now()
        return await self._claiming.step(now, min(self._planning.wait(now), self._summing.wait(now)))

    async def accept(self, news: Sequence[tuple[int, Fetched]]) -> int:
        """Take what a peer brought of sources as if it had been polled; of how many. Older than ours counts nothing."""
        by_source = dict(news)
        fleet, config, now = self._fleet, self.config, self.clock.now()
        claims = await self._executor.do(
            lambda store: claim_now(store, list(by_source), now, lease=config.lease, owner=config.owner)
        )
        taken, later = 0, []
        known = set(self.scheduler.ids[fleet.rows(list(by_source))].tolist())
        for claim, due in claims:
            fetched = by_source[claim.source]
            if fetched.polled_at <= claim.last or claim.source not in known:
                later.append((claim, due))
                continue
            fleet.take(fleet.rows([claim.source]))
            try:
                answer, body = await self._polls.judged(claim, fetched)
            except InputError:
                later.append((claim, due))
                continue
            self._recorder.add(PollOutcome(claim, answer, fetched, body, by_peer=True))
            taken += 1
        if later:
            await self._claiming.postpone(later)
        return taken

    def view(self, now: float) -> dict[str, Any]:
        """How the engine stands, in plain JSON."""
        return self._planning.view(now)

    @property
    def config(self) -> EngineConfig:
        """What may be spent and how, with what operators have set since."""
        return self._fleet.config

    @property
    def scheduler(self) -> Scheduler:
        """What is known of the fleet; another one after sources were edited."""
        return self._fleet.scheduler

    @property
    def bucket(self) -> Bucket:
        """What may be spent now."""
        return self._fleet.bucket

    @property
    def counters(self) -> Counters:
        """What was done since the start."""
        return self._recorder.counters

    @property
    def started_at(self) -> float:
        """When it was made."""
        return self._planning.started_at

    @property
    def in_flight(self) -> int:
        """Polls that are under way."""
        return len(self._polls.under_way)

    @property
    def peers(self) -> Callable[[], list[dict[str, Any]]]:
        """How things stand with other replicas, in plain JSON."""
        return self._planning.peers

    @peers.setter
    def peers(self, view: Callable[[], list[dict[str, Any]]]) -> None:
        self._planning.peers = view

    def _ended(self, outcome: PollOutcome, host: str) -> None:
        self._recorder.add(outcome)
        self._claiming.lines.advance(host)

    def _held(self) -> list[Claim]:
        done = [outcome.claim for outcome in self._recorder.done]
        return [*self._polls.held(), *self._claiming.lines.claims(), *done]
