"""`GET /api/v1/events`: what goes on, as server-sent events. One look a second at the store serves all who listen.

Rules of this file:
1. Who was cut off and says the id of the last event that came is told every change since. Polls end in another order
   than they began, so an id is not the newest poll that was told but one up to which none can come any more; some
   changes may come twice, and have their tokens to be known by.
2. An id goes out only after everything that it stands for: `changed` first, then `status` with the id.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from typing import Any

from starlette.responses import Response, StreamingResponse

from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import Recent
from unstale.server.endpoints import NOT_KEPT, Call, Refused
from unstale.server.shapes import stamp
from unstale.service import FleetService, documents

#: those who may listen at a time, seconds between two looks
LISTENERS, LOOK = 64, 1.0
#: observations looked through at a time, and for somebody who was away; as many changes wait for who is slow
WINDOW, AWAY = 5000, 100_000


class Settled:
    """Up to which token all polls have ended, seen from tokens that were recorded.

    A token that is missing among them is of a poll that is under way, until its claim must have ended.

    >>> settled = Settled(600.0)
    >>> settled.upto([1, 2, 4, 5], now=0.0), settled.upto([1, 2, 4, 5, 6], now=601.0)
    (2, 6)
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        #: when it was first seen that something is missing after a token
        self._missing: dict[int, float] = {}

    def upto(self, tokens: Sequence[int], now: float) -> int:
        """The token, of those recorded last in ascending order; 0 if there are none."""
        after = [one for one, following in pairwise(tokens) if following > one + 1]
        self._missing = {one: self._missing.get(one, now) for one in after}
        young = (one for one, since in self._missing.items() if now - since <= self._lease)
        return next(young, tokens[-1] if tokens else 0)


class Live:
    """Looks while somebody listens."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._listeners = 0
        self._looker: asyncio.Task[None] | None = None
        self._seen: frozenset[int] | None = None
        self._news: deque[tuple[int, bytes]] = deque(maxlen=WINDOW)
        self._told = 0
        self._settled, self._upto = Settled(service.terms.config.lease), 0
        self._status: dict[str, Any] = {}
        self._turn = asyncio.Event()
        self._closed = False

    async def listen(self, call: Call) -> Response:
        """A stream that lasts until the listener or the server ends it."""
        if self._listeners >= LISTENERS:
            raise Refused(503, f"{LISTENERS} listen already: try again later")
        last = call.fields.get("last-event-id", "")
        since = int(last) if last.isascii() and last.isdigit() else call.query.get("since")
        return StreamingResponse(self._stream(since), media_type="text/event-stream", headers=NOT_KEPT)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        if self._looker is not None:
            self._looker.cancel()
        self._turn.set()

    async def _stream(self, since: int | None) -> AsyncIterator[bytes]:
        self._listeners += 1
        begin = self._told
        if self._looker is None or self._looker.done():
            self._looker = asyncio.create_task(self._look_on())
        try:
            # The header leaves with the first bytes.
            yield b": listening\n\n"
            if since is not None:
                # What comes from now on is told by looks, of which there must have been one.
                if self._seen is None:
                    await self._turn.wait()
                yield await asyncio.to_thread(self._since, since)
            while not self._closed:
                await self._turn.wait()
                if self._closed:
                    return
                news = [event for number, event in self._news if number > begin]
                begin = self._told
                yield b"".join([*news, _event("status", self._status, self._upto)])
        finally:
            self._listeners -= 1

    async def _look_on(self) -> None:
        while self._listeners and not self._closed:
            try:
                await asyncio.to_thread(self._look)
            except Exception as error:  # Listeners are told, and the next look may do better.
                log("request_failed", {"path": "live"}, error)
                self._status = {"problem": str(error)[:200]}
            turn, self._turn = self._turn, asyncio.Event()
            turn.set()
            await asyncio.sleep(LOOK)
        self._seen = None

    def _look(self) -> None:
        rows = self._service.store.recent(WINDOW)
        upto = self._settled.upto([one.token for one in reversed(rows)], self._service.clock())
        tokens = frozenset(one.token for one in rows)
        if self._seen is not None:
            new = [one for one in rows if one.token not in self._seen and one.answer is Answer.CHANGED]
            # Where nothing of the last look is left, more was recorded since than is looked through.
            away = len(rows) == WINDOW and not tokens & self._seen
            for event in self._events(sorted(new, key=lambda one: one.polled_at), away and min(tokens)):
                self._told += 1
                self._news.append((self._told, event))
        self._seen = tokens
        totals = self._service.totals()
        self._status = {
            "heard_at": stamp(self._service.store.answered_at()),
            "engine": documents.engine(self._service.engine()),
            "polls": {answer.value: getattr(totals, answer.value) for answer in Answer},
        }
        self._upto = upto

    def _since(self, token: int) -> bytes:
        """The changes after a token, and whether some are too long ago to be told."""
        rows = self._service.store.recent(WINDOW)
        if rows and len(rows) == WINDOW and rows[-1].token > token + 1:
            rows = self._service.store.recent(AWAY)
        away = bool(rows) and len(rows) == AWAY and rows[-1].token > token + 1
        new = [one for one in reversed(rows) if one.token > token and one.answer is Answer.CHANGED]
        return b"".join(self._events(new, away and rows[-1].token))

    def _events(self, rows: Sequence[Recent], missed: int) -> list[bytes]:
        """What is told of changes; `missed` is from which token on all are told, if not all are."""
        names = {one.id: one.address for one in self._service.store.listings(sorted({one.source for one in rows}))}
        first = [_event("missed", {"told_from": missed})] if missed else []
        return first + [
            _event(
                "changed",
                {
                    "source": one.source,
                    "address": names.get(one.source, ""),
                    "at": stamp(one.polled_at),
                    "token": one.token,
                },
            )
            for one in rows
        ]


def _event(name: str, body: dict[str, Any], number: int | None = None) -> bytes:
    place = "" if number is None else f"id: {number}\n"
    return f"event: {name}\n{place}data: {json.dumps(body)}\n\n".encode()
