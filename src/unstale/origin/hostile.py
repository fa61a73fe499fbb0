"""How sources misbehave, for those who must survive it: `/hostile/<kind>`.

Some say what they should not, others do it: those have the connection for themselves.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import zlib
from collections.abc import Awaitable, Callable
from functools import cache

from unstale.origin.hostile_crossed import CROSSED
from unstale.origin.hostile_table import TABLE
from unstale.origin.hostile_timed import TIMED

#: decoded size of the bomb in bytes, size of the huge headers, and seconds between the bytes of a drip
BOMB, HEADERS, DRIP = 64 * 2**20, 2**20, 0.05
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
_said = itertools.count(1)


def _whole(body: bytes, start: bytes = _OK, more: bytes = b"") -> bytes:
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (start, more, len(body), body)


async def _hang(transport: asyncio.Transport) -> None:
    await asyncio.Event().wait()


async def _drip(transport: asyncio.Transport) -> None:
    transport.write(_OK + b"Content-Length: 1000000\r\n\r\n")
    while not transport.is_closing():
        transport.write(b"a")
        await asyncio.sleep(DRIP)


async def _endless(transport: asyncio.Transport) -> None:
    transport.write(_OK + b"\r\n")
    while not transport.is_closing():
        # A slow reader is waited for: what it has not taken yet stays small.
        if transport.get_write_buffer_size() < 2**20:
            transport.write(b"a" * 65536)
        await asyncio.sleep(0)


async def _reset(transport: asyncio.Transport) -> None:
    transport.abort()


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join(packer.compress(bytes(2**20)) for _ in range(BOMB // 2**20)) + packer.flush()
    return _whole(body, more=b"Content-Encoding: gzip\r\n")


def _huge_headers() -> bytes:
    line = b"X-Long: " + b"a" * 1000 + b"\r\n"
    return _whole(b"<p>small</p>", more=line * (HEADERS // len(line)))


def _same_etag() -> bytes:
    return _whole(b"<p>body %d</p>" % next(_said), more=b'ETag: "always-the-same"\r\n')


def _noise() -> bytes:
    return _whole(b'<p id="content">always the same</p><p id="clock">%.6f, %d</p>' % (time.time(), next(_said)))


def _loop() -> bytes:
    return _whole(b"", b"HTTP/1.1 302 Found\r\nLocation: /hostile/redirect-loop\r\n")


def _wait(status: bytes) -> bytes:
    return _whole(b"later", b"HTTP/1.1 %s\r\nRetry-After: 2\r\n" % status)


#: what is said, anew each time
SAID: dict[str, Callable[[], bytes]] = {
    "redirect-loop": _loop,
    "bomb": _bomb,
    "truncated": lambda: _OK + b"Content-Length: 1000\r\n\r\nshort",
    "wrong-length": lambda: _OK + b"Content-Length: 5\r\n\r\nlonger than that",
    "garbage": lambda: b"\x00\xffthis is no HTTP\r\n\r\n",
    "huge-headers": _huge_headers,
    "too-many": lambda: _wait(b"429 Too Many Requests"),
    "unavailable": lambda: _wait(b"503 Service Unavailable"),
    "unasked-304": lambda: b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "same-etag": _same_etag,
    "noise": _noise,
}
#: after these the connection is closed, for nothing whole could follow
BROKEN = frozenset({"truncated", "wrong-length", "garbage"})
#: what is done with the connection
DONE: dict[str, Callable[[asyncio.Transport], Awaitable[None]]] = {
    "hang": _hang,
    "drip": _drip,
    "endless": _endless,
    "reset": _reset,
}
#: all that is done, and what is said and always the same
ACTS, ALWAYS = DONE | TIMED, TABLE | CROSSED
#: every way to misbehave: what is said anew each time, what is done, and what is always the same
KINDS = (*SAID, *ACTS, *ALWAYS)
