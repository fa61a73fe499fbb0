"""A worker among others on one store: it holds no fleet, only what it polls; the price comes from whoever plans.

Rules of this file:
1. Nothing is claimed before the store has heard a sign of life and granted a share of the budget.
2. A poll begins before its claim's time to begin is over, or its claim is given back: others may be at the host. That
   is looked at when it is begun, and by who asks in the last moment before the request goes out.
3. Without a planner the last price and the last share hold.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence

from unstale.engine.budget import Bucket
from unstale.engine.clock import jumps_of
from unstale.engine.config import EngineConfig
from unstale.engine.foremost import Foremost
from unstale.engine.judge import kept_bodies
from unstale.engine.listening import MemberKeeper, MemberOf, member_like
from unstale.engine.outcomes import Counters, PollOutcome
from unstale.engine.polling import Begin, ContentOf, Look, PollsUnderWay
from unstale.engine.recording import BATCH, BEAT, Recorder
from unstale.engine.shared_host_limits import SharedHostLimits
from unstale.engine.shared_learning import PublishedPlan, SharedLearning
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.turns import Turns
from unstale.errors import StoreError
from unstale.keeper.costs import POLLS
from unstale.logs import Tell, logged
from unstale.ports import Aside, Claim, Clock, SharedStore

#: seconds between signs of life, between lessons passed on, and between looks for what is due while nothing is
LIFE, LESSON, CALM = 1.0, 10.0, 0.1
#: what the last batch of claims counts in the mean lag
SMOOTH = 0.1
#: the setting in which a planner tells workers about the fleet as a whole
PLAN = "plan"


class Worker:
    """Polls what it claims from a store that others claim from too."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        look: Look,
        *,
        begin: Begin = lambda claim, ended: None,
        content: ContentOf = lambda claim: None,
        tell: Tell = lambda name, facts: None,
        aside: Aside | None = None,
        member_of: MemberOf = member_like,
    ) -> None:
        tell = logged(tell)
        self.config, self._executor, self._clock, self._tell = config, executor, clock, tell
        self._host_limits = SharedHostLimits()
        # The share comes from the store, with the first sign of life.
        self.bucket = Bucket(0.0, 1.0, clock.now())
        self._learning = SharedLearning(executor, config, clock, self._host_limits, self.bucket.spend)
        self._polls = PollsUnderWay(
            config.polls,
            look,
            content,
            self._host_limits,
            clock,
            tell,
            ended=self._ended,
            begins=self._begins,
            unbegun=self._unbegun,
            begin=begin,
            aside=aside,
            kept=kept_bodies(executor),
        )
        self._recorder = Recorder(executor, self._learning, clock, tell, lambda: bool(self._polls.ahead))
        # Members come and go by what their collections say; signals are kept, and not yet planned by.
        self._recorder.heard = MemberKeeper(executor, member_of, tell).heard
        self._turns = Turns(
            executor, config, self._polls, self._recorder, tell, step=self._step, finish=self._give_back_late
        )
        self._foremost = Foremost(executor, self._learning, clock)
        self._beat_at = self._lesson_at = -math.inf
        self._jumps = jumps_of(clock)
        self._jumped = self._jumps()
        self._seen, self._most, self._calm = -1, BATCH, BEAT
        #: when the polls of claims must have begun, by token, and those that were not
        self._begin_by: dict[int, float] = {}
        self._late: list[Claim] = []
        #: what it tells of itself: claims that it passed on, and how long after they were due it claims sources
        self._passed_on, self._lag, self._started_at = 0, 0.0, clock.now()

    @property
    def counters(self) -> Counters:
        """What was done since the start."""
        return self._recorder.counters

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set; then finish what is in flight, or give it back, and free the share."""
        try:
            await self._turns.run(stop)
        finally:
            try:
                await self._executor.do(lambda store: store.leave(self.config.owner))
            except StoreError as error:
                self._tell("store_failed", {"reason": str(error)})

    async def _step(self) -> float:
        now = self._clock.now()
        if now >= self._beat_at or self._jumps() != self._jumped:
            # Also when the clock was set: the next sign of life is not to wait until it has caught up.
            self._jumped = self._jumps()
            await self._live(now)
        await self._give_back_late()
        now, plan = self._clock.now(), self._learning.plan
        seen = self._executor.moved()
        if seen != self._seen:
            self._seen, self._calm = seen, BEAT
        if (shut := self.config.opens_in(now)) > 0.0:
            return min(shut, LIFE)
        free = self.config.polls - len(self._polls.under_way) - len(self._recorder.done)
        # Who cannot begin at once is others' to poll.
        room = min(self._most, free, self._polls.room, int(self.bucket.level(now) / plan.dearest + 1e-9))
        if room < 1 or not plan.scale > 0.0:
            return min(max(self.bucket.wait(plan.dearest, now), BEAT), CALM)
        lease, owner = self.config.lease, self.config.owner
        among = await self._foremost.among(room)

        def claim(store: SharedStore) -> tuple[float, list[Claim]]:
            # By the clock when it is its turn: what waits before it in the line is no delay of the poll's.
            at = self._clock.now()
            return at, store.claim(at, room, lease=lease, owner=owner, among=among)

        claimed_at, claims = await self._executor.do(claim)
        self._foremost.claimed(among, [claim.source for claim in claims])
        self._begin(claims, claimed_at)
        self._calm = BEAT if claims else min(2.0 * self._calm, CALM)
        return 0.0 if len(claims) == self._most else self._calm

    async def _live(self, now: float) -> None:
        """A sign of life; what others have to know is passed on, and what the planner says is heard."""
        news, lesson = self._host_limits.taken(), None
        due = not self._lesson_at - 2.0 * LESSON <= now < self._lesson_at
        if due and (lesson := self._learning.lesson()) is not None:
            self._lesson_at = now + LESSON
        tally = self._learning.tally()
        held, level, counters = self.bucket.rate, self.bucket.level(now), self.counters
        facts: dict[str, float] = {
            name: getattr(counters, name) for name in ("polls", "changed", "unchanged", "failed")
        }
        facts |= {
            "spent": self.bucket.spent,
            "in_flight": len(self._polls.under_way),
            "late": self._passed_on,
            "lag": self._lag,
            "price": self._learning.plan.price,
            "started_at": self._started_at,
        }

        def live(store: SharedStore) -> tuple[float, bytes]:
            if news:
                store.heard(news)
            if tally:
                store.tally(tally)
            told = None if lesson is None else lesson.tobytes()
            share = store.beat(self.config.owner, held, level, self.bucket.burst, facts, told)
            return share, store.setting(PLAN)

        try:
            share, published = await self._executor.do(live)
        except StoreError:
            self._host_limits.keep(news)
            if lesson is not None:
                self._learning.keep(lesson)
            raise
        said = json.loads(published or b"{}")
        self._learning.plan = plan = PublishedPlan(
            said.get("scale", 0.0),
            said.get("price", 0.0),
            said.get("dearest", 1.0),
            said.get("burst", 0.0) / said.get("rate", 1.0),
            said.get("objective", ""),
            said.get("in_parts", False),
            said.get("cost_in", POLLS),
        )
        self.bucket.set(share, plan.burst_of(share))
        self._beat_at = now + LIFE

    def _begin(self, claims: Sequence[Claim], claimed_at: float) -> None:
        # A poll has to end before its claim does.
        latest = claimed_at + 0.5 * self.config.lease
        if claims:
            lag = sum(max(claimed_at - claim.due, 0.0) for claim in claims) / len(claims)
            self._lag += SMOOTH * (lag - self._lag)
        for claim in claims:
            self._begin_by[claim.token] = min(claim.begin_by, latest)
            # What it costs is known when it is recorded.
            self.bucket.spend(self._learning.plan.dearest)
            self._polls.start(claim, str(claim.source))

    def _begins(self, claim: Claim) -> bool:
        # The last moment to notice that we were stopped, or that the store took its time.
        if self._clock.now() <= self._begin_by.pop(claim.token):
            return True
        self._unbegun(claim)
        return False

    def _unbegun(self, claim: Claim) -> None:
        """Nothing was asked of its host, and nothing is paid for."""
        self._late.append(claim)
        self._passed_on += 1
        self.bucket.spend(-self._learning.plan.dearest)

    def _ended(self, outcome: PollOutcome, host: str) -> None:
        self._recorder.add(outcome)

    async def _give_back_late(self) -> None:
        """Claims that were not begun in time go back; fewer at a time come sooner."""
        late, self._late = self._late, []
        self._most = max(self._most // 2, 1) if late else min(self._most + 1, BATCH)
        if late:
            owner = self.config.owner
            await self._executor.do(lambda store: store.pass_on(owner, late))
