"""The process that polls for an engine: it looks at the web as the engine would, and decides nothing.

Rules of this file:
1. The end of its line is its own end, at once: it holds nothing that anybody would miss. Signals that are meant for the
   engine do not end it, for the engine finishes what is under way.
2. What time it is, the engine says: a clock that was set counts here from the next batch on.
3. A body has its room here until nobody holds it any more, over there: so all of them together have one bound.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.body_room import BodyRoom, HeldBody
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.poller_wire import FAULT, FOUND, LATE, REPLIED, FrameLine, request_of, written, written_reply
from unstale.adapters.transfer import TransferReply
from unstale.errors import TooLateError
from unstale.ports import CallOff, Fetched

#: bytes of answers that are sent before it is seen whether they are taken
MANY = 1 << 20
#: objects made before the youngest are looked through for garbage; and how many such looks before the older are
GARBAGE = (20_000, 20, 20)


class PollingChild:
    """Polls what it is told over its line, until there is no other end."""

    def __init__(self, end: socket.socket) -> None:
        self._line = FrameLine(end, self._heard, self.over, self._flush)
        self._fetcher: HttpFetcher | None = None
        self._room = BodyRoom()
        #: what the engine's clock is ahead of the machine's steady one
        self._ahead = 0.0
        self._under_way: dict[int, CallOff] = {}
        self._ended: deque[tuple[int, int, Fetched | TransferReply | str]] = deque()
        self._loop = asyncio.get_running_loop()

    def over(self) -> None:
        """Nobody is there any more."""
        os._exit(0)

    def _now(self) -> float:
        return time.monotonic() + self._ahead

    def _heard(self, said: Any) -> None:
        if self._fetcher is None:
            self._fetcher = self._made(said)
            self._line.say([])
            return
        self._ahead, begun, called_off, light, heavy = said
        for number in called_off:
            if (call_off := self._under_way.pop(number, None)) is not None:
                call_off()
        if light:
            self._room.light.give(light)
        if heavy:
            self._room.heavy.give(heavy)
        for number, at, looks, *rest in begun:
            if looks:
                self._under_way[number] = asyncio.ensure_future(self._look(number, rest)).cancel
            else:
                ended = partial(self._found, number)
                self._under_way[number] = self._fetcher.begin(request_of(rest), ended, at)

    def _made(self, said: Mapping[str, Any]) -> HttpFetcher:
        folder = said["folder"]
        self._room = BodyRoom(said["bodies"], Path(folder) if folder else None, of=said["of"])
        return HttpFetcher(
            Gate(said["networks"]),
            agent=said["agent"],
            connections=said["connections"],
            proxy=said["proxy"],
            ca_file=said["ca_file"],
            room=self._room,
            now=self._now,
        )

    async def _look(self, number: int, said: Sequence[Any]) -> None:
        assert self._fetcher is not None
        try:
            self._end(number, REPLIED, await self._fetcher.look(request_of(said)))
        except Exception as error:  # Whoever waits for it must hear of it.
            self._end(number, *_fault(error))

    def _found(self, number: int, found: Fetched | Exception) -> None:
        if isinstance(found, Exception):
            self._end(number, *_fault(found))
        else:
            self._end(number, FOUND, found)

    def _end(self, number: int, how: int, what: Fetched | TransferReply | str) -> None:
        if self._under_way.pop(number, None) is None:
            return
        if not self._ended:
            self._loop.call_soon(self._flush)
        self._ended.append((number, how, what))

    def _flush(self) -> None:
        """Say what has ended; while the other end is behind it waits here, in its room."""
        while self._ended and not self._line.full:
            batch, size = [], 0
            while self._ended and size < MANY:
                number, how, what = self._ended.popleft()
                kept = 0
                if not isinstance(what, str) and isinstance(what.body, HeldBody):
                    kept = 1 if what.body.room is self._room.light else 2
                    # It goes on counting here, until they say that it is gone.
                    what.body.room.take(len(what.body), whatever=True)
                if not isinstance(what, str):
                    size += len(what.body or b"")
                batch.append((number, how, _plain(what), kept))
            self._line.say(batch)


def _plain(what: Fetched | TransferReply | str) -> object:
    if isinstance(what, str):
        return what
    return written(what) if isinstance(what, Fetched) else written_reply(what)


def _fault(error: Exception) -> tuple[int, str]:
    return (LATE, str(error)) if isinstance(error, TooLateError) else (FAULT, repr(error))


async def _poll(end: socket.socket) -> None:
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    child = PollingChild(end)
    # It ends with its line.
    await asyncio.Event().wait()
    child.over()


def main() -> None:
    """Poll for whoever holds the other end of the socket whose number is told."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_poll(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
