"""Polling: claimed sources are looked at, so many at once, and what came back is judged.

Rules of this file:
1. Every poll that begins ends as exactly one outcome, unless the engine stops first: then its claim is given back.
2. A fault of ours fails one poll, never the engine, and never looks like an answer.
3. A task costs about as much as a poll: there is one only where a look, or judging what it brought, has to be awaited.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial

from unstale.engine.clock import jumps_of
from unstale.engine.host_limits import HostLimits
from unstale.engine.judge import LARGE, KeptBody, judge, judge_apart, unjudged
from unstale.engine.listed import parsed
from unstale.engine.outcomes import Begun, PollOutcome
from unstale.engine.window import PollWindow
from unstale.errors import InputError, TooLateError
from unstale.fingerprint import Content
from unstale.keeper.outcomes import Answer
from unstale.logs import Tell
from unstale.ports import Aside, Body, CallOff, Claim, Clock, Ended, Fetched

Look = Callable[[Claim], Awaitable[Fetched]]
#: begins a look that need not be awaited; None if it has to be
Begin = Callable[[Claim, Ended], CallOff | None]
ContentOf = Callable[[Claim], Content | None]

#: the next turn comes early when so little of what may be open is
IDLE_SHARE = 0.1
#: seconds that a poll has to end once it was told to
LAST = 0.25
#: answers by which a host says that we ask too much
REFUSALS = frozenset({429, 503})


class PollsUnderWay:
    """The polls that are under way, at most `most`, and the claims that wait for one of them to end.

    `look` polls a claimed source and never raises for what the source does; `begin` does so without being awaited,
    where it can; `content` says what counts in its body. Bodies of which only a part counts are parsed in `aside`,
    where that can be ended; without it in a thread. `kept` gives the newest copy. `ended` takes each outcome with its
    host. A claim that `begins` refuses is let go, and its refuser gives it back; `unbegun` hears of one begun too late.
    """

    def __init__(
        self,
        most: int,
        look: Look,
        content: ContentOf,
        host_limits: HostLimits,
        clock: Clock,
        tell: Tell,
        *,
        ended: Callable[[PollOutcome, str], None],
        begins: Callable[[Claim, str], bool] = lambda claim, host: True,
        unbegun: Callable[[Claim, str], None] = lambda claim, host: None,
        begin: Begin = lambda claim, ended: None,
        aside: Aside | None = None,
        kept: KeptBody | None = None,
    ) -> None:
        self.most, self.host_limits = most, host_limits
        self._look, self._content, self._clock, self._tell = look, content, clock, tell
        self._ended, self._begins, self._begin, self._aside = ended, begins, begin, aside
        self._unbegun, self._kept, self._jumps = unbegun, kept, jumps_of(clock)
        #: what is being polled, by token, and how that is called off
        self.under_way: dict[int, tuple[Claim, CallOff]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._window = PollWindow(most)
        #: how many have ended
        self.ended = 0
        #: claimed ahead: they begin as others end, so that nobody waits for the store
        self.ahead: deque[tuple[Claim, str]] = deque()
        #: set when so few polls are left that a new turn is worth it
        self.idle = asyncio.Event()
        self._over = asyncio.Event()

    def start(self, claim: Claim, host: str) -> None:
        """Begin a poll, or as soon as another one has ended."""
        if len(self.under_way) >= self._window.size:
            self.ahead.append((claim, host))
            return
        if not self._begins(claim, host):
            return
        begun = Begun(self._clock.now(), self._jumps())
        came = partial(self._came, claim, host, begun)
        try:
            call_off = self._begin(claim, came)
        except Exception as error:
            self.under_way[claim.token] = claim, lambda: None
            asyncio.get_running_loop().call_soon(came, error)
            return
        self.under_way[claim.token] = claim, call_off or self._task(self._poll(claim, host, begun))

    def held(self) -> list[Claim]:
        """The claims that are being polled or wait for it."""
        return [*(claim for claim, _ in self.under_way.values()), *(claim for claim, _ in self.ahead)]

    def leave(self) -> list[Claim]:
        """Those that wait for others to end are begun no more."""
        left, self.ahead = self.ahead, deque()
        for _, host in left:
            self.host_limits.end(host)
        return [claim for claim, _ in left]

    async def rest(self, seconds: float) -> None:
        """Sleep, unless polls that end make room before."""
        if self._window.turn(self.ended, self._clock.now(), full=bool(self.ahead)):
            self._go_on()
        self.idle.clear()
        if not self.under_way:
            await self._clock.sleep(seconds)
            return
        sleeper = asyncio.ensure_future(self._clock.sleep(seconds))
        waiter = asyncio.ensure_future(self.idle.wait())
        _, rest = await asyncio.wait({sleeper, waiter}, return_when=asyncio.FIRST_COMPLETED)
        for task in rest:
            task.cancel()

    async def finish(self, grace: float) -> list[Claim]:
        """Let what is under way end within the grace, and end the rest; the claims that have no outcome."""
        left = self.leave()
        if self.under_way:
            self._over.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), grace)
        late = list(self.under_way.values())
        self.under_way.clear()
        for _, call_off in late:
            call_off()
        if self._tasks:  # Who does not even let itself be ended is left behind.
            await asyncio.wait(self._tasks, timeout=LAST)
        return left + [claim for claim, _ in late]

    async def judged(self, claim: Claim, fetched: Fetched) -> tuple[Answer, Body | None]:
        """Has it changed? InputError if its body is more than can be parsed."""
        return await judge_apart(claim, fetched, self._content(claim), self._aside, self._kept)

    def _go_on(self) -> None:
        while self.ahead and len(self.under_way) < self._window.size:
            self.start(*self.ahead.popleft())

    def _task(self, work: Coroutine[None, None, None]) -> CallOff:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task.cancel

    def _came(self, claim: Claim, host: str, begun: Begun, found: Fetched | Exception) -> None:
        """A look that was not awaited has ended: judged at once, where that is quick."""
        if claim.token not in self.under_way:
            return
        try:
            if isinstance(found, Exception):
                raise found
            data = found.body
            if data is not None and (claim.options or unjudged(claim) or len(data) > LARGE or self._content(claim)):
                self.under_way[claim.token] = claim, self._task(self._settle(claim, host, begun, found))
                return
            answer, body = judge(claim, found, None)
            outcome = PollOutcome(claim, answer, found, body)
        except TooLateError:
            self._let_go(claim, host)
            return
        except Exception as error:
            outcome = self._fault(claim, begun, error)
        self._end(outcome, host, begun)

    async def _poll(self, claim: Claim, host: str, begun: Begun) -> None:
        try:
            found = await self._look(claim)
        except TooLateError:
            self._let_go(claim, host)
            return
        except Exception as error:
            self._end(self._fault(claim, begun, error), host, begun)
            return
        await self._settle(claim, host, begun, found)

    async def _settle(self, claim: Claim, host: str, begun: Begun, fetched: Fetched) -> None:
        try:
            try:
                answer, body = await self.judged(claim, fetched)
                listing = await parsed(claim, fetched, self._aside) if body is not None else None
                outcome = PollOutcome(claim, answer, fetched, body, listing)
            except InputError as error:  # Its body is more than can be parsed.
                failed = replace(fetched, answer=Answer.FAILED, body=None, reason=str(error))
                outcome = PollOutcome(claim, Answer.FAILED, failed, None)
        except Exception as error:
            outcome = self._fault(claim, begun, error)
        self._end(outcome, host, begun)

    def _fault(self, claim: Claim, begun: Begun, error: Exception) -> PollOutcome:
        """A fault of ours must not end the engine, nor look like an answer."""
        self._tell("fault", {"source": claim.source, "error": repr(error)})
        reason = f"{type(error).__name__} while polling: report it"
        return PollOutcome(claim, Answer.FAILED, Fetched(Answer.FAILED, begun.at, reason=reason), None)

    def _end(self, outcome: PollOutcome, host: str, begun: Begun) -> None:
        if outcome.claim.token not in self.under_way:
            return
        if (jumped := self._jumps()) != begun.jumped:
            outcome = begun.dated(outcome, self._clock.now(), jumped)
        fetched = outcome.fetched
        refused, told = fetched.status in REFUSALS, fetched.rate_limit
        said = refused or told or fetched.retry_after is not None or fetched.spacing or fetched.calls != 1
        self.host_limits.end(host, content=not said)
        if said:
            self.host_limits.heard(
                host,
                self._clock.now(),
                refused=refused,
                retry_after=fetched.retry_after,
                spacing=fetched.spacing,
                rate_limit=told,
                calls=fetched.calls,
            )
        self._ended(outcome, host)
        self._over_with(outcome.claim)

    def _let_go(self, claim: Claim, host: str) -> None:  # Nothing was asked: its claim is to be given back.
        if claim.token in self.under_way:
            self._unbegun(claim, host)
            self._over_with(claim)

    def _over_with(self, claim: Claim) -> None:
        del self.under_way[claim.token]
        self.ended += 1
        self._go_on()
        if len(self.under_way) <= IDLE_SHARE * self._window.size:  # Not for every one: a turn costs as much as a poll.
            self.idle.set()
        if not self.under_way:
            self._over.set()
