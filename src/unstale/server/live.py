"""`GET /api/v1/events`: what goes on, as server-sent events. One look a second at the store serves all who listen."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.server.endpoints import NOT_KEPT, Call, Refused
from unstale.server.shapes import stamp
from unstale.service import FleetService, documents

#: those who may listen at a time, seconds between two looks
LISTENERS, LOOK = 64, 1.0
#: observations looked through at a time: polls end in another order than they began
WINDOW = 5000
#: changes that are remembered for those who are slow; more are not told
KEPT = 1000


class Live:
    """Looks while somebody listens."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._listeners = 0
        self._looker: asyncio.Task[None] | None = None
        self._seen: frozenset[int] | None = None
        self._changes: deque[tuple[int, dict[str, Any]]] = deque(maxlen=KEPT)
        self._told = 0
        self._status: dict[str, Any] = {}
        self._turn = asyncio.Event()
        self._closed = False

    async def listen(self, _: Call) -> Response:
        """A stream that lasts until the listener or the server ends it."""
        if self._listeners >= LISTENERS:
            raise Refused(503, f"{LISTENERS} listen already: try again later")
        return StreamingResponse(self._stream(), media_type="text/event-stream", headers=NOT_KEPT)

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        if self._looker is not None:
            self._looker.cancel()
        self._turn.set()

    async def _stream(self) -> AsyncIterator[bytes]:
        self._listeners += 1
        begin = self._told
        if self._looker is None or self._looker.done():
            self._looker = asyncio.create_task(self._look_on())
        try:
            # The header leaves with the first bytes.
            yield b": listening\n\n"
            while not self._closed:
                await self._turn.wait()
                if self._closed:
                    return
                news = [change for number, change in self._changes if number > begin]
                begin = self._told
                yield b"".join([_event("status", self._status), *(_event("changed", change) for change in news)])
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
        if self._seen is not None:
            new = [one for one in rows if one.token not in self._seen and one.answer is Answer.CHANGED]
            names = {
                listed.id: listed.address for listed in self._service.store.listings([one.source for one in new[:KEPT]])
            }
            for one in sorted(new, key=lambda one: one.polled_at)[-KEPT:]:
                self._told += 1
                name, at = names.get(one.source, ""), stamp(one.polled_at)
                change = {"source": one.source, "address": name, "at": at, "token": one.token}
                self._changes.append((self._told, change))
        self._seen = frozenset(one.token for one in rows)
        totals = self._service.totals()
        self._status = {
            "heard_at": stamp(self._service.store.answered_at()),
            "engine": documents.engine(self._service.engine()),
            "polls": {answer.value: getattr(totals, answer.value) for answer in Answer},
        }


def _event(name: str, body: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
