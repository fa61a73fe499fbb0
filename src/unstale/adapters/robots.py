"""What a site's robots.txt allows us: asked once a day per origin, kept while the site cannot be asked [RFC 9309].

No such file (4xx) allows everything; a site in trouble (5xx, 429, silence) is left alone for now, unless we still know
what it said.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from protego import Protego

from unstale.adapters.addresses import WebAddress, web_address
from unstale.adapters.transfer import TransferReply
from unstale.frozen import dataclass
from unstale.ports import Request

#: bytes that are read, seconds that rules are kept, used while the site fails, and left alone after a failure
LIMIT, FRESH, LAST_GOOD, AGAIN = 512_000, 86_400.0, 30 * 86_400.0, 900.0
#: longest pause between polls that a site is granted, in seconds
LONGEST_DELAY = 86_400.0
#: what a rule that forbids, or asks for a pause, has in it however it is spelt
_RULE = re.compile("di|delay", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether a source may be polled now; `delay` is the pause the site wants between polls, in seconds.

    If not, `reason` says why in one sentence, and `retry_after` when to ask again if the answer may soon be another.
    """

    allowed: bool
    delay: float = 0.0
    reason: str = ""
    retry_after: float | None = None
    #: requests that this answer took, 0 where it was known
    requests: int = 0


#: nothing stands in the way, and nothing had to be asked
_FREE = Permission(True)


@dataclass(frozen=True, slots=True)
class _Known:
    until: float
    said_at: float
    rules: Protego | None
    reason: str = ""
    requests: int = 1

    def holds(self, now: float) -> bool:
        """Whether it need not be asked anew; nothing holds for longer than a day, also if the clock was set back."""
        return self.until - FRESH <= now < self.until


class Robots:
    """Answers for every web address whether `agent` may poll it; asks through `look`, so through the gate.

    `kept` bounds the origins remembered; the one asked longest ago is forgotten first.
    """

    def __init__(
        self,
        look: Callable[[Request], Awaitable[TransferReply]],
        *,
        agent: str = "unstale",
        seconds: float = 30.0,
        kept: int = 4096,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._look, self._agent, self._seconds, self._kept, self._now = look, agent, seconds, kept, now
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[_Known]] = {}

    async def ask(self, address: str) -> Permission:
        """Whether `address` may be polled now. Many at once about one origin ask it once."""
        place = web_address(address)
        known, sent = self._known.get(place.origin), 0
        if known is None or not known.holds(self._now()):
            task = self._asking.get(place.origin)
            mine = task is None
            if task is None:
                task = asyncio.create_task(self._learn(place.origin, place.host, known))
                self._asking[place.origin] = task
            # One who gives up must not take the answer from the others.
            known = await asyncio.shield(task)
            sent = known.requests if mine else 0
        return self._permission(place, known, sent)

    def known(self, address: str) -> Permission | None:
        """What `ask` would answer without asking the site, None if it has to be asked."""
        place = web_address(address)
        known = self._known.get(place.origin)
        if known is None or not known.until - FRESH <= self._now() < known.until:  # as `holds`
            return None
        return _FREE if known.rules is None and not known.reason else self._permission(place, known, 0)

    def _permission(self, place: WebAddress, known: _Known, sent: int) -> Permission:
        if known.reason:
            return Permission(
                False, reason=known.reason, retry_after=max(known.until - self._now(), 1.0), requests=sent
            )
        if known.rules is None:
            return Permission(True, requests=sent) if sent else _FREE
        delay = min(known.rules.crawl_delay(self._agent) or 0.0, LONGEST_DELAY)
        if known.rules.can_fetch(place.text, self._agent):
            return Permission(True, delay, requests=sent)
        reason = f"{place.host}: its robots.txt does not allow {self._agent} to poll this source"
        return Permission(False, delay, reason, requests=sent)

    async def _learn(self, origin: str, host: str, before: _Known | None) -> _Known:
        try:
            reply = await self._look(Request(f"{origin}/robots.txt", limit=LIMIT, seconds=self._seconds))
            known = replace(self._judge(reply, host, before), requests=reply.requests)
            self._known.pop(origin, None)
            self._known[origin] = known
            while len(self._known) > self._kept:
                del self._known[next(iter(self._known))]
            return known
        finally:
            del self._asking[origin]

    def _judge(self, reply: TransferReply, host: str, before: _Known | None) -> _Known:
        now, status = self._now(), reply.status
        # A file cut at the limit counts as far as it was read; one cut by a broken connection does not.
        if 200 <= status < 300 and (not reply.reason or len(reply.body) == LIMIT):
            text = reply.body.decode("utf-8", "replace")
            # Nothing in it could forbid anything: then no poll need ask what it says.
            return _Known(now + FRESH, now, Protego.parse(text) if _RULE.search(text) else None)
        if 300 <= status < 500 and status != 429 and not reply.reason:
            return _Known(now + FRESH, now, None)
        if before is not None and not before.reason and now - before.said_at < LAST_GOOD:
            return _Known(now + AGAIN, before.said_at, before.rules)
        why = reply.reason or f"it answered {status}"
        return _Known(
            now + AGAIN, now, None, f"{host}: its robots.txt cannot be read now, {why.removeprefix(host + ': ')}"
        )
