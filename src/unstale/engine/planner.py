"""The planner of many workers: whoever is elected divides the budget, finds the price and publishes it.

Rules of this file:
1. A planner that has lost its connection is none: it stands for election again before it writes anything.
2. Planning takes one part in five of the time at most; workers go on at the last price meanwhile.
3. Budget, burst and objective are what the store keeps for all, whoever is elected.
4. Due times are moved by who holds their sources: the planner tells the price and moves nothing.
5. A fleet of more than `large` sources is planned in parts.
6. While sources wait for their first polls, workers share the allowance for these beside the budget.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from unstale.core.learning.state import WIDTH
from unstale.engine.budget import spare_of
from unstale.engine.clock import Jumps, rest
from unstale.engine.collecting import learned
from unstale.engine.config import LATEST, EngineConfig
from unstale.engine.first_round import FirstAllowance, first_allowance
from unstale.engine.holding import LIFE
from unstale.engine.host_limits import HostLimits
from unstale.engine.plan_in_parts import LARGE, LargePlan, PlanInParts
from unstale.engine.plan_inputs import PlanInputs
from unstale.engine.pricing import PULSE, Pricer, next_plan
from unstale.engine.published import told_plan
from unstale.engine.pulse import KEPT, done, undone
from unstale.engine.pulse import kept as kept_pulse
from unstale.engine.said import BUDGET
from unstale.engine.said_settings import SAID
from unstale.engine.shared_terms import TERMS, SharedTerms
from unstale.engine.store_executor import StoreExecutor, patience
from unstale.errors import StoreError
from unstale.keeper.scheduler import Scheduler
from unstale.logs import Tell, logged
from unstale.ports import Clock, CrewMember, FleetColumns, Price, SharedStore

#: times as long as a plan took, the next one is not begun
PART = 5.0
#: seconds for which workers share an allowance for first polls at least: they hear of it with their signs of life
SHARED = 5.0 * LIFE


class Planner:
    """Stands for election, and plans while elected."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        config: EngineConfig,
        clock: Clock,
        host_limits: HostLimits,
        tell: Tell = lambda name, facts: None,
        large: float = LARGE,
    ) -> None:
        #: the session by which it plans, 0 while another one does
        self._session, self.plans = 0, 0
        self._executor, self._config, self._clock = executor, config, clock
        self._host_limits, self._tell = host_limits, logged(tell)
        #: as the settings give it, what operators have said since, and whether no plan has gone by that yet
        self._given, self._said, self._anew = config, b"", False
        #: who is alive, and what of the budget has come into nobody's bucket
        self._crew, self._purse = list[CrewMember](), 0.0
        self._pricer = Pricer(executor)
        self._large = PlanInParts(executor, host_limits, self._pricer, clock, large=large)
        self._plan_at, self._jumps, self._edited, self._took = -math.inf, Jumps(clock), -1, 0.0
        self._moved = 0.0
        #: when all were due by the last plan: who is due sooner without having been polled was asked for
        self._due = Scheduler().due_times()
        self._times: deque[float] = deque(maxlen=3)
        self._first = FirstAllowance()

    async def run(self, stop: asyncio.Event) -> None:
        """Look every second whether the planner is gone, or be it; until `stop` is set."""
        planning: asyncio.Task[None] | None = None
        while not stop.is_set():
            try:
                session = await self._executor.do(lambda store: store.elect())
                if session and session != self._session:
                    self._forget()
                    self._tell("elected", {"owner": self._config.owner})
                self._session = session
                if session:
                    if planning is not None and planning.done():
                        ended, planning = planning, None
                        ended.result()
                    if planning is None and self._jumps.news():  # Not meanwhile: it would go on by the time before.
                        self._forget()
                    await self._divide()
                    if planning is None and self._clock.now() >= self._plan_at:
                        planning = asyncio.create_task(self._plan(self._clock.now()))
            except Exception as error:
                # A fault of ours, too, ends one plan only; without its session another worker may try.
                self._session = 0
                if isinstance(error, StoreError):
                    self._tell("store_failed", {"reason": str(error)})
                else:
                    self._tell("plan_failed", {"error": repr(error)})
                await asyncio.sleep(patience(1))
                await self._executor.reopen()
            await rest(self._clock, stop, LIFE)
        self._session = 0
        if planning is not None and planning.cancel():
            await asyncio.gather(planning, return_exceptions=True)

    def _forget(self) -> None:
        self._plan_at = -math.inf
        self._pricer.forget()
        self._large.forget()

    @property
    def elected(self) -> bool:
        """Whether it plans."""
        return self._session != 0

    def close(self) -> None:
        """Give back the store."""
        self._executor.close()

    async def _divide(self) -> None:
        first = self._first.at(self._clock.now())

        def divide(store: SharedStore) -> tuple[EngineConfig, list[CrewMember], float, int, bytes]:
            told = {name: store.setting(name) for name in (TERMS, BUDGET, SAID)}
            config = self._told_by(told)
            return config, *store.divide(config.rate, first), store.counters().get("edited", 0), told[SAID]

        self._config, self._crew, self._purse, edited, said = await self._executor.do(divide)
        self._host_limits.grant(self._config.granted)
        if said != self._said:
            self._said, self._plan_at, self._anew = said, -math.inf, True
        # Who comes or goes by what collections say may be known already: that is no edit.
        moved = sum(one.facts.get("moved", 0) for one in self._crew)
        if (edited, moved) != (self._edited, self._moved):
            self._edited, self._moved, self._plan_at = edited, moved, -math.inf

    def _told_by(self, settings: Mapping[str, bytes]) -> EngineConfig:
        """What the store says that all go by."""
        terms = SharedTerms.read(settings.get(TERMS, b""))
        config = (self._given if terms is None else terms.over(self._given)).amended(settings)
        return replace(config, hosts=self._config.hosts)

    async def _plan(self, now: float) -> None:
        """Publish the price at which what falls due until the next look spends the budget."""
        session = self._session
        if self._anew:
            self._anew = False
            self._large.forget()
        if await self._large.plans(self._edited):
            await self._plan_in_parts(now)
            return
        found = await self._executor.do(lambda store: PlanInputs.read(store, self._config.contracts))
        standing, lessons = found.standing, found.lessons
        self._config = config = replace(self._told_by(standing.settings), hosts=standing.hosts)
        if not len(standing.source):
            self._plan_at = now + LIFE
            return
        scheduler = await self._executor.aside(found.scheduler, config, now, self._host_limits, self._due)
        until = max(next_plan(scheduler, config, now), now + min(PART * self._took, LATEST))
        taught = lessons if self._pricer.will_review(now, standing.settings) else []
        spare = spare_of(self._crew, self._purse, float(scheduler.learner.columns.cost.mean()))
        price = await self._pricer.find(
            scheduler, config, now=now, until=until, spare=spare, known=standing.settings, lessons=taught
        )
        news, pulse = await self._news(standing, scheduler, now)
        settings = price.settings | self._told(scheduler, news or standing.price, now)
        settings |= learned(scheduler, whole=news is not None)
        if news is not None:
            settings[KEPT] = pulse

        def publish(store: SharedStore) -> None:
            self._still_elected(store, session)
            store.publish(settings, news, [lesson.number for lesson in taught])

        await self._executor.do(publish)
        scheduler.moved(price.rows, price.due)
        self._due = scheduler.due_times()
        self.plans += 1
        # The shortest of the last three tells how long it takes: the first ones compile.
        self._times.append(self._clock.now() - now)
        self._took = min(self._times) if len(self._times) == self._times.maxlen else 0.0
        # Once first polls have had their allowance, it is time to see whether all were made.
        self._first = first_allowance(scheduler, config, self._clock.now(), max(SHARED, PART * self._took))
        self._plan_at = min(until, self._first.end) if self._first.rate else until

    async def _plan_in_parts(self, now: float) -> None:
        """The same for a fleet that is too large to be read at once: a part is read, and the price found of all."""
        session = self._session
        about, lessons = await self._executor.do(lambda store: (store.part(WIDTH, -1, 0, 1), store.lessons()))
        self._config = config = self._told_by(about.settings)
        spare = spare_of(self._crew, self._purse, self._large.usual)
        found = await self._large.plan(config, about, lessons, now, spare)
        news, pulse = await self._news(about, found.sample, now)
        settings = found.settings | self._told(found.sample, news or about.price, now, found)
        if news is not None:
            settings[KEPT] = pulse

        def publish(store: SharedStore) -> None:
            self._still_elected(store, session)
            store.publish(settings, news, found.taken_up)

        await self._executor.do(publish)
        self.plans += 1
        self._times.append(self._clock.now() - now)
        self._first = found.first
        self._plan_at = now + LIFE

    @staticmethod
    def _still_elected(store: SharedStore, session: int) -> None:
        if store.elect() != session:
            raise StoreError("the session was lost in which this was planned: nothing was published")

    async def _news(self, standing: FleetColumns, scheduler: Scheduler, now: float) -> tuple[Price | None, bytes]:
        """The price with how all stands, to be kept, if it is time; what was done since is read off the counters."""
        known = standing.price
        if known is not None and now - known.at < PULSE:
            return None, b""
        counters = await self._executor.do(lambda store: store.counters())
        whole = done(counters)
        since = undone(whole, standing.settings.get(KEPT, b""), priced=known is not None)
        return await self._pricer.news(scheduler, self._config, now, since), kept_pulse(whole)

    def _told(
        self, scheduler: Scheduler, known: Price | None, now: float, parts: LargePlan | None = None
    ) -> dict[str, bytes]:
        took = self._times[-1] if self._times else None
        return told_plan(self._config, self._crew, scheduler, known, now, took, parts)
