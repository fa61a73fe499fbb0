"""The one way out of a browser: a proxy on this machine that dials only what the gate permits, and counts bytes.

Rules of this file:
1. Names are resolved here, and the address that was judged is the one that is dialled: a page cannot have its browser
   reach what a poll may not.
2. Only our own browser may use it: it has a password, new with every start.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.dialling import dialler
from unstale.errors import InputError

#: bytes of a request's head, and seconds in which it must have come
HEAD, PATIENCE = 65_536, 30.0
_PIECE = 65_536
#: what is for the proxy alone, or would keep a connection that is judged once
_OURS = (b"proxy-", b"connection:", b"keep-alive:")


class BrowserGate:
    """A proxy for one browser. `received` counts the bytes that came through it."""

    def __init__(self, gate: Gate) -> None:
        self._gate, self._dial = gate, dialler(gate)
        self.username, self.password = "unstale", secrets.token_urlsafe(16)
        known = base64.b64encode(f"{self.username}:{self.password}".encode())
        self._word = b"basic " + known
        self._server: asyncio.Server | None = None
        self.received = 0

    async def open(self) -> str:
        """Listen; the address to give to the browser."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Listen no more; connections end with their browser."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other: asyncio.StreamWriter | None = None
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            line, *fields = head[:-4].split(b"\r\n")
            if not any(self._known(field) for field in fields):
                raise _Refusal(b"407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=unstale")
            method, target, _ = line.split(b" ", 2)
            host, port, sent = _tunnel(target) if method == b"CONNECT" else _asked(method, target, fields)
            try:
                back, other = await self._dial(host, port)
            except ConnectionError:
                raise _Refusal(b"502 Bad Gateway") from None
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection Established\r\n\r\n")
            other.write(sent)
            await asyncio.gather(self._pass(reader, other, False), self._pass(back, writer, True))
        except _Refusal as refusal:
            writer.write(b"HTTP/1.1 " + refusal.said + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, InputError):
            pass
        finally:
            for end in (writer, other):
                if end is not None:
                    with contextlib.suppress(OSError, RuntimeError):
                        end.close()

    def _known(self, field: bytes) -> bool:
        name, _, value = field.partition(b":")
        scheme, _, word = value.strip().partition(b" ")
        same = secrets.compare_digest(scheme.lower() + b" " + word, self._word)
        return name.lower() == b"proxy-authorization" and same

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, counted: bool) -> None:
        try:
            while piece := await source.read(_PIECE):
                self.received += len(piece) if counted else 0
                target.write(piece)
                await target.drain()
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                target.close()


class _Refusal(Exception):
    def __init__(self, said: bytes) -> None:
        super().__init__(said)
        self.said = said


def _tunnel(target: bytes) -> tuple[str, int, bytes]:
    host, _, port = target.decode("ascii").rpartition(":")
    return web_address(f"https://{host}/").host, int(port), b""


def _asked(method: bytes, target: bytes, fields: list[bytes]) -> tuple[str, int, bytes]:
    """Where a plain request goes, and as it is sent there: by its path, on a connection that ends with it."""
    place = web_address(target.decode("ascii"))
    rest = place.text.partition("://")[2].partition("/")[2]
    kept = [field for field in fields if not field.lower().startswith(_OURS)]
    lines = [method + b" /" + rest.encode("ascii") + b" HTTP/1.1", *kept, b"Connection: close", b"", b""]
    return place.host, int(place.origin.rpartition(":")[2]), b"\r\n".join(lines)
