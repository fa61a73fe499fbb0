"""The engine: claim what is due, poll it, record what came of it, for as long as it is let.

Rules of this file:
1. Only what the bucket holds is claimed; who is claimed is polled or given back.
2. Outcomes are recorded in batches by one task. While a batch is on its way to the disk the next one gathers.
3. A store that fails stops claims, never outcomes: they are kept and recorded once it is back.
4. The scheduler is touched under its lock: planning a large fleet takes a while, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unstale.addresses import host_of
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.budget import Bucket
from unstale.engine.config import LATEST, EngineConfig, next_look, scheduler_of
from unstale.engine.host_limits import HostLimits
from unstale.engine.judge import Content, judge
from unstale.engine.outcomes import Counters, PollOutcome, entries_of, rows_of
from unstale.engine.peers import claim_now
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.summary import summary
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import LEARNER, Claim, Clock, Fetched, Price, Store

#: seconds between two claims at least, and between two looks at a store that others may have moved
BEAT, LOOK = 0.02, 0.05
#: most sources claimed at once, and outcomes recorded at once
BATCH = 500
#: a poll whose host is free within so many seconds is held, others are given back until then
HOLD = 2.0
#: polls that may wait at one busy host
LINE = 64
#: sources that may be claimed beyond those that are being polled
AHEAD = 512
#: the next turn comes early when so little of what may be open is
IDLE_SHARE = 0.1
#: bodies beyond so many bytes are compared in a thread
LARGE = 1 << 18
#: seconds after which a price is kept, with how things stand, and at the very first
PULSE, FIRST_PULSE = 60.0, 3.0
#: answers by which a host says that we ask too much
REFUSALS = frozenset({429, 503})
#: seconds until a store that failed is tried again, at first and at most
AGAIN, AGAIN_AT_MOST = 0.5, 30.0


class Engine:
    """Keeps the copies of one store fresh within a budget.

    `look` polls a claimed source and never raises for what the source does; `content` says what counts in its body.
    `moved` changes when another process has written to the store; `tell(name, facts)` hears of events.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        config: EngineConfig,
        clock: Clock,
        look: Callable[[Claim], Awaitable[Fetched]],
        *,
        content: Callable[[Claim], Content | None] = lambda claim: None,
        host_limits: HostLimits | None = None,
        tell: Callable[[str, Mapping[str, Any]], None] = lambda name, facts: None,
    ) -> None:
        self.config, self.counters, self.scheduler = config, Counters(), _no_scheduler()
        #: how things stand with other replicas, in plain JSON
        self.peers: Callable[[], list[dict[str, Any]]] = list
        self.host_limits = host_limits or HostLimits()
        self._executor, self.clock, self._look, self._content, self._tell = executor, clock, look, content, tell
        now = clock.now()
        self.bucket = Bucket(config.rate, config.burst_for(self.scheduler), now)
        self._lock = asyncio.Lock()
        self._polls: dict[asyncio.Task[None], Claim] = {}
        self._lines: dict[str, deque[tuple[float, Claim]]] = {}
        #: claimed ahead: they begin as others end, so that nobody waits for the store
        self._ahead: deque[tuple[Claim, str]] = deque()
        self._timers: set[asyncio.Task[None]] = set()
        self._done: list[PollOutcome] = []
        self._ready, self._woken = asyncio.Event(), asyncio.Event()
        self._seen, self._edited = -1, -1
        #: whether others have written since the last claim: a hint may have made sources due that we expect later
        self._stirred = False
        self._plan_at = self._review_at = -math.inf
        self._published = Price(-math.inf, 0.0, 0.0)
        self._told: tuple[float, ...] = (0, 0, 0, 0.0)
        self._reload = True
        self._took = 0.0
        #: whether the scheduler has learned from outcomes that the store may not have
        self._unlearned = False
        self.started_at = now

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set; then finish what is in flight, or give it back."""
        await self._executor.insist(lambda store: store.give_back(self.config.owner), stop)
        recorder = asyncio.create_task(self._record_forever())
        waker = asyncio.create_task(self._wake_on(stop))
        self._tell("started", {"budget": self.config.budget, "owner": self.config.owner})
        wait = AGAIN
        try:
            while not (stop.is_set() or recorder.done()):
                try:
                    pause = await self._step()
                    wait = AGAIN
                except StoreError as error:
                    self._tell("store_failed", {"reason": str(error)})
                    await self._executor.reopen()
                    pause, wait = wait, min(2.0 * wait, AGAIN_AT_MOST)
                if pause > 0.0 and not stop.is_set():
                    await self._rest(pause)
        finally:
            await self._finish(recorder)
            waker.cancel()
            self._tell("stopped", {"polls": self.counters.polls})
        if not recorder.cancelled():
            # It ends by itself only by a fault of ours, which is not to be hidden.
            recorder.result()

    async def _step(self) -> float:
        """One turn: look around, plan if it is time, claim and begin what is due. Seconds until the next turn."""
        now = self.clock.now()
        told = self._executor.moved()
        if told != self._seen:
            self._seen, self._stirred = told, True
            await self._notice()
        if self._reload:
            await self._load()
        if now >= self._plan_at:
            await self._plan(now)
        if (shut := self.config.opens_in(now)) > 0.0:
            return min(shut, LOOK if self._executor.shared else shut, self._until_plan(now))
        dearest = float(self.scheduler.learner.columns.cost.max(initial=1e-9))
        held = len(self._polls) + len(self._ahead) + sum(map(len, self._lines.values())) + len(self._done)
        free = self.config.polls + AHEAD - held
        room = min(BATCH, free, int(self.bucket.level(now) / dearest + 1e-9))
        if len(self._ahead) > AHEAD // 2:
            # Few large claims cost less than many small ones.
            return min(BEAT, self._idle(now))
        if room < 1:
            pause = self.bucket.wait(dearest, now) if free > 0 else LOOK
            return min(max(pause, BEAT), self._idle(now))
        due = float(self.scheduler.due.min(initial=math.inf))
        if due > now and not self._stirred:
            return min(due - now, self._idle(now))
        claims = await self._executor.do(
            lambda store: store.claim(now, room, lease=self.config.lease, owner=self.config.owner)
        )
        # Who took all there was room for may have left some behind.
        self._stirred = len(claims) == room
        await self._begin(claims, now)
        if len(claims) == BATCH:
            return 0.0
        if claims:
            return BEAT
        return min(due - now, self._idle(now)) if due > now else self._idle(now)

    def _idle(self, now: float) -> float:
        return max(min(LOOK if self._executor.shared else math.inf, self._until_plan(now)), 1e-3)

    def _until_plan(self, now: float) -> float:
        return max(self._plan_at - now, 1e-3)

    async def _rest(self, pause: float) -> None:
        """Sleep, unless an outcome makes room before."""
        self._woken.clear()
        if not self._polls:
            await self.clock.sleep(pause)
            return
        sleeper = asyncio.ensure_future(self.clock.sleep(pause))
        waiter = asyncio.ensure_future(self._woken.wait())
        _, rest = await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._woken.set()

    async def _notice(self) -> None:
        """Another process has written: were sources edited?"""
        edited = await self._executor.do(lambda store: store.counters().get("edited", 0))
        if edited != self._edited:
            self._edited, self._reload = edited, True

    async def _load(self) -> None:
        # Read within the lock: what is recorded between reading and taking over would be forgotten.
        async with self._lock:
            standing = await self._executor.do(lambda store: store.fleet(WIDTH), long=True)
            # Not before: an answer that was recorded meanwhile would look as if it came from the future.
            now = self.clock.now()
            taken = [claim.source for claim in self._held()]
            self.config = replace(self.config.amended(standing.settings), hosts=standing.hosts)
            self.scheduler, late = await self._executor.aside(
                scheduler_of, standing, self.config, now, self.host_limits
            )
            rows = self._rows(taken)
            self.scheduler.take(rows)
            self.bucket.set(self.config.rate, self.config.burst_for(self.scheduler))
            state = {LEARNER: kept(self.scheduler.learner)}
            await self._executor.do(lambda store: store.record([], settings=state))
            if len(late):
                ids, due = self.scheduler.ids[late], self.scheduler.due[late]
                await self._executor.do(lambda store: store.set_due(ids.tolist(), due.tolist()))
        self._reload, self._unlearned, self._plan_at = False, False, now
        self._tell("loaded", {"sources": len(self.scheduler.ids)})

    async def _plan(self, now: float) -> None:
        """Publish the price at which what falls due until the next look spends the budget."""
        settings = (await self._executor.do(lambda store: store.columns_of([], WIDTH))).settings
        self.config = self.config.amended(settings)
        rate = self.config.rate
        self.bucket.set(rate, self.config.burst_for(self.scheduler))
        begun = self.clock.now()
        until = now + next_look(self.scheduler, rate)
        kept_settings: dict[str, bytes] = {}
        async with self._lock:
            scheduler = self.scheduler
            for host in range(len(scheduler.cap)):
                scheduler.cap[host] = self._cap(host)
            if now >= self._review_at:
                # Nobody is like nobody: an empty fleet has nothing to look at.
                if math.isfinite(self._review_at) and len(scheduler.ids):
                    await self._executor.aside(scheduler.learner.review)
                    kept_settings[LEARNER] = kept(scheduler.learner)
                self._review_at = now + max(0.5 * scheduler.learner.scale, until - now)
            allowed = rate * (until - now) + self.bucket.level(now) - 0.5 * self.bucket.burst
            price = await self._executor.aside(scheduler.plan, max(allowed, 0.0), now, until)
            rows, due = await self._executor.aside(scheduler.moves, now, now + 2.0 * (until - now))
            ids, was = scheduler.ids[rows], scheduler.due[rows]
            if len(rows):
                moved, before = due.tolist(), was.tolist()
                await self._executor.do(
                    lambda store: store.set_due(ids.tolist(), moved, was=before), long=len(rows) > BATCH
                )
                scheduler.moved(rows, due)
            # Within the lock: what is recorded next was learned under the state that is published here.
            await self._publish(now, price, kept_settings)
        # Planning may take one part in twenty of the time, but a clock that was set meanwhile must not end it for ever.
        # The shorter of the last two counts: the first one may have had to compile.
        took, self._took = self._took, self.clock.now() - begun
        self._plan_at = max(until, now + min(20.0 * min(took, self._took), LATEST))

    async def _publish(self, now: float, price: float, settings: dict[str, bytes]) -> None:
        news = None
        # Oftener at first, for those who watch it begin.
        pulse = min(max(0.1 * (now - self.started_at), FIRST_PULSE), PULSE)
        if len(self.scheduler.ids) and now - self._published.at >= pulse:
            seen = await self._executor.aside(summary, self.scheduler, now, self.config.budget)
            counters, told = self.counters, self._told
            done = (counters.polls, counters.changed, counters.failed, self.bucket.spent)
            polls, changed, failed, spent = (new - old for new, old in zip(done, told, strict=True))
            news = Price(
                now, price, self.config.budget, seen.fresh, seen.even, int(polls), int(changed), int(failed), spent
            )
            self._published, self._told = news, done
        settings["engine"] = json.dumps(self.view(now)).encode()
        await self._executor.do(lambda store: store.record([], settings=settings, price=news))

    @property
    def in_flight(self) -> int:
        """Polls that are under way."""
        return len(self._polls)

    def view(self, now: float) -> dict[str, Any]:
        """How the engine stands, in plain JSON."""
        counters = self.counters
        return {
            "at": now,
            "started_at": self.started_at,
            "owner": self.config.owner,
            "sources": len(self.scheduler.ids),
            "budget": self.config.budget,
            "price": self.scheduler.price,
            "polls": counters.polls,
            "changed": counters.changed,
            "unchanged": counters.unchanged,
            "failed": counters.failed,
            "spent": self.bucket.spent,
            "fresh": self._published.fresh,
            "even": self._published.even,
            "peers": self.peers(),
            "in_flight": self.in_flight,
            "next_plan": self._plan_at if math.isfinite(self._plan_at) else None,
        }

    async def _begin(self, claims: Sequence[Claim], now: float) -> None:
        rows = self._rows([claim.source for claim in claims])
        self.scheduler.take(rows)
        later: list[tuple[Claim, float]] = []
        costs = self.scheduler.learner.columns.cost
        by_source = dict(zip(self.scheduler.ids[rows].tolist(), rows.tolist(), strict=True))
        for claim in claims:
            row = by_source.get(claim.source)
            if row is None:
                # Added since the fleet was read: once it is known, it is polled.
                self._reload = True
                later.append((claim, now))
                continue
            self.bucket.spend(float(costs[row]))
            host = self._host(row, claim)
            at = self.host_limits.slot(host, now, within=HOLD)
            line = self._lines.get(host)
            if at > now + HOLD or (line is not None and len(line) >= LINE):
                later.append((claim, max(at, now + HOLD)))
                self.bucket.spend(-float(costs[row]))
            elif at <= now and self.host_limits.begin(host):
                self._start(claim, host)
            else:
                self._lines.setdefault(host, deque()).append((at, claim))
                if at > now:
                    timer = asyncio.create_task(self._advance_in(host, at - now))
                    self._timers.add(timer)
                    timer.add_done_callback(self._timers.discard)
        if later:
            await self._postpone(later)

    def _start(self, claim: Claim, host: str) -> None:
        if len(self._polls) >= self.config.polls:
            self._ahead.append((claim, host))
            return
        task = asyncio.create_task(self._poll(claim, host))
        self._polls[task] = claim
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._polls[task]
        if self._ahead:
            self._start(*self._ahead.popleft())
        elif len(self._polls) <= IDLE_SHARE * self.config.polls:
            # Not for every one of many: a turn of the loop costs about as much as a poll.
            self._woken.set()

    def _advance(self, host: str) -> None:
        """Begin the next poll that waits at a host, if it may."""
        line = self._lines.get(host)
        if line and line[0][0] <= self.clock.now() and self.host_limits.begin(host):
            self._start(line.popleft()[1], host)
            if not line:
                del self._lines[host]

    async def _advance_in(self, host: str, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._advance(host)

    async def _poll(self, claim: Claim, host: str) -> None:
        begun = self.clock.now()
        try:
            fetched = await self._look(claim)
            content = self._content(claim)
            if fetched.body is not None and (content is not None or len(fetched.body) > LARGE):
                answer, body = await asyncio.to_thread(judge, claim, fetched, content)
            else:
                answer, body = judge(claim, fetched, content)
        except Exception as error:  # A fault of ours must not end the engine, nor look like an answer.
            answer, body = Answer.FAILED, None
            fetched = Fetched(answer, begun, reason=f"{type(error).__name__} while polling: report it")
            self._tell("fault", {"source": claim.source, "error": repr(error)})
        finally:
            self.host_limits.end(host)
        self.host_limits.heard(
            host,
            self.clock.now(),
            refused=fetched.status in REFUSALS,
            retry_after=fetched.retry_after,
            spacing=fetched.spacing,
        )
        self._done.append(PollOutcome(claim, answer, fetched, body))
        self._ready.set()
        self._advance(host)

    async def accept(self, news: Sequence[tuple[int, Fetched]]) -> int:
        """Take what a peer brought of sources as if it had been polled; of how many. Older than ours counts nothing."""
        by_source = dict(news)
        config, now = self.config, self.clock.now()
        claims = await self._executor.do(
            lambda store: claim_now(store, list(by_source), now, lease=config.lease, owner=config.owner)
        )
        taken, later = 0, []
        known = set(self.scheduler.ids[self._rows(list(by_source))].tolist())
        for claim, due in claims:
            fetched = by_source[claim.source]
            if fetched.polled_at <= claim.last or claim.source not in known:
                later.append((claim, due))
                continue
            self.scheduler.take(self._rows([claim.source]))
            answer, body = judge(claim, fetched, self._content(claim))
            self._done.append(PollOutcome(claim, answer, fetched, body))
            taken += 1
        if later:
            await self._postpone(later)
        self._ready.set()
        return taken

    async def _postpone(self, later: Sequence[tuple[Claim, float]]) -> None:
        """Give claims back, to be due at other times."""
        claims, due = [claim for claim, _ in later], [at for _, at in later]

        def give_back(store: Store) -> None:
            store.set_due([claim.source for claim in claims], due)
            store.give_back(self.config.owner, claims)

        await self._executor.do(give_back)
        known = dict(zip((claim.source for claim in claims), due, strict=True))
        rows = self._rows(list(known))
        self.scheduler.put_back(rows, np.array([known[int(source)] for source in self.scheduler.ids[rows]]))

    async def _record_forever(self) -> None:
        wait = AGAIN
        while True:
            await self._ready.wait()
            if len(self._done) < BATCH and self._ahead:
                # More will have come in a moment, and go to the disk together.
                await self.clock.sleep(BEAT)
            batch = self._done[:BATCH]
            if not batch:
                self._ready.clear()
                continue
            try:
                if self._unlearned:
                    await self._load()
                async with self._lock:
                    self._unlearned = True
                    await self._record(batch)
                    self._unlearned = False
                wait = AGAIN
            except StoreError as error:
                self._tell("store_failed", {"reason": str(error)})
                # What is in memory has learned what the store has not: before it learns it again, it is read anew.
                await asyncio.sleep(wait)
                await self._executor.reopen()
                wait = min(2.0 * wait, AGAIN_AT_MOST)

    async def _record(self, batch: Sequence[PollOutcome]) -> None:
        entries, mine = entries_of(self.scheduler, batch)
        held = await self._executor.do(lambda store: store.record(entries))
        del self._done[: len(batch)]
        late = self.counters.count(mine, held, self._tell)
        self.counters.dropped += len(batch) - len(mine)
        # A lease ran out: the store has not learned what we have.
        self._reload = self._reload or late > 0

    async def _finish(self, recorder: asyncio.Task[None]) -> None:
        """Let what is in flight end, within the grace; give the rest back."""
        waiting = [claim for line in self._lines.values() for _, claim in line]
        waiting += [claim for claim, _ in self._ahead]
        self._lines.clear()
        self._ahead.clear()
        if self._polls:
            await asyncio.wait(list(self._polls), timeout=self.config.grace)
        for task, claim in list(self._polls.items()):
            task.cancel()
            waiting.append(claim)
        for _ in range(3):
            if self._done and not recorder.done():
                await asyncio.wait([asyncio.create_task(self._drained())], timeout=self.config.grace)
        for task in (recorder, *self._timers):
            task.cancel()
        await asyncio.gather(recorder, *self._timers, *self._polls, return_exceptions=True)
        try:
            if waiting:
                await self._executor.do(lambda store: store.give_back(self.config.owner, waiting))
            if len(self.scheduler.ids):
                await self._publish(self.clock.now(), self.scheduler.price, {LEARNER: kept(self.scheduler.learner)})
        except StoreError as error:
            self._tell("store_failed", {"reason": str(error)})

    async def _drained(self) -> None:
        while self._done:
            await asyncio.sleep(0.005)

    def _held(self) -> list[Claim]:
        lines = [claim for line in self._lines.values() for _, claim in line]
        lines += [claim for claim, _ in self._ahead]
        return [*self._polls.values(), *lines, *(outcome.claim for outcome in self._done)]

    def _rows(self, sources: Sequence[int]) -> Integers:
        return rows_of(self.scheduler, sources)

    def _host(self, row: int, claim: Claim) -> str:
        return self.config.hosts[int(self.scheduler.host[row])] or host_of(claim.address)

    def _cap(self, host: int) -> float:
        name = self.config.hosts[host]
        return self.host_limits.cap(name) if name else math.inf


def _no_scheduler() -> Scheduler:
    from unstale.core.learning.learner import Learner

    return Scheduler(Learner(0, 1.0), np.empty(0, np.int64), due=np.empty(0))
