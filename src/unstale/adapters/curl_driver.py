"""Many libcurl exchanges at a time within one event loop, for a third of what a watcher per socket costs.

Every socket that libcurl opens stands in one epoll of ours from its beginning to its end, and the event loop watches
only that. When something stirs there, libcurl looks at all that is under way in one call.

Rules of this file:
1. Nothing here is called from within a callback of libcurl: what one asks for is done in the loop's next turn.
2. A socket is told of once, when it stirs (edge-triggered): one that rests, or whose server has closed it, costs
   nothing. What was stirred and not read to its end is looked at again by libcurl's own clock, or ours.
3. While many are under way and few of them end, libcurl waits a moment for more to stir: a look at all costs as much
   as some twentieth of a poll for each.
4. Whoever began an exchange hears of its end exactly once, unless it was called off.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Any

import pycurl

#: libcurl's word for the end of an exchange: 0 if it went well, else the number of what went wrong
Ended = Callable[[int], None]
#: opens a socket for libcurl, or answers `pycurl.SOCKET_BAD`
Opens = Callable[[int, Any], Any]
#: exchanges whose end is read at once, and sockets that are looked at in one turn
_MANY = 256
#: the longest time between two looks while something is under way, in seconds
_TICK = 0.2
#: seconds for each exchange under way that are waited for more to stir, at most and at least; and the share of them
#: that must end at a look for the next one to come at once
_PAUSE, _LONGEST, _SHORTEST, _SHARE = 2e-5, 0.01, 5e-4, 1 / 16
_STIRS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET if hasattr(select, "epoll") else 0


class CurlDriver:
    """Drives libcurl handles in the event loop that first uses it; `connections` bounds all hosts together.

    Handles open their sockets by what `watching` gives.
    """

    def __init__(self, connections: int) -> None:
        self._multi = multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._epoll = select.epoll()
        self._flying: dict[pycurl.Curl, Ended] = {}
        self._futures: dict[pycurl.Curl, asyncio.Future[int]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        #: the next look, if it is a matter of this turn or of a moment; and the one that comes at the latest
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.closed = False

    def watching(self, opens: Opens) -> Opens:
        """The same, with an eye on the sockets that it opens."""

        def opened(purpose: int, dialled: Any) -> Any:
            made = opens(purpose, dialled)
            if isinstance(made, socket.socket) and not self.closed:
                # libcurl goes on with a duplicate; it is in the epoll until the last of them is closed.
                self._epoll.register(made.fileno(), _STIRS)
            return made

        return opened

    def start(self, curl: pycurl.Curl, ended: Ended) -> None:
        """Begin an exchange; `ended` is called in a later turn of the loop, with libcurl's word for how it went."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self._stirred)
        self._flying[curl] = ended
        self._multi.add_handle(curl)
        if self._soon is None:
            self._soon = self._loop.call_soon(self._look)

    def call_off(self, curl: pycurl.Curl) -> None:
        """End an exchange without a word."""
        if self._flying.pop(curl, None) is not None:
            self._multi.remove_handle(curl)

    async def exchange(self, curl: pycurl.Curl) -> int:
        """Begin an exchange and wait for its end: libcurl's word for how it went. Cancelled when the driver closes."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._futures[curl] = future
        try:
            self.start(curl, lambda code: None if future.done() else future.set_result(code))
            return await future
        finally:
            del self._futures[curl]
            self.call_off(curl)

    async def close(self) -> None:
        """End everything; whoever waits for an exchange is cancelled."""
        if self.closed:
            return
        self.closed = True
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        for curl in list(self._flying):
            self.call_off(curl)
        for future in self._futures.values():
            future.cancel()
        self._multi.close()
        self._epoll.close()

    def _stirred(self) -> None:
        """Some sockets have something new: told once, whatever libcurl makes of it."""
        self._epoll.poll(0, _MANY)
        if self._soon is None:
            self._look()

    def _look(self) -> None:
        """Let libcurl do what it can, tell those whose exchanges have ended, and see when to look again."""
        self._soon = None
        flying = len(self._flying)
        try:
            self._multi.perform()
            ended = self._reap()
        except pycurl.error as error:
            # libcurl cannot go on with anything: nobody may wait for it for ever.
            ended = flying
            for curl in list(self._flying):
                self._over(curl, int(error.args[0]) or pycurl.E_FAILED_INIT)
        if self.closed or not self._flying or self._soon is not None:
            return
        assert self._loop is not None
        wished = self._multi.timeout()
        if wished == 0:
            self._soon = self._loop.call_soon(self._look)
            return
        if ended < _SHARE * flying and (pause := min(_PAUSE * flying, _LONGEST)) >= _SHORTEST:
            self._soon = self._loop.call_later(pause, self._look)
            return
        at = self._loop.time() + (min(wished / 1000.0, _TICK) if wished > 0 else _TICK)
        # A timer that rings too early costs less than one that is set anew for every exchange.
        if self._timer is None or self._timer.when() > at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(at, self._rung)

    def _rung(self) -> None:
        self._timer = None
        if self._soon is None:
            self._look()

    def _reap(self) -> int:
        """Tell those whose exchanges have ended; how many those are."""
        left, many = 1, 0
        while left and self._flying:
            left, good, bad = self._multi.info_read(_MANY)
            many += len(good) + len(bad)
            for curl in good:
                # As `_over`, of which there is most.
                if (ended := self._flying.pop(curl, None)) is not None:
                    self._multi.remove_handle(curl)
                    ended(0)
            for curl, code, _ in bad:
                self._over(curl, code)
        return many

    def _over(self, curl: pycurl.Curl, code: int) -> None:
        ended = self._flying.pop(curl, None)
        if ended is not None:
            self._multi.remove_handle(curl)
            ended(code)


class PlainDriver:
    """The same where there is no epoll: pycurl's own way, with a watcher in the event loop for every socket."""

    def __init__(self, connections: int) -> None:
        self._multi = multi = pycurl.AsyncCurlMulti()
        multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._flying: dict[pycurl.Curl, asyncio.Task[None]] = {}

    @property
    def closed(self) -> bool:
        """Whether no exchange can begin any more."""
        return bool(self._multi.closed)

    def watching(self, opens: Opens) -> Opens:
        """The same: pycurl learns of sockets by itself."""
        return opens

    def start(self, curl: pycurl.Curl, ended: Ended) -> None:
        """Begin an exchange; `ended` is called in a later turn of the loop, with libcurl's word for how it went."""

        async def fly() -> None:
            code = await self.exchange(curl)
            del self._flying[curl]
            ended(code)

        self._flying[curl] = asyncio.get_running_loop().create_task(fly())

    def call_off(self, curl: pycurl.Curl) -> None:
        """End an exchange without a word."""
        if (flying := self._flying.pop(curl, None)) is not None:
            flying.cancel()

    async def exchange(self, curl: pycurl.Curl) -> int:
        """Begin an exchange and wait for its end: libcurl's word for how it went. Cancelled when the driver closes."""
        try:
            await self._multi.add_handle(curl)
        except pycurl.error as error:
            return int(error.args[0])
        return 0

    async def close(self) -> None:
        """End everything; whoever waits for an exchange is cancelled."""
        await self._multi.aclose()


def driver(connections: int) -> CurlDriver | PlainDriver:
    """The best way to drive libcurl on this machine."""
    return CurlDriver(connections) if hasattr(select, "epoll") else PlainDriver(connections)
