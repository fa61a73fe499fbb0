"""Polls handed out to other crawlers: they ask which sources are due for them, fetch, and tell what came of it.

Two calls, JSON over HTTP, each with a bearer token; docs/howto/other-crawlers.md has the protocol.

Rules of this file:
1. What nobody took before its time to begin was over goes back, and its host's turn with it: nothing was asked.
2. What somebody took has been asked, whatever became of it: if he does not tell in time, the poll has failed.
3. An outcome is told once; one that comes too late, or for nothing that was handed out, is named and dropped.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from unstale.adapters.http_meaning import fetched
from unstale.adapters.transfer import TransferReply
from unstale.addresses import host_of
from unstale.errors import InputError, TooLateError, sentence
from unstale.frozen import dataclass
from unstale.ports import Fetched, Request

#: sources that one answer hands out at most, and seconds that one waits for the first of them
MOST, LONGEST_WAIT = 1000, 30.0


@dataclass(slots=True, eq=False)
class HandedOut:
    """One poll that waits for who takes it, and then for what came of it."""

    request: Request
    ticket: str = field(default_factory=lambda: secrets.token_hex(8))
    taken_at: float | None = None
    reply: asyncio.Future[TransferReply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class HandOut:
    """A `Fetcher` whose looks are others': `due` hands them out, `told` takes what came of them."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._line: deque[HandedOut] = deque()
        self._open: dict[str, HandedOut] = {}
        self._more = asyncio.Event()

    async def fetch(self, request: Request) -> Fetched:
        """Look once, through whoever asks next what is due."""
        handed = HandedOut(request)
        self._line.append(handed)
        self._more.set()
        try:
            await self._taken(handed)
            left = request.seconds - (self._now() - (handed.taken_at or 0.0))
            reply = await asyncio.wait_for(handed.reply, max(left, 0.0))
        except TimeoutError:
            reason = f"{host_of(request.address)}: who took this poll did not tell what came of it"
            reply = TransferReply(address=request.address, reason=reason)
        finally:
            self._open.pop(handed.ticket, None)
            if handed.taken_at is None and handed in self._line:
                self._line.remove(handed)
        return fetched(request, reply, handed.taken_at or self._now())

    async def close(self) -> None:
        """What waits is ended by who waits."""

    async def due(self, limit: int, wait: float) -> list[dict[str, Any]]:
        """Up to `limit` polls to be made now; waits up to `wait` seconds for the first."""
        if not self._line and wait > 0.0:
            self._more.clear()
            try:
                await asyncio.wait_for(self._more.wait(), min(wait, LONGEST_WAIT))
            except TimeoutError:
                return []
        found: list[dict[str, Any]] = []
        while self._line and len(found) < min(limit, MOST):
            handed = self._line.popleft()
            now = self._now()
            if now > handed.request.begin_by:
                continue
            handed.taken_at = now
            self._open[handed.ticket] = handed
            found.append(_shown(handed, now))
        return found

    def told(self, outcome: Mapping[str, Any]) -> bool:
        """Take what came of a poll; False if no such poll is under way."""
        handed = self._open.get(str(outcome.get("ticket", "")))
        if handed is None or handed.reply.done():
            return False
        handed.reply.set_result(_reply(handed.request, outcome))
        return True

    async def _taken(self, handed: HandedOut) -> None:
        """Wait until somebody has taken it; TooLateError once it is too late to begin."""
        last = min(handed.request.begin_by, self._now() + handed.request.seconds)
        while handed.taken_at is None:
            if self._now() > last:
                raise TooLateError(f"{host_of(handed.request.address)}: nobody asked for this poll in time")
            await asyncio.sleep(0.02)


def _shown(handed: HandedOut, now: float) -> dict[str, Any]:
    request = handed.request
    conditions = {"If-None-Match": request.etag, "If-Modified-Since": request.last_modified}
    return {
        "ticket": handed.ticket,
        "address": request.address,
        "headers": {**request.headers, **{name: value for name, value in conditions.items() if value}},
        "begin_within": request.begin_by - now if request.begin_by < math.inf else request.seconds,
        "tell_within": request.seconds,
        "largest": request.limit,
    }


def _reply(request: Request, outcome: Mapping[str, Any]) -> TransferReply:
    """An outcome as if the answer had come to us. InputError if it is none."""
    status, headers, reason = outcome.get("status", 0), outcome.get("headers", {}), outcome.get("reason", "")
    if not (isinstance(status, int) and isinstance(headers, dict) and isinstance(reason, str)):
        raise InputError(sentence("outcome", outcome.get("ticket"), "has no status, headers or reason", "send them"))
    try:
        body = b64decode(outcome.get("body", ""), validate=True)
    except (ValueError, TypeError):
        raise InputError(
            sentence("outcome", outcome.get("ticket"), "has a body that is no base64", "encode it")
        ) from None
    address = str(outcome.get("address") or request.address)
    if not status:
        reason = f"{host_of(request.address)}: {reason[:200] or 'no answer'}"
    elif len(body) > request.limit:
        reason = f"{host_of(request.address)}: the body has more than {request.limit:,} bytes"
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    return TransferReply(status, lower, body, address, len(body), reason)
