"""Many libcurl exchanges at a time within one event loop, for a third of what a watcher per socket costs.

libcurl says which sockets it waits for; they stand in one epoll of their own, and the event loop watches only that.

Rules of this file:
1. Nothing here is called from within a callback of libcurl: what one asks for is done in the loop's next turn.
2. A socket that libcurl is done with stays in the epoll, for the next exchange uses it again; it is taken out when it
   speaks up although nobody waits for it.
3. Whoever began an exchange hears of its end exactly once, unless it was called off.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Any

import pycurl

#: libcurl's word for the end of an exchange: 0 if it went well, else the number of what went wrong
Ended = Callable[[int], None]
#: exchanges whose end is read at once, and sockets that are looked at in one turn
_MANY = 256
_REMOVE, _READ, _WRITE = pycurl.POLL_REMOVE, pycurl.POLL_IN, pycurl.POLL_OUT
_CAN_READ, _CAN_WRITE, _TIME = pycurl.CSELECT_IN, pycurl.CSELECT_OUT, pycurl.SOCKET_TIMEOUT


class CurlDriver:
    """Drives libcurl handles in the event loop that first uses it; `connections` bounds all hosts together."""

    def __init__(self, connections: int) -> None:
        self._multi = multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        multi.setopt(pycurl.M_MAXCONNECTS, connections)
        multi.setopt(pycurl.M_SOCKETFUNCTION, self._wanted)
        multi.setopt(pycurl.M_TIMERFUNCTION, self._wake_in)
        self._epoll = select.epoll()
        #: sockets that libcurl waits for, and those it is done with and may use again
        self._waiting: set[int] = set()
        self._resting: set[int] = set()
        self._flying: dict[pycurl.Curl, Ended] = {}
        self._futures: dict[pycurl.Curl, asyncio.Future[int]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kick: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: when libcurl wants to be woken, in the loop's time
        self._wake_at = 0.0
        self.closed = False

    def start(self, curl: pycurl.Curl, ended: Ended) -> None:
        """Begin an exchange; `ended` is called in a later turn of the loop, with libcurl's word for how it went."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._epoll.fileno(), self._look)
        self._flying[curl] = ended
        self._multi.add_handle(curl)

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
        for handle in (self._kick, self._timer):
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

    def _wanted(self, what: int, fd: int, multi: Any, data: Any) -> None:
        """libcurl waits for a socket, or no longer does."""
        if what == _REMOVE:
            self._waiting.discard(fd)
            self._resting.add(fd)
            return
        if self.closed:
            return
        mask = (select.EPOLLIN if what & _READ else 0) | (select.EPOLLOUT if what & _WRITE else 0)
        try:
            # Also of a socket that we believe is there: the number may be another socket's by now.
            if fd in self._waiting or fd in self._resting:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
        except FileNotFoundError:
            self._epoll.register(fd, mask)
        except FileExistsError:
            self._epoll.modify(fd, mask)
        self._resting.discard(fd)
        self._waiting.add(fd)

    def _wake_in(self, milliseconds: int) -> None:
        """libcurl wants to be called after so long, at once if 0, never if less."""
        if self.closed or self._loop is None or milliseconds < 0:
            self._wake_at = float("inf")
            return
        if milliseconds == 0:
            if self._kick is None:
                self._kick = self._loop.call_soon(self._kicked)
            return
        self._wake_at = self._loop.time() + milliseconds / 1000.0
        # A timer that rings too early costs less than one that is set anew for every exchange.
        if self._timer is None or self._timer.when() > self._wake_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._wake_at, self._rung)

    def _kicked(self) -> None:
        self._kick = None
        self._act(_TIME, 0)
        self._reap()

    def _rung(self) -> None:
        self._timer = None
        assert self._loop is not None
        if self._loop.time() + 1e-3 >= self._wake_at:
            self._act(_TIME, 0)
            self._reap()
        elif self._wake_at != float("inf"):
            self._timer = self._loop.call_at(self._wake_at, self._rung)

    def _look(self) -> None:
        """Some sockets are ready."""
        waiting = self._waiting
        for fd, ready in self._epoll.poll(0, _MANY):
            if fd in waiting:
                can = _CAN_READ if ready & ~select.EPOLLOUT else 0
                self._act(fd, can | (_CAN_WRITE if ready & select.EPOLLOUT else 0))
            else:
                # Its server has closed it, or the number is stale: libcurl finds out when it wants to use it.
                self._resting.discard(fd)
                try:
                    self._epoll.unregister(fd)
                except OSError:
                    continue
        self._reap()

    def _act(self, fd: int, can: int) -> None:
        try:
            self._multi.socket_action(fd, can)
        except pycurl.error as error:
            # libcurl cannot go on with anything: nobody may wait for it for ever.
            for curl in list(self._flying):
                self._over(curl, int(error.args[0]) or pycurl.E_FAILED_INIT)

    def _reap(self) -> None:
        """Tell those whose exchanges have ended."""
        left = 1
        while left and self._flying:
            left, good, bad = self._multi.info_read(_MANY)
            for curl in good:
                self._over(curl, 0)
            for curl, code, _ in bad:
                self._over(curl, code)

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
