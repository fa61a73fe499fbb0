"""Asking an origin on behalf of a proxy's client: nothing decoded, nothing followed, nothing added.

HTTP/1.1 of our own, for a proxy has to pass on what clients for pages swallow: interim answers, trailers, transfer
codings that nobody knows.

Rules of this file:
1. Every address that is dialled passed the gate.
2. A request goes over a connection that was used before only if asking twice does no harm [RFC 9110 9.2.2]: the origin
   may be closing it just then, and then it is asked once more over a new one.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlsplit

from unstale.adapters.addresses import Gate, WebAddress, web_address
from unstale.adapters.dialling import reached
from unstale.adapters.http_exchange import Connection, Exchange
from unstale.adapters.http_message import AnswerReader, Interim, Line
from unstale.errors import InputError
from unstale.frozen import dataclass

#: seconds for which a connection waits to be used again
IDLE = 60.0
_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
_LINE_ENDS = re.compile(r"[\r\n\0]")


@dataclass(frozen=True, slots=True)
class UpstreamAnswer:
    """An answer whose body is still coming. `close` gives the rest up."""

    status: int
    lines: list[Line]
    body: AsyncIterator[bytes]
    exchange: Exchange

    @property
    def trailers(self) -> Sequence[Line]:
        """The lines behind the body, once that has been taken."""
        return self.exchange.reader.trailers

    async def close(self) -> None:
        """Want no more of the body."""
        self.exchange.close()


class HttpUpstream:
    """Asks http and https origins; `gate` says which IP addresses may be dialled, `seconds` how long silence may last.

    Failures are ConnectionError, or TimeoutError for waiting in vain, each with one sentence that names the host.
    """

    def __init__(
        self, gate: Gate | None = None, *, seconds: float = 30.0, connections: int = 512, ca_file: str = ""
    ) -> None:
        self._gate, self._seconds, self._most = gate or Gate(), seconds, connections
        self._ca_file = ca_file
        self._tls: ssl.SSLContext | None = None
        self._free = asyncio.Semaphore(connections)
        self._exchanges: set[Exchange] = set()
        #: connections that wait to be used again, by origin
        self._idle: dict[str, list[Connection]] = {}
        self._closed = False

    async def ask(
        self,
        method: str,
        address: str,
        lines: Sequence[Line],
        body: bytes | None = None,
        interim: Interim | None = None,
    ) -> UpstreamAnswer:
        """The answer once its head is there; of those that come before it `interim` hears, but for 100 and 101."""
        there = web_address(address)
        head = _head(method, there, lines, body)
        while True:
            used, exchange = await self._begun(method, there, interim)
            try:
                await exchange.send(head, body)
            except ConnectionError:
                if not used or exchange.heard or self._closed:
                    raise
                for stale in self._idle.pop(there.origin, ()):
                    stale.abort()
            else:
                return UpstreamAnswer(exchange.reader.status, exchange.reader.lines, exchange.body(), exchange)

    async def close(self) -> None:
        """Give back connections; what is under way breaks off."""
        self._closed = True
        for exchange in tuple(self._exchanges):
            exchange.close()
        for connection in [one for idle in self._idle.values() for one in idle]:
            connection.abort()

    async def _begun(self, method: str, there: WebAddress, interim: Interim | None) -> tuple[bool, Exchange]:
        """An exchange over a connection that waits or else a new one, and whether it is one that waited."""
        try:
            await asyncio.wait_for(self._free.acquire(), self._seconds)
        except TimeoutError:
            raise TimeoutError(f"{there.host}: too many origins are being asked at a time") from None
        try:
            idle = self._idle.get(there.origin) if method in _REPEATABLE else None
            connection = idle.pop() if idle else None
            used = connection is not None
            if connection is None:
                connection = await self._dialled(there)
        except BaseException:
            self._free.release()
            raise

        def over(reusable: bool) -> None:
            self._exchanges.discard(exchange)
            self._free.release()
            if reusable and connection.open and not self._closed:
                self._idle.setdefault(there.origin, []).append(connection)
                connection.rest(IDLE)

        exchange = Exchange(connection, AnswerReader(method, interim), there.host, self._seconds, over)
        self._exchanges.add(exchange)
        return used, exchange

    async def _dialled(self, there: WebAddress) -> Connection:
        if self._closed:
            raise ConnectionError(f"{there.host}: the proxy is closing")
        if sum(map(len, self._idle.values())) + len(self._exchanges) >= self._most:
            for connection in [one for idle in self._idle.values() for one in idle][:1]:
                connection.abort()
        loop, parts = asyncio.get_running_loop(), urlsplit(there.origin)
        tls = self._secure() if parts.scheme == "https" else None

        def lost(connection: Connection) -> None:
            if connection in (idle := self._idle.get(there.origin, [])):
                idle.remove(connection)
            if not idle:
                self._idle.pop(there.origin, None)

        async def connect(place: str, port: int) -> Connection:
            name = there.host.strip("[]") if tls else None
            _, made = await loop.create_connection(lambda: Connection(lost), place, port, ssl=tls, server_hostname=name)
            return made

        assert parts.port is not None
        return await reached(self._gate, there.host, parts.port, connect)

    def _secure(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._ca_file or None)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


def _head(method: str, there: WebAddress, lines: Sequence[Line], body: bytes | None) -> bytes:
    """A request up to its body; as it was written, for who keeps the answer keeps it under this address."""
    place, slash, path = there.text.partition("://")[2].partition("/")
    sent = [f"{method} {slash}{path} HTTP/1.1", f"host: {place}", *(f"{name}: {value}" for name, value in lines)]
    if body is not None or method in ("POST", "PUT", "PATCH"):
        sent.append(f"content-length: {len(body or b'')}")
    if any(_LINE_ENDS.search(line) for line in sent):
        raise InputError("a header line holds a line break: leave it out")
    return "\r\n".join([*sent, "", ""]).encode("latin-1")
