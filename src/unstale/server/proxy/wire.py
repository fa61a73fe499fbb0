"""The proxy's side of HTTP/1.1 on the wire: what a server of web pages need not do and a proxy must.

It passes interim answers on while the final one is awaited and trailers behind it, adds no field of its own, keeps
addresses as they were written, and opens tunnels. Requests are read by llhttp; each is handed to an ASGI application,
one after the other.

Rules of this file:
1. A head must come in time and be of bounded length; who is too slow, or speaks otherwise than HTTP/1, is sent away.
2. An answer that broke off is never ended properly: the connection is cut, so that everybody can see it.
3. Nothing is read faster than it is taken, and nothing written faster than the client takes it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import httptools

from unstale.server.proxy.framing import INTERIM, TRAILERS, TUNNEL, Framing, Message, head
from unstale.server.proxy.tunnels import tunnel

App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

#: seconds in which a head must have come, bytes of it, and requests that may wait on one connection
HEAD_TIME, HEAD_SIZE, AHEAD = 10.0, 64 * 1024, 16
#: bytes of a request's body, and of an answer, that wait for those who take them
BODY_AHEAD, ANSWER_AHEAD = 256 * 1024, 256 * 1024
#: seconds that a body may stop for, and for which what comes behind a refusal is read so that the refusal arrives
BODY_TIME, LINGER = 60.0, 2.0
#: connections at a time
CONNECTIONS = 8192


class _Asked:
    """One request, as far as it has come."""

    __slots__ = ("chunks", "ended", "fresh", "keep", "scope", "waits")

    def __init__(self) -> None:
        self.scope: Message = {}
        self.chunks: deque[bytes] = deque()
        self.waits, self.ended, self.keep = 0, False, True
        self.fresh = asyncio.Event()


class Wire(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, app: App, open_ones: set[Wire]) -> None:
        self._app, self._open = app, open_ones
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._target, self._lines, self._head_size = b"", list[tuple[bytes, bytes]](), 0
        self._coming: _Asked | None = None
        self._line: deque[_Asked] = deque()
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._gone = self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._answer: Framing | None = None
        self._onward: Callable[[bytes], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(ANSWER_AHEAD)
        self._open.add(self)
        if len(self._open) > CONNECTIONS:
            transport.abort()
            return
        self._wait_for_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._open.discard(self)
        self._room.set()
        if self._timer is not None:
            self._timer.cancel()
        for asked in (*self._line, *([self._coming] if self._coming else [])):
            asked.fresh.set()
        if self._onward is not None:
            self._onward(b"")

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        if self._onward is not None:
            self._onward(data)
            return
        try:
            if self._coming is None:
                self._head_size += len(data)
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            if self._line and self._line[-1].scope["method"] == "CONNECT":
                self._line[-1].scope["extensions"]["early"] = data[error.args[0] :]
            else:
                self._refuse(400, "an upgrade is not offered here")
        except httptools.HttpParserInvalidMethodError:
            self._refuse(501, "the method is not known")
        except (httptools.HttpParserError, ValueError):
            self._refuse(400, "this is not HTTP/1.1")
        if self._coming is None and self._head_size > HEAD_SIZE and not self._gone:
            self._refuse(431, "the head is too large")

    def on_message_begin(self) -> None:
        self._target, self._lines = b"", []

    def on_url(self, target: bytes) -> None:
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        version = self._parser.get_http_version()
        if version not in ("1.0", "1.1") or len(self._line) >= AHEAD:
            raise ValueError
        if self._timer is not None:
            self._timer.cancel()
        asked = self._coming = _Asked()
        asked.keep = self._parser.should_keep_alive()
        path, _, query = self._target.partition(b"?")
        asked.scope = {
            "type": "http",
            "http_version": version,
            "method": self._parser.get_method().decode(),
            "path": path.decode("latin-1"),
            "raw_path": path,
            "query_string": query,
            "headers": self._lines,
            "extensions": {INTERIM: {}, TRAILERS: {}, TUNNEL: self._tunnel},
        }
        self._head_size = 0
        self._line.append(asked)
        if version == "1.1" and any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in self._lines
        ):
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._task is None:
            self._task = self._loop.create_task(self._serve())

    def on_body(self, body: bytes) -> None:
        assert self._coming is not None
        self._coming.chunks.append(body)
        self._coming.waits += len(body)
        self._coming.fresh.set()
        if self._coming.waits > BODY_AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        assert self._coming is not None
        self._coming.ended = True
        self._coming.fresh.set()
        self._coming = None

    async def _serve(self) -> None:
        try:
            while self._line and not self._gone:
                asked = self._line[0]
                answer = self._answer = Framing(
                    self.write, asked.scope["method"], asked.scope["http_version"], asked.keep
                )
                await self._app(asked.scope, lambda asked=asked: self._receive(asked), answer.send)  # type: ignore[misc]
                self._line.popleft()
                self._answer = None
                if self._onward is not None:
                    return
                if not answer.ended:
                    self._transport.abort()
                    return
                if not (answer.keep and asked.keep and asked.ended):
                    self._linger()
                    return
                if not self._line and self._coming is None:
                    self._wait_for_a_head()
        except OSError:
            self._transport.abort()  # The client has gone.
        except Exception:
            self._transport.abort()  # A fault of ours broke the answer off, and is not to be hidden.
            raise
        finally:
            if self._task is asyncio.current_task():
                self._task = None

    def _linger(self) -> None:
        """Close once what was said has arrived: who is cut off while it still sends does not hear it."""
        self._onward = lambda data: None
        if not self._gone:
            self._transport.write_eof()
            self._loop.call_later(LINGER, self._transport.close)

    async def _receive(self, asked: _Asked) -> Message:
        while not (asked.chunks or asked.ended or self._gone):
            asked.fresh.clear()
            try:
                await asyncio.wait_for(asked.fresh.wait(), BODY_TIME)
            except TimeoutError:
                break
        if not (asked.chunks or asked.ended):
            return {"type": "http.disconnect"}
        body = b"".join(asked.chunks)
        asked.chunks.clear()
        asked.waits = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return {"type": "http.request", "body": body, "more_body": not asked.ended}

    def _wait_for_a_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(HEAD_TIME, self._transport.close)

    def _write(self, data: bytes) -> None:
        if not self._gone:
            self._transport.write(data)

    def _refuse(self, status: int, why: str) -> None:
        """Say what is wrong and end; what comes behind it cannot be understood."""
        if self._task is not None and not (self._answer and self._answer.begun) and len(self._line) == 1:
            # The request that is being served turns out not to be one.
            self._task.cancel()
            self._task = None
        if self._task is None:
            body = why.encode() + b"\n"
            lines = [
                (b"content-type", b"text/plain"),
                (b"content-length", b"%d" % len(body)),
                (b"connection", b"close"),
            ]
            self._write(head(status, lines) + body)
            self._linger()
        else:
            self._transport.close()

    async def write(self, data: bytes) -> None:
        """Send, and wait while the client is behind."""
        if self._gone:
            raise ConnectionResetError
        self._transport.write(data)
        await self._room.wait()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, early: bytes) -> None:
        """Pass bytes to and fro until either side ends."""
        pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._onward = pieces.put_nowait
        await self.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
        if early:
            pieces.put_nowait(early)
        try:
            await tunnel(pieces, self.write, self._transport, reader, writer)
        finally:
            self._transport.close()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    def end(self) -> None:
        """Close now if nothing is under way, else after the answer that is."""
        if self._task is None or self._onward is not None:
            self._transport.close()
        else:
            for asked in self._line:
                asked.keep = False


async def serve(
    app: App, host: str, port: int, *, stop: asyncio.Event, ready: Callable[[int], None] | None = None
) -> None:
    """Serve until `stop` is set; answers that are under way have a moment to end."""
    loop, open_ones = asyncio.get_running_loop(), set[Wire]()
    server = await loop.create_server(lambda: Wire(app, open_ones), host, port, backlog=2048)
    try:
        if ready is not None:
            ready(server.sockets[0].getsockname()[1])
        await stop.wait()
    finally:
        server.close()
        for one in list(open_ones):
            one.end()
        for _ in range(100):
            if not open_ones:
                break
            await asyncio.sleep(0.02)
        for one in list(open_ones):
            one.abort()
        await server.wait_closed()
