"""Requests as granian hands them over (RSGI), for applications that speak ASGI.

Rules of this file:
1. What an application sees and what goes out is as if granian spoke ASGI itself; a test compares the two byte by byte.
2. Bodies come and go piece by piece: who limits them sees each piece before the next is taken.
3. RSGI hides fields whose bytes are no ASCII. That they are there is told all the same: a condition that nobody can
   read is not one that holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping, Sequence
from functools import cache
from typing import Any, Protocol

from unstale.server.copies import STRETCHES
from unstale.server.headers import Field
from unstale.server.ranges import Stretch
from unstale.server.spooling import SpooledCopies

TextFields = list[tuple[str, str]]

#: stands for what could not be read
UNREAD = b"\xff"
#: bytes of a copy up to which it is handed over from memory
PIECE = 64 * 1024
_ABOUT = {"version": "3.0", "spec_version": "2.3"}


class RequestFields(Protocol):
    """The header fields of a request, names in lower case."""

    def keys(self) -> list[str]:
        """All names, each once, also of what cannot be read."""

    def items(self) -> TextFields:
        """All that can be read, repeated ones too."""

    def get_all(self, key: str) -> list[str]:
        """What can be read of the fields of one name."""

    def __contains__(self, key: str) -> bool:
        """Whether there is a field of this name."""


class RequestScope(Protocol):
    """What was asked for."""

    http_version: str
    server: str
    client: str
    scheme: str
    method: str
    path: str
    query_string: str
    authority: str | None

    @property
    def headers(self) -> RequestFields:
        """Its header."""


class AnswerStream(Protocol):
    """An answer that is sent piece by piece."""

    async def send_bytes(self, data: bytes) -> None:
        """The next piece."""


class RsgiExchange(Protocol):
    """One request's body, and the answer to it."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The body, piece by piece."""

    async def client_disconnect(self) -> None:
        """Wait until nobody listens any more."""

    def response_bytes(self, status: int, headers: TextFields, body: bytes) -> None:
        """The whole answer."""

    def response_empty(self, status: int, headers: TextFields) -> None:
        """The whole answer, without a body."""

    def response_file_range(self, status: int, headers: TextFields, file: str, start: int, end: int) -> None:
        """The whole answer, some bytes of a file."""

    def response_stream(self, status: int, headers: TextFields) -> AnswerStream:
        """The beginning of an answer that lasts."""


class AsgiCall:
    """One request on its way through an ASGI application."""

    def __init__(self, scope: RequestScope, exchange: RsgiExchange) -> None:
        self._scope, self._exchange = scope, exchange
        self._body: AsyncIterator[bytes] | None = None
        self._whole = False
        self._begun: tuple[int, TextFields] | None = None
        self._stream: AnswerStream | None = None

    def scope(self) -> MutableMapping[str, Any]:
        """The request as ASGI describes it."""
        asked = self._scope
        return {
            "type": "http",
            "asgi": _ABOUT,
            "http_version": asked.http_version,
            "server": _place(asked.server),
            "client": _place(asked.client),
            "scheme": asked.scheme,
            "method": asked.method,
            "root_path": "",
            "path": asked.path,
            "query_string": asked.query_string.encode("latin-1", "replace"),
            "headers": _fields(asked),
            "extensions": {STRETCHES: {}},
            "state": {},
        }

    async def receive(self) -> MutableMapping[str, Any]:
        """The next piece of the body; after it, that the client has gone."""
        if self._whole:
            await self._exchange.client_disconnect()
            return {"type": "http.disconnect"}
        if self._body is None:
            self._body = aiter(self._exchange)
        try:
            piece = await anext(self._body)
        except StopAsyncIteration:
            self._whole = True
            return {"type": "http.request", "body": b"", "more_body": False}
        return {"type": "http.request", "body": bytes(piece), "more_body": True}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """The beginning of the answer, or a piece of its body."""
        if message["type"] == "http.response.start":
            self._begun = message["status"], _texts(message["headers"])
            return
        if self._begun is None:
            raise RuntimeError("a body was sent before its header")
        data, lasts = message.get("body", b""), message.get("more_body", False)
        if self._stream is None and not lasts:
            await answered(self._exchange, *self._begun, data if isinstance(data, Stretch) else bytes(data))
            return
        if self._stream is None:
            self._stream = self._exchange.response_stream(*self._begun)
        if data:
            await self._stream.send_bytes(bytes(data))


async def answered(exchange: RsgiExchange, status: int, headers: TextFields, body: bytes | Stretch) -> None:
    """Send a whole answer; much of a copy out of a file, so that a reader who is slow has none of it in memory."""
    if len(body) > PIECE and isinstance(body, Stretch) and (path := await _files().path(body)) is not None:
        exchange.response_file_range(status, headers, path, body.begin, body.end)
    else:
        exchange.response_bytes(status, headers, bytes(body))


@cache
def _files() -> SpooledCopies:
    return SpooledCopies()


def _fields(asked: RequestScope) -> list[Field]:
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in asked.headers.items()]
    there = {name for name, _ in fields}
    names = [name.encode("latin-1") for name in asked.headers.keys()]  # noqa: SIM118, they are no mapping
    fields += [(name, UNREAD) for name in names if name not in there]
    # If no field names the host, that of the address counts, if it has one.
    if b"host" not in names:
        fields.append((b"host", (asked.authority or "").encode("latin-1", "replace")))
    return fields


def _texts(fields: Sequence[Field]) -> TextFields:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]


def _place(text: str) -> tuple[str, str]:
    host, _, port = text.rpartition(":")
    return host, port
