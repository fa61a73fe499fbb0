"""Lines at busy hosts: polls that are claimed and wait for their host's turn, each host's in order."""

from __future__ import annotations

import asyncio
from collections import deque

from unstale.engine.host_limits import HostLimits
from unstale.engine.polling import PollsUnderWay
from unstale.ports import Claim, Clock

#: polls that may wait at one busy host, and how many times as many as it is polled at once if those are more
LINE, LINES = 64, 8


class HostLines:
    """The claims in line at hosts, and when each may begin; at no host more than `most`, or `LINE`."""

    def __init__(self, polls: PollsUnderWay, host_limits: HostLimits, clock: Clock, most: int) -> None:
        self._polls, self._host_limits, self._clock, self._most = polls, host_limits, clock, most
        self._lines: dict[str, deque[tuple[float, Claim]]] = {}
        self._timers: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def claims(self) -> list[Claim]:
        """All who wait."""
        return [claim for line in self._lines.values() for _, claim in line]

    def at(self, host: str) -> int:
        """How many wait at a host."""
        return len(self._lines.get(host, ()))

    def longest(self, host: str) -> int:
        """How many may wait at a host."""
        return max(LINE, min(LINES * self._host_limits.host(host).rules.concurrency, self._most))

    def shift(self, by: float) -> None:
        """The clock was set: who waits in line waits as long as before."""
        for line in self._lines.values():
            line.extend([(at + by, claim) for at, claim in line])
            for _ in range(len(line) // 2):
                line.popleft()

    def leave(self) -> list[Claim]:
        """Nothing is begun any more; the claims that waited."""
        left = self.claims()
        self._lines.clear()
        for timer in self._timers:
            timer.cancel()
        return left

    def wait(self, claim: Claim, host: str, at: float, now: float, *, first: bool = False) -> None:
        """Go to the end of the line, or be the first, to begin at a time or once others have ended."""
        line = self._lines.setdefault(host, deque())
        (line.appendleft if first else line.append)((at, claim))
        if at > now:
            timer = asyncio.create_task(self._advance_in(host, at - now))
            self._timers.add(timer)
            timer.add_done_callback(self._timers.discard)

    def advance(self, host: str) -> None:
        """Begin the next poll that waits at a host, if it may."""
        line = self._lines.get(host)
        if line and line[0][0] <= self._clock.now() and self._host_limits.begin(host):
            claim = line.popleft()[1]
            if not line:
                del self._lines[host]
            self._polls.start(claim, host)

    async def _advance_in(self, host: str, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self.advance(host)
