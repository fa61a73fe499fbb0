"""Polling the web in other processes: as many as are wanted, each of which has hosts of its own.

Rules of this file:
1. All polls of a host are one process's: its connections are used again, and nobody else dials it.
2. What is decided is decided here, by whoever asks: which polls, when, and how many at a time at which host.
3. A process that has ended is replaced when something is asked of it; not at once, if it never came to life.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import time
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.body_room import BodyRoom
from unstale.adapters.poller_process import PollerProcess, failed
from unstale.adapters.transfer import TransferReply
from unstale.errors import InputError, require
from unstale.keeper.outcomes import Answer
from unstale.ports import CallOff, Ended, Fetched, Request

#: seconds after which a process that could not be started is tried again
AGAIN = 1.0
#: hosts of which it is remembered who polls them
HOSTS = 65_536


class PollerFetcher:
    """Looks at http and https sources as `HttpFetcher` does, in so many processes; what it is given they share."""

    def __init__(
        self,
        pollers: int,
        gate: Gate | None = None,
        *,
        agent: str = "unstale",
        connections: int = 512,
        proxy: str = "",
        ca_file: str = "",
        room: BodyRoom | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        require(hasattr(socket, "AF_UNIX"), "pollers", pollers, "need a system with Unix sockets", "set pollers = 0")
        self._now, room = now, room or BodyRoom()
        self._terms = {
            "networks": (gate or Gate()).networks,
            "agent": agent,
            "connections": math.ceil(connections / pollers),
            "proxy": proxy,
            # Which ones the system trusts may be said by an environment that they do not get.
            "ca_file": ca_file or ssl.get_default_verify_paths().cafile or "",
            "bodies": room.total,
            "of": pollers,
            "folder": None if room.folder is None else str(room.folder.resolve()),
        }
        #: each with the time at which it was begun
        self._made: list[tuple[PollerProcess, float] | None] = [None] * pollers
        self._closed = False

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        found: Fetched = await self._awaited(request, looks=False)
        return found

    def begin(self, request: Request, ended: Ended) -> CallOff:
        """Look without being awaited; see `unstale.ports.QuickFetcher`."""
        return self._ask(request, False, ended)

    async def look(self, request: Request) -> TransferReply:
        """Ask and follow redirects; any status is an answer."""
        reply: TransferReply = await self._awaited(request, looks=True)
        return reply

    async def close(self) -> None:
        """End all processes; what is in flight ends as FAILED."""
        self._closed = True
        await asyncio.gather(*(made[0].close() for made in self._made if made is not None))

    async def _awaited(self, request: Request, *, looks: bool) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(found: Any) -> None:
            if future.done():
                return
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

        call_off = self._ask(request, looks, answered)
        try:
            return await future
        finally:
            call_off()

    def _ask(self, request: Request, looks: bool, answered: Callable[[Any], None]) -> CallOff:
        try:
            poller = self._poller(shard_of(web_address(request.address).host, len(self._made)))
        except InputError as error:
            reply = TransferReply(reason=str(error), requests=0)
            return _soon(answered, reply if looks else Fetched(Answer.FAILED, self._now(), reason=str(error)))
        if isinstance(poller, str):
            return _soon(answered, failed(request, poller, self._now(), looks))
        return poller.ask(request, looks, answered)

    def _poller(self, shard: int) -> PollerProcess | str:
        """Who polls for these hosts, or why nobody does."""
        if self._closed:
            return "the fetcher is closed"
        loop = asyncio.get_running_loop()
        if (made := self._made[shard]) is not None:
            poller, begun = made
            if not poller.over:
                return poller
            if not poller.known and loop.time() < begun + AGAIN:
                return "the process that polls it could not be started"
        try:
            poller = PollerProcess(self._terms, self._now)
        except OSError as error:
            return f"the process that polls it could not be started: {error.strerror}"
        self._made[shard] = poller, loop.time()
        return poller


@lru_cache(maxsize=HOSTS)
def shard_of(host: str, pollers: int) -> int:
    """Which of so many processes polls a host: always the same, and each about as many of them.

    >>> [shard_of(f"127.0.1.{n}", 2) for n in range(1, 9)]
    [1, 1, 1, 1, 0, 1, 1, 1]
    """
    return int.from_bytes(blake2b(host.encode(), digest_size=4).digest()) % pollers


def _soon(answered: Callable[[Any], None], found: Any) -> CallOff:
    return asyncio.get_running_loop().call_soon(answered, found).cancel
