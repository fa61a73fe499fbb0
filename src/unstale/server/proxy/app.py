"""The proxy as a server runs it: an ASGI application in front of named origins."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from unstale.errors import InputError, require
from unstale.ports import Fetched
from unstale.server.problems import problem
from unstale.server.proxy.cache import Cache
from unstale.server.proxy.door import Door
from unstale.server.proxy.durable import Durable
from unstale.server.proxy.fields import Fields, appended, directives, members
from unstale.server.proxy.framing import INTERIM, TRAILERS, TUNNEL
from unstale.server.proxy.origin import Asked, Served
from unstale.server.proxy.pricing import Pricing
from unstale.server.proxy.upstream import Interim, Line, Upstream

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_ORIGIN = re.compile(r"https?://[^/?#@\s]+/?")
_FORWARD = re.compile(r"https?://([^/?#@\s]+)", re.IGNORECASE)
#: connects to a host and a port, if that may be dialled; else OSError with one sentence
Dial = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Fleet(Protocol):
    """What the proxy tells those who keep the fleet: how often what it holds is asked for."""

    def wanted(self, requests: Mapping[str, int], seconds: float) -> None:
        """These addresses were asked for so often in the last `seconds`; those not named were not."""


class Proxy:
    """A shared cache in front of named origins, by RFC 9111.

    `origins` maps the host that a client names to the origin that answers for it, `"*"` standing for all others: one
    entry makes a reverse proxy, an entry per site a forward one for them. `lifetime` is what was learned of an
    address, in seconds: it replaces the guess where a response does not say how long it is fresh. `fleet` is told
    every `telling` seconds what was asked for; `renew` polls one address, for an engine that knows when that pays.
    `upload` bounds the bytes of a request's body, `most` all stored responses, `largest` one of them; `pricing` is
    the cache's, `durable` keeps its stock for the next time. `door` says who may come in, all if there is none; `dial`
    connects tunnels, without it none are opened.
    """

    def __init__(
        self,
        upstream: Upstream,
        origins: Mapping[str, str],
        *,
        lifetime: Callable[[str], float | None] | None = None,
        fleet: Fleet | None = None,
        telling: float = 60.0,
        name: str = "",
        most: int = 256 * 2**20,
        largest: int = 16 * 2**20,
        upload: int = 16 * 2**20,
        pricing: Pricing | None = None,
        durable: Durable | None = None,
        door: Door | None = None,
        dial: Dial | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        require(origins, "origins", dict(origins), "must name an origin", "map a host, or '*', to http://origin")
        for origin in origins.values():
            require(
                _ORIGIN.fullmatch(origin),
                "origin",
                repr(origin),
                "must be a scheme and a host",
                "write it like http://127.0.0.1:8000",
            )
        require(
            not name or _NAME.fullmatch(name),
            "name",
            repr(name),
            "must be letters, digits, dots and dashes",
            "write it like edge-1",
        )
        self._origins = {host.lower(): origin.rstrip("/") for host, origin in origins.items()}
        # Loops are told by this name, so no two proxies in a row may share it.
        self._name = name or f"unstale-{secrets.token_hex(4)}"
        watchers = () if durable is None else (durable,)
        learned = lifetime or (lambda address: None)
        self.cache = Cache(
            upstream, learned=learned, most=most, largest=largest, pricing=pricing, watchers=watchers, now=now
        )
        self._durable = durable
        if durable is not None:
            durable.fill(self.cache.stock)
        self._upload, self._fleet, self._telling, self._now = upload, fleet, telling, now
        self._door, self._dial = door or Door(), dial
        self._telling_now: set[asyncio.Future[None]] = set()
        self._counts: Counter[str] = Counter()
        self._teller: asyncio.Task[None] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def renew(self, address: str) -> Fetched:
        """Poll one address and keep what comes; see `Cache.renew`."""
        return await self.cache.renew(address)

    async def close(self) -> None:
        """End what runs behind, and give back connections."""
        if self._teller is not None:
            self._teller.cancel()
            await asyncio.gather(self._teller, return_exceptions=True)
        await self.cache.close()
        if self._durable is not None:
            await self._durable.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _tell(self, fleet: Fleet) -> None:
        since = self._now()
        while True:
            await asyncio.sleep(self._telling)
            counts, self._counts, until = self._counts, Counter(), self._now()
            fleet.wanted(counts, until - since)
            since = until

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        fields = Fields.of((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        method, path = scope["method"], scope.get("raw_path") or scope["path"].encode()
        hosts = [value for name, value in fields.lines if name == "host"]
        if len(hosts) > 1 or (not hosts and scope["http_version"] != "1.0"):
            return await self._refuse(send, method, 400, "a request must name one host: send one Host field")
        host = hosts[0].lower() if hosts else ""
        forward = _FORWARD.match(path.decode("latin-1"))
        if forward:
            # Who speaks to a proxy says all of the address, and what it says counts before Host.
            host, path = forward[1].lower(), path[forward.end() :] or b"/"
        if method == "CONNECT":
            host = path.decode("latin-1").lower()
        if refused := self._door.refusal(host, fields, proxied=bool(forward) or method == "CONNECT"):
            return await _send(send, method, refused)
        if method == "CONNECT" and TUNNEL in scope.get("extensions", {}):
            return await self._connect(scope, send, host)
        if method in ("CONNECT", "TRACE"):
            return await self._refuse(send, method, 501, f"{method} is not supported by this proxy")
        origin = self._origins.get(host) or self._origins.get("*")
        if origin is None:
            return await self._refuse(send, method, 421, "this proxy does not answer for the host that was asked for")
        if any(via.split()[1:2] == [self._name] for via in members(fields.joined("via"))):
            return await self._refuse(send, method, 508, "the request came back to this proxy: its origin points at it")
        body = await self._body(fields, receive)
        if body is None:
            return await self._refuse(send, method, 413, f"a request may bring at most {self._upload} bytes")
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        if not path.startswith(b"/"):
            # Anything else would change the host that it is appended to.
            return await self._refuse(send, method, 400, "the path must begin with a slash")
        address = origin + "".join(chr(c) if 0x21 <= c <= 0x7E else f"%{c:02X}" for c in path + query)
        onward = self._door.stripped(fields.end_to_end()).without({"host", "content-length", "expect"})
        onward = onward.having(("via", appended(onward.joined("via"), f"{scope['http_version']} {self._name}")))
        # Who takes trailers says so, and to each hop anew [RFC 9110 6.5.1].
        trailed = TRAILERS in scope.get("extensions", {}) and "trailers" in members((fields.joined("te") or "").lower())
        if trailed:
            onward = onward.having(("te", "trailers"), ("connection", "te"))
        wish = directives(fields.joined("cache-control"))
        asked = Asked(method, address, onward, wish, body or None, self._interim(scope, send))
        try:
            served = await self.cache.answer(asked)
        except InputError as error:
            return await self._refuse(send, method, 400, str(error))
        except OSError as error:
            return await self._refuse(send, method, 504 if isinstance(error, TimeoutError) else 502, str(error))
        # Only what is held may join the fleet: its origin allows that it is kept, and shared.
        if self._fleet is not None and address in self.cache.stock:
            self._counts[address] += 1
            self._teller = self._teller or asyncio.create_task(self._tell(self._fleet))
        if served is None:
            return await self._refuse(send, method, 504, "nothing is stored that answers, and only that was asked for")
        await self._send(send, method, served, trailed)
        return None

    def _interim(self, scope: Message, send: Send) -> Interim | None:
        """What passes interim answers on, if the server can."""
        if INTERIM not in scope.get("extensions", {}):
            return None

        def passed(status: int, lines: Sequence[Line]) -> None:
            told = _lines(Fields.of(lines).end_to_end())
            task = asyncio.ensure_future(_quietly(send({"type": INTERIM, "status": status, "headers": told})))
            self._telling_now.add(task)
            task.add_done_callback(self._telling_now.discard)

        return passed

    async def _connect(self, scope: Message, send: Send, authority: str) -> None:
        """A tunnel to a host that this proxy answers for: what goes through it is not ours to read, nor to keep."""
        name, _, port = authority.rpartition(":")
        known = authority in self._origins or name in self._origins
        if self._dial is None or not known or not port.isdigit() or not 0 < int(port) < 65536:
            return await self._refuse(send, "CONNECT", 403, "this proxy opens tunnels only to the hosts that it serves")
        try:
            reader, writer = await self._dial(name.strip("[]"), int(port))
        except OSError as error:
            return await self._refuse(send, "CONNECT", 502, str(error))
        await scope["extensions"][TUNNEL](reader, writer, scope["extensions"].get("early", b""))
        return None

    async def _body(self, fields: Fields, receive: Receive) -> bytes | None:
        """The body of a request, None if it is too long."""
        if int(fields.first("content-length") or 0) > self._upload:
            return None
        chunks, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                # Half a body is not what the client meant to send on.
                raise ConnectionResetError("the client has gone")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._upload:
                return None
            more = message.get("more_body", False)
        return b"".join(chunks)

    async def _send(self, send: Send, method: str, served: Served, trailed: bool) -> None:
        fields, answered = served.fields, served.answered
        # Only behind chunks there is room for them; those of a body that is here already are known.
        trailed = trailed and answered is not None and "content-length" not in fields and method != "HEAD"
        trailed = trailed and (not isinstance(served.body, bytes) or bool(_trailers(served)))
        if served.status >= 600:
            return await self._refuse(send, method, 502, f"the origin answered with status {served.status}")
        if served.status in (204, 304):
            fields = fields.without({"content-length"})
        elif isinstance(served.body, bytes) and method != "HEAD" and not trailed:
            fields = fields.having(("content-length", str(len(served.body))))
        fields = fields.having(
            ("via", appended(fields.joined("via"), f"1.1 {self._name}")),
            ("cache-status", appended(fields.joined("cache-status"), f"{self._name}; {served.how}")),
        )
        start = {"type": "http.response.start", "status": served.status, "headers": _lines(fields)}
        await send({**start, "trailers": True} if trailed else start)
        last = served.body if isinstance(served.body, bytes) and method != "HEAD" else b""
        try:
            if not isinstance(served.body, bytes):
                async for chunk in served.body:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except OSError:
            return None  # The server breaks the connection off, which is all that can still be said.
        finally:
            if answered is not None:
                await answered.close()
        await send({"type": "http.response.body", "body": last})
        if trailed:
            await send({"type": TRAILERS, "headers": _trailers(served)})
        return None

    async def _refuse(self, send: Send, method: str, status: int, detail: str) -> None:
        await _send(send, method, problem(status, detail))


async def _send(send: Send, method: str, said: tuple[int, list[tuple[bytes, bytes]], bytes]) -> None:
    status, headers, body = said
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})


async def _quietly(sending: Awaitable[None]) -> None:
    with suppress(OSError):  # An interim answer is a courtesy.
        await sending


def _trailers(served: Served) -> list[tuple[bytes, bytes]]:
    """What goes on to the client of the lines behind a body."""
    assert served.answered is not None
    return _lines(Fields.of(served.answered.trailers).end_to_end().without({"content-length", "host"}))


def _lines(fields: Fields) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.lines]
