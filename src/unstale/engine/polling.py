"""Polling: claimed sources are looked at, so many at once, and what came back is judged.

Rules of this file:
1. Every poll that begins ends as exactly one outcome, unless the engine stops first: then its claim is given back.
2. A fault of ours fails one poll, never the engine, and never looks like an answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace

from unstale.engine.host_limits import HostLimits
from unstale.engine.judge import judge, judge_aside
from unstale.engine.listed import parsed
from unstale.engine.outcomes import PollOutcome
from unstale.errors import InputError
from unstale.fingerprint import Content
from unstale.keeper.outcomes import Answer
from unstale.logs import Tell
from unstale.ports import Aside, Body, Claim, Clock, Fetched

Look = Callable[[Claim], Awaitable[Fetched]]
ContentOf = Callable[[Claim], Content | None]

#: bodies beyond so many bytes are compared in a thread
LARGE = 1 << 18
#: the next turn comes early when so little of what may be open is
IDLE_SHARE = 0.1
#: seconds that a poll has to end once it was told to
LAST = 0.25
#: answers by which a host says that we ask too much
REFUSALS = frozenset({429, 503})


class PollsUnderWay:
    """The polls that are under way, at most `most`, and the claims that wait for one of them to end.

    `look` polls a claimed source and never raises for what the source does; `content` says what counts in its body.
    Bodies of which only a part counts are parsed in `aside`, where that can be ended; without it in a thread.
    `ended` takes each outcome with its host. A claim that `begins` refuses is let go: who refused it gives it back.
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
        begins: Callable[[Claim], bool] = lambda claim: True,
        aside: Aside | None = None,
    ) -> None:
        self.most, self.host_limits = most, host_limits
        self._look, self._content, self._clock, self._tell = look, content, clock, tell
        self._ended, self._begins, self._aside = ended, begins, aside
        self.under_way: dict[asyncio.Task[None], Claim] = {}
        #: claimed ahead: they begin as others end, so that nobody waits for the store
        self.ahead: deque[tuple[Claim, str]] = deque()
        #: set when so few polls are left that a new turn is worth it
        self.idle = asyncio.Event()

    def start(self, claim: Claim, host: str) -> None:
        """Begin a poll, or as soon as another one has ended."""
        if len(self.under_way) >= self.most:
            self.ahead.append((claim, host))
            return
        task = asyncio.create_task(self._poll(claim, host))
        self.under_way[task] = claim
        task.add_done_callback(self._over)

    def held(self) -> list[Claim]:
        """The claims that are being polled or wait for it."""
        return [*self.under_way.values(), *(claim for claim, _ in self.ahead)]

    async def rest(self, seconds: float) -> None:
        """Sleep, unless polls that end make room before."""
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
        left = [claim for claim, _ in self.ahead]
        self.ahead.clear()
        if self.under_way:
            await asyncio.wait(list(self.under_way), timeout=grace)
        late = dict(self.under_way)
        for task in late:
            task.cancel()
        if late:
            # Who does not even let itself be ended is left behind.
            await asyncio.wait(late, timeout=LAST)
        return left + list(late.values())

    def _over(self, task: asyncio.Task[None]) -> None:
        del self.under_way[task]
        if self.ahead:
            self.start(*self.ahead.popleft())
        elif len(self.under_way) <= IDLE_SHARE * self.most:
            # Not for every one of many: a turn of the loop costs about as much as a poll.
            self.idle.set()

    async def _poll(self, claim: Claim, host: str) -> None:
        if not self._begins(claim):
            return
        begun, listing = self._clock.now(), None
        try:
            fetched = await self._look(claim)
            try:
                answer, body = await self.judged(claim, fetched)
                listing = await parsed(claim, fetched, self._aside) if body is not None else None
            except InputError as error:  # Its body is more than can be parsed.
                answer, body = Answer.FAILED, None
                fetched = replace(fetched, answer=answer, body=None, reason=str(error))
        except Exception as error:  # A fault of ours must not end the engine, nor look like an answer.
            answer, body = Answer.FAILED, None
            fetched = Fetched(answer, begun, reason=f"{type(error).__name__} while polling: report it")
            self._tell("fault", {"source": claim.source, "error": repr(error)})
        finally:
            self.host_limits.end(host)
        self.host_limits.heard(
            host,
            self._clock.now(),
            refused=fetched.status in REFUSALS,
            retry_after=fetched.retry_after,
            spacing=fetched.spacing,
        )
        self._ended(PollOutcome(claim, answer, fetched, body, listing), host)

    async def judged(self, claim: Claim, fetched: Fetched) -> tuple[Answer, Body | None]:
        """Has it changed? InputError if its body is more than can be parsed."""
        content = self._content(claim)
        if content is not None and self._aside is not None:
            return await judge_aside(claim, fetched, content, self._aside)
        if fetched.body is not None and (content is not None or len(fetched.body) > LARGE):
            return await asyncio.to_thread(judge, claim, fetched, content)
        return judge(claim, fetched, content)
