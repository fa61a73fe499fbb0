"""Polling the web through libcurl: one deadline, every hop through the gate, nothing from a source believed untested.

libcurl moves the bytes; redirects are followed here, so that each hop is judged and credentials stay at home. Reasons
are worded here too: they name the host and never a header, a path or a query, which may hold secrets.
"""

from __future__ import annotations

import asyncio
import math
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urljoin

import pycurl

from unstale.adapters.addresses import Gate, WebAddress, web_address
from unstale.adapters.body_room import BodyRoom
from unstale.adapters.curl_driver import driver
from unstale.adapters.flight import Flight, Replied
from unstale.adapters.http_age import aged
from unstale.adapters.landing import land, no_room, validator
from unstale.adapters.retry_headers import http_date, wait
from unstale.adapters.transfer import NO_BODY, NO_CODING, NO_HTTP, NO_PROOF, WHOLE, Transfer, TransferReply
from unstale.errors import InputError, TooLateError
from unstale.keeper.outcomes import Answer
from unstale.ports import CallOff, Ended, Fetched, Request

MOST_REDIRECTS = 5
#: sources whose conditions are kept ready for the next poll
PREPARED = 8192
#: origins that are remembered for answers over HTTP/2 that nothing proves to be whole
MOST_PLAIN = 10_000
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
# libcurl codes that pycurl has no name for
_WEIRD_REPLY, _HTTP2_STREAM, _TOO_LARGE = 8, 92, 100
_REASONS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "its name could not be resolved",
    pycurl.E_COULDNT_CONNECT: "it could not be connected to",
    pycurl.E_UNSUPPORTED_PROTOCOL: NO_HTTP,
    _WEIRD_REPLY: NO_HTTP,
    pycurl.E_PARTIAL_FILE: NO_BODY,
    pycurl.E_GOT_NOTHING: "it closed the connection without an answer",
    pycurl.E_SEND_ERROR: "the connection was cut",
    pycurl.E_RECV_ERROR: "the connection was cut",
    pycurl.E_BAD_CONTENT_ENCODING: NO_CODING,
    _TOO_LARGE: "its headers are too large",
    pycurl.E_PEER_FAILED_VERIFICATION: "its certificate is not trusted",
    pycurl.E_SSL_CONNECT_ERROR: "no secure connection could be agreed on",
    pycurl.E_HTTP2: "it broke the rules of HTTP/2",
    _HTTP2_STREAM: "it broke the rules of HTTP/2",
}


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

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at = self._now()
        return _found(request, await self.look(request), polled_at)

    def begin(self, request: Request, ended: Ended) -> CallOff:
        """Look without being awaited; see `unstale.ports.QuickFetcher`."""
        polled_at = self._now()

        def replied(reply: TransferReply | Exception) -> None:
            try:
                found = reply if isinstance(reply, Exception) else _found(request, reply, polled_at)
            except Exception as error:  # A fault of ours, which whoever waits for this must hear of.
                found = error
            ended(found)

        return self._begin(request, replied).call_off

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

    def _begin(self, request: Request, replied: Replied) -> Flight:
        loop = asyncio.get_running_loop()
        flight = Flight(request, replied, loop.time() + request.seconds, self._flying)
        try:
            flight.lines = _lines(request) if request.headers else _conditions(request.etag, request.last_modified)
            flight.here = web_address(request.address)
        except InputError as error:
            loop.call_soon(flight.end, TransferReply(reason=str(error)))
            return flight
        self._ask(flight)
        return flight

    def _ask(self, flight: Flight) -> None:
        """One request of a look; what came of it is heard in a later turn of the loop."""
        here, loop = flight.here, asyncio.get_running_loop()
        if self._driver.closed:
            loop.call_soon(flight.end, TransferReply(reason="the fetcher is closed"))
            return
        if self._proxy and (refused := self._refused_literal(here.host)):
            loop.call_soon(flight.end, TransferReply(reason=_refusal(here.host, refused)))
            return
        transfer = self._idle.pop() if self._idle else self._new()
        left, limit = max(flight.deadline - loop.time(), 0.001), flight.request.limit
        flight.plainly = here.origin in self._plain
        # What follows a first request of ours follows at once.
        late = None if flight.asked or flight.request.begin_by == math.inf else self._too_late(flight.request.begin_by)
        flight.asked = True
        curl = transfer.begin(here.text, flight.lines, left, limit, plainly=flight.plainly, late=late)

        def landed(code: int) -> None:
            flight.exchange = None
            try:
                self._idle.append(transfer)
                if transfer.too_late:
                    raise TooLateError(f"{here.host}: the time to begin this poll was over before it was asked")
                why = self._reason(code, here, transfer, flight.request) if code else ""
                self._answered(flight, transfer.end(here, why))
            except Exception as error:  # Too late, or a fault of ours: whoever waits for this must hear of it.
                flight.end(error)

        def call_off() -> None:
            self._driver.call_off(curl)
            transfer.body.drop()

        flight.exchange = call_off
        self._driver.start(curl, landed)

    def _answered(self, flight: Flight, reply: TransferReply) -> None:
        """Follow a redirect, or ask once more over HTTP/1.1, where every end is said; other answers are the last."""
        here, request = flight.here, flight.request
        flight.count(reply)
        if reply.reason.endswith(NO_PROOF) and not flight.plainly:
            self._plain[here.origin] = None
            if len(self._plain) > MOST_PLAIN:
                del self._plain[next(iter(self._plain))]
            self._ask(flight)
            return
        location = reply.headers.get("location") if reply.status in _REDIRECTS else None
        if reply.reason or location is None:
            land(flight, reply)
            return
        try:
            there = _target(here, location)
        except InputError as error:
            flight.give_up(f"{here.host}: it redirects, but the {error}")
            return
        if request.headers and here.origin.startswith("https:") and there.origin.startswith("http:"):
            flight.give_up(f"{here.host}: it redirects from https to http, which is not followed with headers of ours")
            return
        if there.origin != here.origin:
            # What the caller sends along was for the first origin, and does not come back once it is left.
            flight.lines = _conditions(request.etag, request.last_modified)
        flight.here = there
        flight.hops += 1
        if flight.hops > MOST_REDIRECTS:
            flight.give_up(f"{there.host}: it redirects more than {MOST_REDIRECTS} times")
            return
        self._ask(flight)

    def _too_late(self, begin_by: float) -> Callable[[], bool]:
        return lambda: self._now() > begin_by

    def _new(self) -> Transfer:
        transfer = Transfer(self._gate if not self._proxy else None, self._room).watched(self._driver.watching)
        curl = transfer.curl
        curl.setopt(pycurl.USERAGENT, self._agent)
        # An empty proxy overrules the environment's, which would dial past the gate.
        curl.setopt(pycurl.PROXY, self._proxy)
        if self._ca_file:
            curl.setopt(pycurl.CAINFO, self._ca_file)
        return transfer

    def _refused_literal(self, host: str) -> str:
        try:
            # The system's own reading of 127.1 and 0x7f.1, which the proxy may share.
            literal = host[1:-1] if host.startswith("[") else socket.inet_ntoa(socket.inet_aton(host))
            return "" if self._gate.permits(str(ip_address(literal))) else literal
        except (OSError, ValueError):
            return ""

    def _reason(self, code: int, here: WebAddress, transfer: Transfer, request: Request) -> str:
        if transfer.fault:
            return f"{here.host}: {transfer.fault}"
        if code == pycurl.E_WRITE_ERROR and transfer.status not in WHOLE | {0}:
            return ""  # We stopped a long explanation of a refusal; it is still that refusal.
        if transfer.refused and code == pycurl.E_COULDNT_CONNECT:
            return _refusal(here.host, transfer.refused)
        if code == pycurl.E_OPERATION_TIMEDOUT and transfer.body.waits:
            return no_room(here.host, request)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            return f"{here.host}: no whole answer within {request.seconds:g} s"
        if code == pycurl.E_RECV_ERROR and transfer.too_many_headers():
            return f"{here.host}: {_REASONS[_TOO_LARGE]}"
        return f"{here.host}: {_REASONS.get(code, f'the exchange broke off (libcurl error {code})')}"


def _found(request: Request, reply: TransferReply, polled_at: float) -> Fetched:
    found = fetched(request, reply, polled_at)
    return aged(found, request, reply.headers, _host(reply.address)) if "age" in reply.headers else found


def fetched(request: Request, reply: TransferReply, polled_at: float) -> Fetched:
    """What a reply means for the poll that asked for it."""
    headers, status, reason = reply.headers, reply.status, reply.reason
    answer, body, media_type = Answer.FAILED, None, ""
    etag, last_modified = headers.get("etag"), headers.get("last-modified")
    changed_at: tuple[float, ...] = ()
    if not reason and status in WHOLE and not reply.same:
        answer, body, media_type = Answer.CHANGED, reply.body, headers.get("content-type", "")
        changed_at = _changed_at(headers, polled_at)
    elif not reason and (reply.same or (status == 304 and _conditions(request.etag, request.last_modified))):
        answer = Answer.UNCHANGED
        etag, last_modified = etag or request.etag, last_modified or request.last_modified
    else:
        reason = reason or f"{_host(reply.address)}: it answered {_named(status)}"
        etag = last_modified = None
    # In the order of its fields: naming them would take as long as all the rest.
    return Fetched(
        answer,
        polled_at,
        body,
        media_type,
        validator(etag),
        validator(last_modified),
        changed_at,
        reason,
        wait(status, headers, polled_at),
        status,
        reply.address,
        reply.received,
        requests=reply.requests,
    )


def _lines(request: Request) -> list[str]:
    for name, value in request.headers.items():
        if not _NAME.fullmatch(name) or not _PRINTABLE.fullmatch(value):
            raise InputError(
                f"header {name[:80]!r} must be printable ASCII without line breaks: check its name and value"
            )
    # libcurl reads "name:" as an order to leave the header out.
    own = [f"{name}: {value}" if value else f"{name};" for name, value in request.headers.items()]
    return own + _conditions(request.etag, request.last_modified)


@lru_cache(maxsize=PREPARED)
def _conditions(etag: str | None, last_modified: str | None) -> list[str]:
    """The lines of a conditional request: most often the same as the last time. Nobody writes to them."""
    lines = []
    if etag := validator(etag):
        lines.append(f"If-None-Match: {etag}")
    if last_modified := validator(last_modified):
        lines.append(f"If-Modified-Since: {last_modified}")
    return lines


def _target(here: WebAddress, location: str) -> WebAddress:
    location = location.replace(" ", "%20")
    # Joining would silently drop line breaks and tabs; they are found before it can.
    web_address(f"http://x/{location}")
    try:
        joined = urljoin(here.text, location)
    except ValueError:
        raise InputError("address is not a web address") from None
    return web_address(joined)


def _changed_at(headers: Mapping[str, str], polled_at: float) -> tuple[float, ...]:
    """The time of Last-Modified, unless it is no earlier than the answer itself and so tells nothing."""
    when = http_date(headers.get("last-modified"))
    answered = http_date(headers.get("date")) or polled_at
    return (when,) if when is not None and 0.0 < when < min(answered, polled_at) else ()


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _host(address: str) -> str:
    return web_address(address).host


def _refusal(host: str, dialled: str) -> str:
    return f"{host}: its address {dialled} is not public, add it to allow_networks in the settings if it may be polled"
