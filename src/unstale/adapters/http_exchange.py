"""One connection to an origin, and the exchanges that go over it one after the other.

Rules of this file:
1. A body is not read much faster than it is taken, and silence has an end: less than a byte a second is silence.
2. A connection is used again only if the answer before it ended where it said, and nothing came behind it.
3. A body that ends with its connection is whole only if that was closed in order; over TLS, with its word of parting.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable

from unstale.adapters.http_message import AnswerReader, Broken

#: bytes of a body that wait for a slow client before the origin is made to wait too
AHEAD = 2**20


class Exchange:
    """A request that was sent and the answer to it, as far as that has come. `over` is called once at its end."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_error",
        "_host",
        "_over",
        "_sent",
        "_taken",
        "_timer",
        "_waits",
        "_wake",
        "paused",
        "reader",
    )

    def __init__(
        self, connection: Connection, reader: AnswerReader, host: str, seconds: float, over: Callable[[bool], None]
    ) -> None:
        self._connection, self.reader, self._host, self._over = connection, reader, host, over
        self._chunks: deque[bytes] = deque()
        self._waits = self._taken = self._sent = 0
        self._error: OSError | None = None
        self.paused = False
        self._wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = loop.call_later(seconds, self._tick, seconds, 0)

    async def send(self, head: bytes, body: bytes | None) -> None:
        """Send a request, and wait for the head of its answer."""
        self._connection.begin(self, head, body or b"")
        self._sent = len(body or b"")
        try:
            while not self.reader.status:
                if self._error is not None:
                    raise self._error
                self._wake.clear()
                await self._wake.wait()
        except BaseException:
            self.close()
            raise

    async def body(self) -> AsyncIterator[bytes]:
        """The body as it comes; OSError if its end does not."""
        while True:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._waits -= len(chunk)
                if self.paused and self._waits < AHEAD // 2:
                    self.paused = False
                    self._connection.go_on()
                yield chunk
            elif self._error is not None:
                raise self._error
            elif self._timer is None:
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    @property
    def heard(self) -> bool:
        """Whether one byte of an answer has come."""
        return self._taken > 0

    def close(self) -> None:
        """Give the exchange up if it is not over."""
        self._end(ConnectionError(f"{self._host}: the exchange was given up"))

    def came(self, data: bytes) -> None:
        """Some bytes have come."""
        self._taken += len(data)
        try:
            self.reader.feed(data)
        except Broken as error:
            return self.broke(str(error))
        if self.reader.pieces:
            self._chunks.extend(self.reader.pieces)
            self._waits += sum(map(len, self.reader.pieces))
            self.reader.pieces.clear()
        if self.reader.whole:
            return self._end(None)
        if self._waits > AHEAD and not self.paused:
            self.paused = True
            self._connection.wait()
        return self._wake.set()

    def closed(self) -> None:
        """The connection was closed in order."""
        try:
            self.reader.close()
        except Broken as error:
            return self.broke(str(error))
        return self._end(None)

    def broke(self, why: str) -> None:
        """There will be no more, and it is not the end."""
        self._end(ConnectionError(f"{self._host}: the exchange with the origin broke off: {why}"))

    def _end(self, error: OSError | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._error = None, error
            self._wake.set()
            reusable = error is None and self.reader.keep
            self._connection.ended(reusable)
            self._over(reusable)

    def _tick(self, seconds: float, before: int) -> None:
        moved = self._taken + max(0, self._sent - self._connection.unsent())
        if not self.paused and moved - before < seconds:
            self._end(TimeoutError(f"{self._host}: the origin did not answer in time"))
        elif self._timer is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._tick, seconds, moved)


class Connection(asyncio.Protocol):
    """One connection; `lost` is called when it can no longer be used."""

    def __init__(self, lost: Callable[[Connection], None]) -> None:
        self._lost = lost
        self._exchange: Exchange | None = None
        self._resting: asyncio.TimerHandle | None = None
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.open = transport, True

    def begin(self, exchange: Exchange, head: bytes, body: bytes) -> None:
        """Send a request, of which this exchange is to hear."""
        self._exchange = exchange
        if self._resting is not None:
            self._resting.cancel()
        if self.open:
            self._transport.writelines((head, body) if body else (head,))
        else:
            exchange.broke("the connection was closed")

    def ended(self, reusable: bool) -> None:
        """The exchange is over."""
        self._exchange = None
        if not reusable or self.unsent():
            self.abort()

    def rest(self, seconds: float) -> None:
        """Wait so long to be used again, then close."""
        self._resting = asyncio.get_running_loop().call_later(seconds, self.abort)

    def unsent(self) -> int:
        """Bytes of the request that wait to be sent."""
        return self._transport.get_write_buffer_size() if self.open else 0

    def wait(self) -> None:
        """Read no more for now."""
        if self.open:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        if self.open:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Cut it."""
        if self.open:
            self.open = False
            self._transport.abort()
            self._lost(self)

    def data_received(self, data: bytes) -> None:
        if self._exchange is not None:
            self._exchange.came(data)
        else:
            self.abort()

    def eof_received(self) -> None:
        if self._exchange is not None and self._parted():
            self._exchange.closed()
        elif self._exchange is not None:
            self._exchange.broke("the connection was cut")
        self.abort()

    def _parted(self) -> bool:
        """Whether the other side closed the connection itself; asyncio tells of both ends alike."""
        secured: ssl.SSLObject | None = self._transport.get_extra_info("ssl_object")
        if secured is None:
            return True
        try:
            # Everything has been read: behind the word of parting there is nothing, without it there could be more.
            return secured.read(1) == b""
        except ssl.SSLError:
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.open:
            self.open = False
            self._lost(self)
        if self._exchange is not None:
            self._exchange.broke("the connection was cut")
