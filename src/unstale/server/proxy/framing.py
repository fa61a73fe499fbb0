"""An answer on its way to a client: its head, then its body, framed as its length allows [RFC 9112 6]."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

Message = MutableMapping[str, Any]
Lines = list[tuple[bytes, bytes]]

#: the name under which an application finds that it may send interim answers: messages of this type
INTERIM = "http.response.interim"
#: the name under which it finds how to turn a connection into a tunnel
TUNNEL = "tunnel"
#: the name under which it finds that it may send lines behind a body, as ASGI has it
TRAILERS = "http.response.trailers"


class Framing:
    """One answer. `write` sends and waits while the client is behind; `keep` says whether more may follow."""

    __slots__ = ("_bare", "_chunked", "_method", "_trailed", "_version", "_write", "begun", "ended", "keep")

    def __init__(self, write: Callable[[bytes], Awaitable[None]], method: str, version: str, keep: bool) -> None:
        self._write, self._method, self._version, self.keep = write, method, version, keep
        self._chunked = self._bare = self._trailed = self.begun = self.ended = False

    async def send(self, message: Message) -> None:
        """One message of an ASGI application."""
        kind = message["type"]
        self.begun = True
        if kind == INTERIM:
            if self._version == "1.1":
                await self._write(head(message["status"], message["headers"]))
        elif kind == "http.response.start":
            self._trailed = message.get("trailers", False)
            await self._start(message["status"], list(message["headers"]))
        elif kind == TRAILERS:
            await self._end(message["headers"])
        else:
            body, more = message.get("body", b""), message.get("more_body", False)
            data = b"" if self._bare else b"%x\r\n%b\r\n" % (len(body), body) if self._chunked and body else body
            if data:
                await self._write(data)
            if not more and not self._trailed:
                await self._end([])

    async def _end(self, trailers: Lines) -> None:
        if self._chunked:
            await self._write(b"0\r\n" + b"".join([b"%b: %b\r\n" % line for line in trailers]) + b"\r\n")
        self.ended = True

    async def _start(self, status: int, lines: Lines) -> None:
        self._bare = self._method == "HEAD" or status in (204, 304)
        if not self._bare and not any(name == b"content-length" for name, _ in lines):
            self._chunked = self._version == "1.1"
            if self._chunked:
                lines.append((b"transfer-encoding", b"chunked"))
            else:
                self.keep = False
        if not self.keep:
            lines.append((b"connection", b"close"))
        elif self._version == "1.0":
            lines.append((b"connection", b"keep-alive"))
        await self._write(head(status, lines))


def head(status: int, lines: Lines) -> bytes:
    """A status line and fields, with the blank line that ends them.

    >>> head(299, [(b"a", b"1")])
    b'HTTP/1.1 299 \\r\\na: 1\\r\\n\\r\\n'
    """
    phrase = b""
    with suppress(ValueError):
        phrase = HTTPStatus(status).phrase.encode()
    return b"HTTP/1.1 %d %b\r\n" % (status, phrase) + b"".join([b"%b: %b\r\n" % line for line in lines]) + b"\r\n"
