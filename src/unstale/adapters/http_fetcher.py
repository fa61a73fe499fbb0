"""Polling the web through libcurl: one deadline, every hop through the gate, nothing from a source believed untested.

libcurl moves the bytes; redirects are followed here, so that each hop is judged and credentials stay at home. Reasons
are worded here too: they name the host and never a header, a path or a query, which may hold secrets.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

import pycurl

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.body_room import BodyRoom
from unstale.adapters.curl_driver import driver
from unstale.adapters.flight import Flight, Replied
from unstale.adapters.http_meaning import found, not_modified
from unstale.adapters.http_reasons import refusal, worded
from unstale.adapters.http_request import conditions, lines, target
from unstale.adapters.known_names import NEVER, RESOLVED, KnownNames
from unstale.adapters.landing import land
from unstale.adapters.transfer import NO_PROOF, Transfer, TransferReply
from unstale.errors import InputError, TooLateError
from unstale.ports import CallOff, Ended, Fetched, Request

MOST_REDIRECTS = 5
#: origins that are remembered for answers over HTTP/2 that nothing proves to be whole
MOST_PLAIN = 10_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: those after which the same is asked again, and not by GET
_AS_IT_WAS = frozenset({307, 308})


class HttpFetcher:
    """Looks at http and https sources: conditional requests, compressed bodies, HTTP/2 where the source has it.

    `gate` says which IP addresses may be dialled. A `proxy` is the operator's own word and resolves names itself, so
    the gate then only judges addresses written as numbers. `ca_file` replaces the system's trusted certificates.
    Bodies have `room` together with those of others who share it.
    """

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        agent: str = "unstale",
        connections: int = 512,
        proxy: str = "",
        ca_file: str = "",
        room: BodyRoom | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._gate, self._room = gate or Gate(), room or BodyRoom()
        self._agent, self._proxy, self._now = agent, proxy, now
        self._ca_file = ca_file or ssl.get_default_verify_paths().cafile
        self._driver = driver(connections)
        self._idle: list[Transfer] = []
        self._flying: set[Flight] = set()
        #: origins to be asked over HTTP/1.1, the one that was learned first in front
        self._plain: dict[str, None] = {}
        self._names = KnownNames()
        #: those after which libcurl does not look through them
        self._blind: set[Transfer] = set()

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at = self._now()
        return found(request, await self.look(request), polled_at)

    def begin(self, request: Request, ended: Ended, at: float | None = None) -> CallOff:
        """Look without being awaited; see `unstale.ports.QuickFetcher`. It began when it was asked for, `at` a time."""
        return self._begin(request, None, ended, at).call_off

    async def look(self, request: Request) -> TransferReply:
        """Ask and follow redirects; any status is an answer. A body cut at the limit comes with a reason."""
        future: asyncio.Future[TransferReply] = asyncio.get_running_loop().create_future()

        def replied(reply: TransferReply | Exception) -> None:
            if future.done():
                return
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

        flight = self._begin(request, replied)
        try:
            return await future
        finally:
            flight.call_off()

    async def close(self) -> None:
        """Give back connections; what is in flight ends as FAILED."""
        await self._driver.close()
        for flight in list(self._flying):
            flight.end(TransferReply(reason=f"{flight.here.host}: the fetcher was closed before the answer came"))
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()

    def _begin(
        self, request: Request, replied: Replied | None, ended: Ended | None = None, at: float | None = None
    ) -> Flight:
        loop, polled_at = asyncio.get_running_loop(), self._now() if at is None else at
        flight = Flight(request, replied, loop.time() + request.seconds, self._flying, ended, polled_at)
        try:
            flight.lines = lines(request) if request.headers else conditions(request.etag, request.last_modified)
            flight.here = web_address(request.address)
        except InputError as error:
            loop.call_soon(flight.end, TransferReply(reason=str(error)))
            return flight
        self._ask(flight, request.seconds)
        return flight

    def _ask(self, flight: Flight, left: float) -> None:
        """One request of a look, with so many seconds left; what came of it is heard in a later turn of the loop."""
        here, request = flight.here, flight.request
        if self._driver.closed:
            asyncio.get_running_loop().call_soon(flight.end, TransferReply(reason="the fetcher is closed"))
            return
        if self._proxy and (refused := self._refused_literal(here.host)):
            reply = TransferReply(reason=refusal(here.host, refused))
            asyncio.get_running_loop().call_soon(flight.end, reply)
            return
        transfer = self._idle.pop() if self._idle else self._new()
        flight.plainly = bool(self._plain) and here.origin in self._plain
        # What follows a first request of ours follows at once.
        late = None if flight.asked or request.begin_by == math.inf else self._too_late(request.begin_by)
        flight.asked = True
        curl = transfer.begin(
            here.text, flight.lines, left, request.limit, plainly=flight.plainly, late=late, content=request.content
        )
        if (looks := self._names.old(time.monotonic())) is (transfer in self._blind):
            (self._blind.discard if looks else self._blind.add)(transfer)
            curl.setopt(pycurl.DNS_CACHE_TIMEOUT, RESOLVED if looks else NEVER)
        transfer.flight, flight.exchange = flight, transfer.call_off
        self._driver.start(curl, transfer.landed)

    def _call_off(self, transfer: Transfer) -> None:
        self._driver.call_off(transfer.curl)
        transfer.body.drop()

    def _landed(self, transfer: Transfer, code: int) -> None:
        flight, transfer.flight = transfer.flight, None
        flight.exchange = None
        try:
            self._idle.append(transfer)
            if transfer.too_late:
                host = flight.here.host
                raise TooLateError(f"{host}: the time to begin this poll was over before it was asked")
            if not code and transfer not in self._blind:
                self._names.looked(time.monotonic())
            ended = flight.ended
            if (
                ended is not None
                and not code
                and flight.lines
                and not (flight.sent or flight.request.headers)
                and (same := transfer.unchanged())
            ):
                flight.over()
                ended(not_modified(flight.request, flight.here.text, *same, flight.polled_at))
                return
            why = worded(code, flight.here, transfer, flight.request) if code else ""
            self._answered(flight, transfer.end(flight.here, why))
        except Exception as error:  # Too late, or a fault of ours: whoever waits for this must hear of it.
            flight.end(error)

    def _again(self, flight: Flight) -> None:
        self._ask(flight, max(flight.deadline - asyncio.get_running_loop().time(), 0.001))

    def _answered(self, flight: Flight, reply: TransferReply) -> None:
        """Follow a redirect, or ask once more over HTTP/1.1, where every end is said; other answers are the last."""
        here, request = flight.here, flight.request
        flight.count(reply)
        if reply.reason.endswith(NO_PROOF) and not flight.plainly:
            self._plain[here.origin] = None
            if len(self._plain) > MOST_PLAIN:
                del self._plain[next(iter(self._plain))]
            self._again(flight)
            return
        location = reply.headers.get("location") if reply.status in _REDIRECTS else None
        if reply.reason or location is None:
            land(flight, reply)
            return
        try:
            there = target(here, location)
        except InputError as error:
            flight.give_up(f"{here.host}: it redirects, but the {error}")
            return
        if request.headers and here.origin.startswith("https:") and there.origin.startswith("http:"):
            flight.give_up(f"{here.host}: it redirects from https to http, which is not followed with headers of ours")
            return
        if request.content and (reply.status not in _AS_IT_WAS or there.origin != here.origin):
            flight.give_up(f"{here.host}: it redirects what was asked by POST: give the address that it leads to")
            return
        if there.origin != here.origin:
            # What the caller sends along was for the first origin, and does not come back once it is left.
            flight.lines = conditions(request.etag, request.last_modified)
        flight.here = there
        flight.hops += 1
        if flight.hops > MOST_REDIRECTS:
            flight.give_up(f"{there.host}: it redirects more than {MOST_REDIRECTS} times")
            return
        self._again(flight)

    def _too_late(self, begin_by: float) -> Callable[[], bool]:
        return lambda: self._now() > begin_by

    def _new(self) -> Transfer:
        transfer = Transfer(self._gate if not self._proxy else None, self._room).watched(self._driver.watching)
        # Made once, and not for every poll.
        transfer.landed, transfer.call_off = partial(self._landed, transfer), partial(self._call_off, transfer)
        return transfer.known_as(self._agent, self._ca_file, self._proxy)

    def _refused_literal(self, host: str) -> str:
        try:
            # The system's own reading of 127.1 and 0x7f.1, which the proxy may share.
            literal = host[1:-1] if host.startswith("[") else socket.inet_ntoa(socket.inet_aton(host))
            return "" if self._gate.permits(str(ip_address(literal))) else literal
        except (OSError, ValueError):
            return ""
