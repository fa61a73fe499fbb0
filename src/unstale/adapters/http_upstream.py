"""Asking an origin on behalf of a proxy's client, through libcurl: nothing decoded, nothing followed, nothing added."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pycurl

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.transfer import NO_BODY, NO_HEAD, Transfer, stated

Line = tuple[str, str]
Interim = Callable[[int, Sequence[Line]], None]

#: bytes of a body that wait for a slow client before the origin is made to wait too
AHEAD = 2**20
#: seconds to reach an origin
REACH = 10
#: what libcurl would add on its own, and a proxy must not
_NOT_OURS = {"accept": b"Accept:", "content-type": b"Content-Type:", "user-agent": b"User-Agent:"}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer whose body is still coming. `close` gives the rest up."""

    status: int
    lines: list[Line]
    body: AsyncIterator[bytes]
    transfer: _Hop

    async def close(self) -> None:
        """Want no more of the body."""
        await self.transfer.close()


class HttpUpstream:
    """Asks http and https origins; `gate` says which IP addresses may be dialled, `seconds` how long silence may last.

    To be made while the event loop runs. Failures are ConnectionError, or TimeoutError for waiting in vain, each with
    one sentence that names the host.
    """

    def __init__(
        self, gate: Gate | None = None, *, seconds: float = 30.0, connections: int = 512, ca_file: str = ""
    ) -> None:
        self._gate, self._seconds = gate or Gate(), seconds
        self._ca_file = ca_file or ssl.get_default_verify_paths().cafile
        self._multi = pycurl.AsyncCurlMulti()
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)

    async def ask(
        self,
        method: str,
        address: str,
        lines: Sequence[Line],
        body: bytes | None = None,
        interim: Interim | None = None,
    ) -> Answered:
        """The answer once its head is there; of those that come before it `interim` hears, but for 100 and 101."""
        there = web_address(address)
        hop = _Hop(self._gate, there.host, self._multi)
        hop.interim = interim
        curl = hop.curl
        # As it was written: who keeps the answer keeps it under this address and no other.
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.URL, there.text)
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.CONNECTTIMEOUT, REACH)
        curl.setopt(pycurl.LOW_SPEED_LIMIT, 1)
        curl.setopt(pycurl.LOW_SPEED_TIME, max(1, round(self._seconds)))
        if self._ca_file:
            curl.setopt(pycurl.CAINFO, self._ca_file)
        given = {name for name, _ in lines}
        # libcurl reads "name:" as an order to leave a header out, and "name;" as an empty one.
        sent = [f"{name}: {value}".encode("latin-1") if value else f"{name};".encode() for name, value in lines]
        sent += [b"Expect:", *(line for name, line in _NOT_OURS.items() if name not in given)]
        if method == "HEAD":
            curl.setopt(pycurl.NOBODY, 1)
            hop.bodiless = True
        elif body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)
        elif method in ("POST", "PUT", "PATCH"):
            sent.append(b"Content-Length: 0")
        if method not in ("GET", "HEAD"):
            curl.setopt(pycurl.CUSTOMREQUEST, method)
        curl.setopt(pycurl.HTTPHEADER, sent)
        return await hop.begin_answer()

    async def close(self) -> None:
        """Give back connections; what is under way breaks off."""
        await self._multi.aclose()


class _Hop(Transfer):
    """One exchange: a head, then a body that is taken piece by piece."""

    __slots__ = (
        "_chunks",
        "_code",
        "_ended",
        "_head",
        "_host",
        "_kept",
        "_multi",
        "_paused",
        "_taken",
        "_task",
        "_waits",
        "_wake",
        "bodiless",
        "interim",
    )

    def __init__(self, gate: Gate, host: str, multi: Any) -> None:
        super().__init__(gate)
        self.refused = ""
        #: whether the answer has no body, whatever length it states
        self.bodiless = False
        self.interim: Interim | None = None
        self._host, self._multi = host, multi
        self._kept: list[Line] = []
        self._chunks: deque[bytes] = deque()
        self._code, self._waits, self._taken, self._paused, self._ended = 0, 0, 0, False, False
        self._wake = asyncio.Event()
        self._head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.curl.unsetopt(pycurl.ACCEPT_ENCODING)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._header)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._piece)

    async def begin_answer(self) -> Answered:
        """Send, and wait for the head."""
        self._task = asyncio.create_task(self._run())
        try:
            await asyncio.shield(self._head)
        except BaseException:
            await self.close()
            raise
        return Answered(self._code, self._kept, self._pieces(), self)

    async def close(self) -> None:
        """Give the exchange up if it is not over."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._head.done() and not self._head.cancelled():
            self._head.exception()

    async def _run(self) -> None:
        error: OSError | None = None
        try:
            await self._multi.add_handle(self.curl)
            if cut := self._cut_short():
                error = ConnectionError(f"{self._host}: {cut}")
        except pycurl.error as problem:
            error = self._error(int(problem.args[0]))
        finally:
            self._ended = True
            if not self._head.done():
                self._head.set_exception(error or ConnectionError(f"{self._host}: the exchange was given up"))
            elif error is not None:
                self._head = asyncio.get_running_loop().create_future()
                self._head.set_exception(error)
            self._wake.set()

    def _cut_short(self) -> str:
        """Which end of an answer was not seen, though libcurl found nothing wrong with it."""
        if not self._head.done():
            return NO_HEAD
        given = dict(reversed(self._kept))
        length = given.get("content-length")
        if self.bodiless or self._code in (204, 304) or length is None or "transfer-encoding" in given:
            return ""
        return "" if stated(length) == self._taken else NO_BODY

    def _error(self, code: int) -> OSError:
        if self.refused and code == pycurl.E_COULDNT_CONNECT:
            return ConnectionError(
                f"{self._host}: its address is not public, add it to allow_networks if it may be asked"
            )
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return TimeoutError(f"{self._host}: the origin did not answer in time")
        if code in (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_HOST):
            return ConnectionError(f"{self._host}: the origin cannot be reached")
        return ConnectionError(f"{self._host}: the exchange with the origin broke off (libcurl error {code})")

    def _header(self, line: bytes) -> None:
        text = line.decode("latin-1").rstrip("\r\n")
        if self._head.done():
            return  # Trailers are not passed on.
        if line.startswith(b"HTTP/"):
            self._kept, self._code = [], int(line.split(None, 2)[1])
        elif not text:
            # A head that was cut within its last line end is cut.
            if self._code >= 200 and line.endswith(b"\n"):
                self._head.set_result(None)
            elif self._code > 101 and self.interim is not None:
                self.interim(self._code, self._kept)
        elif text[0] in " \t" and self._kept:
            name, value = self._kept[-1]
            self._kept[-1] = (name, f"{value} {text.strip()}")
        else:
            name, _, value = text.partition(":")
            self._kept.append((name.lower(), value.strip(" \t")))

    def _piece(self, chunk: bytes) -> int | None:
        if self._waits > AHEAD:
            self._paused = True
            return int(pycurl.WRITEFUNC_PAUSE)
        self._chunks.append(chunk)
        self._waits += len(chunk)
        self._taken += len(chunk)
        self._wake.set()
        return None

    async def _pieces(self) -> AsyncIterator[bytes]:
        while True:
            if self._chunks:
                chunk = self._chunks.popleft()
                self._waits -= len(chunk)
                if self._paused and self._waits < AHEAD // 2 and not self._ended:
                    self._paused = False
                    self.curl.pause(pycurl.PAUSE_CONT)
                yield chunk
            elif self._ended:
                self._head.result()
                return
            else:
                self._wake.clear()
                await self._wake.wait()
