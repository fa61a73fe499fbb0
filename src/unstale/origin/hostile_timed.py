"""Ways to answer at the wrong time, or without end: what is done with a connection that is had for oneself.

Rules of this file:
1. A pause is at a place where a reader waits for something else: a line, a header, the size of a chunk, the last one.
2. Only who goes on after a moment and comes to an end has answered.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from functools import partial

from unstale.origin.hostile_crossed import framed

Act = Callable[[asyncio.Transport], Awaitable[None]]

#: seconds of a pause after which it goes on, and between the bytes of a drip
MOMENT, DRIP = 0.2, 0.05
_BODY = b"<p>a body that comes late</p>" * 4
_LINE, _TYPE = b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n"


def _speech(end: str) -> bytes:
    said, sent = framed(end, _BODY)
    return _LINE + _TYPE + said + b"\r\n" + sent


_WHOLE, _CHUNKS = _speech("length"), _speech("chunks")
#: what is said before the pause and after it
_PAUSES = {
    "before-all": (b"", _WHOLE),
    "in-line": (_WHOLE[:10], _WHOLE[10:]),
    "after-line": (_LINE, _WHOLE[len(_LINE) :]),
    "in-head": (_LINE + _TYPE[:9], _WHOLE[len(_LINE) + 9 :]),
    "before-body": (_WHOLE[: -len(_BODY)], _BODY),
    "in-body": (_WHOLE[:-20], _WHOLE[-20:]),
    "in-size-of-chunk": (_CHUNKS[: _CHUNKS.index(b"\r\n\r\n") + 5], _CHUNKS[_CHUNKS.index(b"\r\n\r\n") + 5 :]),
    "before-last-chunk": (_CHUNKS[:-5], _CHUNKS[-5:]),
}


async def _hang(transport: asyncio.Transport, rest: bytes) -> None:
    await asyncio.Event().wait()


async def _reset(transport: asyncio.Transport, rest: bytes) -> None:
    await asyncio.sleep(MOMENT)
    transport.abort()


async def _half_close(transport: asyncio.Transport, rest: bytes) -> None:
    transport.write_eof()
    await asyncio.Event().wait()


async def _drip(transport: asyncio.Transport, rest: bytes) -> None:
    # All but the last byte, again and again: it never comes to an end.
    for n in range(10**9):
        if transport.is_closing():
            return
        transport.write(rest[n : n + 1] if n < len(rest) - 1 else b"")
        await asyncio.sleep(DRIP)


async def _go_on(transport: asyncio.Transport, rest: bytes) -> None:
    await asyncio.sleep(MOMENT)
    transport.write(rest)


_HOWS = {"hang": _hang, "reset": _reset, "half-close": _half_close, "drip": _drip, "go-on": _go_on}


async def _paused(first: bytes, rest: bytes, how: str, transport: asyncio.Transport) -> None:
    transport.write(first)
    await _HOWS[how](transport, rest)


async def _endless(first: bytes, again: bytes, transport: asyncio.Transport) -> None:
    transport.write(first)
    many = again * (-(-16_384 // len(again)))
    while not transport.is_closing():
        if transport.get_write_buffer_size() < 2**20:
            transport.write(many)
        await asyncio.sleep(0)


_packer = zlib.compressobj(9, wbits=31)
_CHUNKED = _LINE + _TYPE + b"Transfer-Encoding: chunked\r\n\r\n"
_ENDLESS = {
    "interims": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    "blank-lines": (b"", b"\r\n"),
    "line": (b"HTTP/1.1 200 ", b"fine "),
    "headers": (_LINE, b"X-More: of it\r\n"),
    "chunks": (_CHUNKED, b"5\r\nabcde\r\n"),
    "size-of-chunk": (_CHUNKED, b"0"),
    "trailers": (_CHUNKED + b"1\r\na\r\n0\r\n", b"X-More: of it\r\n"),
    "body-of-404": (b"HTTP/1.1 404 No\r\n\r\n", b"not here "),
    "body-of-redirect": (b"HTTP/1.1 302 Found\r\nLocation: /hostile/endless-line\r\n\r\n", b"there "),
    "zeros-in-gzip": (
        _LINE + b"Content-Encoding: gzip\r\n\r\n" + _packer.compress(bytes(2**22)) + _packer.flush(zlib.Z_FULL_FLUSH),
        _packer.compress(bytes(2**20)) + _packer.flush(zlib.Z_FULL_FLUSH),
    ),
}

#: every act by name
TIMED: dict[str, Act] = {}
for _place, (_first, _rest) in _PAUSES.items():
    for _how in _HOWS:
        TIMED[f"pause-{_place}-{_how}"] = partial(_paused, _first, _rest, _how)
for _name, (_first, _again) in _ENDLESS.items():
    TIMED[f"endless-{_name}"] = partial(_endless, _first, _again)
#: those who come to an end
COME_TO_AN_END = frozenset(name for name in TIMED if name.endswith("-go-on"))
