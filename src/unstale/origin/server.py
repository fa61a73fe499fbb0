"""The origin: a site on a loopback port, with the log of its requests and the truth about its changes.

Rules of this file:
1. Time runs steadily from the wall clock's at the start: a jump of that clock does not move a change.
2. What is noted is what was answered: the time at which the version was looked up is the time in the log.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Self

from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.origin.connection import OriginConnection
from unstale.origin.log import RequestLog
from unstale.origin.measure import TrueFreshness, measured_freshness
from unstale.origin.site import Site
from unstale.replica_list import ReplicaList

#: seconds between two looks at what the log has to write
FLUSH = 0.2


class Origin:
    """Serves a site: `async with Origin(site) as origin`, or `with Origin(site).in_thread() as origin`.

    Port 0 takes any free one; `address` is where it is then. `last_modified` tells when sources last changed, in whole
    seconds as HTTP does, beside their ETag.
    """

    def __init__(
        self,
        site: Site,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log: RequestLog | None = None,
        last_modified: bool = False,
    ) -> None:
        self.site, self.log, self.last_modified = site, log or RequestLog(), last_modified
        #: replicas that poll, by source, as they name themselves: each hears of the others
        self.replicas = ReplicaList()
        self.connections: set[OriginConnection] = set()
        self.tasks: set[asyncio.Future[None]] = set()
        self.address = ""
        self._host, self._port = host, port
        self._offset = time.time() - time.monotonic()
        self._second, self._date = 0, b""

    def now(self) -> float:
        """Seconds since the epoch; they never jump."""
        return time.monotonic() + self._offset

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: OriginConnection(self), self._host, self._port, backlog=1024
            )
        except (OSError, OverflowError) as error:
            place, reason = f"{self._host}:{self._port}", getattr(error, "strerror", None) or "no such port"
            rule, remedy = f"cannot be served at ({reason})", "choose another port, or 0 for any free one"
            raise InputError(sentence("address", place, rule, remedy)) from None
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{port}"
        self._flusher = loop.create_task(self._flush())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in (ending := {self._flusher, *self.tasks}):
            task.cancel()
        await asyncio.wait(ending)
        for connection in list(self.connections):
            connection.transport.abort()
        await self._server.wait_closed()
        self.log.close()

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Serve from a thread of its own while the block runs."""
        ready, failed = threading.Event(), []
        ending = asyncio.Event()
        loop = asyncio.new_event_loop()

        async def serve() -> None:
            async with self:
                ready.set()
                await ending.wait()

        def run() -> None:
            try:
                loop.run_until_complete(serve())
            except BaseException as error:
                failed.append(error)
            finally:
                loop.close()
                ready.set()

        thread = threading.Thread(target=run, name="origin", daemon=True)
        thread.start()
        ready.wait()
        try:
            if not failed:
                yield self
        finally:
            if not failed:
                loop.call_soon_threadsafe(ending.set)
            thread.join()
        if failed:
            raise failed[0]

    def truth(self) -> Trace:
        """Every change so far, sources named by their addresses."""
        return self.site.truth(self.now(), self.address)

    def polls(self) -> Trace:
        """When each source was looked at, named likewise."""
        return self.log.polls({path: self.address + path for path in self.site.paths})

    def measured(self, start: float, end: float) -> TrueFreshness:
        """How fresh whoever polled kept its copies from `start` to `end`, all sources alike."""
        return measured_freshness(self.truth(), self.polls(), start, end)

    def date(self, t: float) -> bytes:
        """The line that dates an answer."""
        if int(t) != self._second:
            self._second = int(t)
            self._date = f"Date: {formatdate(t, usegmt=True)}\r\n".encode()
        return self._date

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(FLUSH)
            self.log.flush()
