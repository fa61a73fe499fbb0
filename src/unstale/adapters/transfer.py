"""One exchange with a web server through libcurl: what is dialled passes the gate, what comes back has bounds.

Rules of this file:
1. An end that was not seen is a failure: of the header section (its blank line), of the length that was stated, and of
   the coding. libcurl takes some answers for whole that were cut, and undoes codings without looking for their end.
2. A plain body without a stated length ends where its connection is closed and not reset. In HTTP/2 libcurl also takes
   a stream that is reset without an error for ended, and does not tell: an answer without a length or a coding
   that ends by itself is not whole there, and to be asked for again over HTTP/1.1.
3. All bodies together have a bound: a transfer for whose body there is no room stands still until there is.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field
from math import ceil
from typing import Any, Self

import pycurl

from unstale.adapters.addresses import Gate, WebAddress
from unstale.adapters.answer_head import head_of
from unstale.adapters.body_room import SMALL, BodyRoom, IncomingBody, LandedBody
from unstale.adapters.curl_driver import Opens
from unstale.codings import OFFERED, BrokenCoding, Decoder, TooMuch, codings_of
from unstale.frozen import dataclass

#: statuses whose body is the source's
WHOLE = frozenset({200, 203, 204})
#: bytes of an unwanted body that are read and dropped to keep the connection
SPARE = 65_536
#: bytes of headers beyond which libcurl's giving up is put down to them; its own bound is 300 KiB
MOST_HEADERS = 262_144
#: why an answer is not whole: its headers, its body by length, its body by coding, its coding
NO_HTTP, TOO_MUCH = "it did not answer in HTTP", "the body has more than"
NO_HEAD, NO_BODY = "its headers ended before their end", "the body ended before its stated end"
NO_END, NO_CODING = "the compressed body ended before its end", "the body could not be decoded"
NO_PROOF = "nothing says that its answer over HTTP/2 is whole"

Late = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class TransferReply:
    """What came back from the last hop, its codings undone. `reason` says why it is not whole, `status` is 0 if there
    was no answer. A body that is `large` is still to be read; `same` if it need not be, for we hold it."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    address: str = ""
    received: int = 0
    reason: str = ""
    #: requests that were sent, redirects included
    requests: int = 1
    large: LandedBody | None = None
    same: bool = False


class Transfer:
    """One libcurl handle, used again and again, and what it has received this time."""

    __slots__ = (
        "_expected",
        "_gate",
        "_late",
        "_limit",
        "_lines",
        "_posted",
        "_room",
        "_set",
        "body",
        "call_off",
        "curl",
        "dialled",
        "fault",
        "flight",
        "landed",
        "refused",
        "status",
        "too_late",
    )

    def __init__(self, gate: Gate | None, room: BodyRoom | None = None) -> None:
        self._gate, self._room = gate, room or BodyRoom()
        #: what the handle was told of HTTP's version and of time: telling it again costs as much as reading an answer
        self._set = (False, 0.0)
        #: whether it is too late to ask, where that is to be looked at
        self._late: Late | None = None
        #: whether the last request was a POST
        self._posted = False
        self._lines: list[bytes] = []
        #: the look that it is used for, who hears of its end, and what calls it off
        self.flight: Any = None
        self.landed: Callable[[int], None]
        self.call_off: Callable[[], None]
        self.body = IncomingBody(self._room)
        self.curl = curl = pycurl.Curl()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        # Codings are undone here, not by libcurl, which does not look for their end.
        curl.setopt(pycurl.ACCEPT_ENCODING, OFFERED)
        curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        # libcurl bounds the headers; reading them line by line in Python would be a tenth of a poll.
        curl.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)

    def known_as(self, agent: str, trusted: str = "", proxy: str = "") -> Self:
        """Itself, as who asks: under which name, whose certificates it believes beside the usual, by which proxy."""
        self.curl.setopt(pycurl.USERAGENT, agent)
        # An empty proxy overrules the environment's, which would dial past the gate.
        self.curl.setopt(pycurl.PROXY, proxy)
        if trusted:
            # A path may hold any letters, a text for libcurl only ASCII.
            self.curl.setopt(pycurl.CAINFO, os.fsencode(trusted))
        return self

    def watched(self, watching: Callable[[Opens], Opens]) -> Self:
        """Itself, with its sockets watched by who drives it."""
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, watching(self._open))
        return self

    def begin(
        self,
        address: str,
        lines: list[str],
        seconds: float,
        limit: int,
        *,
        plainly: bool = False,
        late: Late | None = None,
        content: bytes = b"",
    ) -> pycurl.Curl:
        """Forget the last exchange and make ready for the next, over HTTP/1.1 if `plainly`, by POST if it has content.

        `late` is asked in the last moment before a connection is dialled, or one that stands is written to.
        """
        self._lines.clear()
        self.status, self._limit, self._expected = 0, limit, 0
        self.refused = self.fault = ""
        curl = self.curl
        curl.setopt(pycurl.URL, address)
        # An empty list would leave the lines of the poll before, which were for somebody else.
        if lines:
            curl.setopt(pycurl.HTTPHEADER, lines)
        else:
            curl.unsetopt(pycurl.HTTPHEADER)
        if self._set != (wanted := (plainly, seconds)):
            self._set = wanted
            version = pycurl.CURL_HTTP_VERSION_1_1 if plainly else pycurl.CURL_HTTP_VERSION_2TLS
            curl.setopt(pycurl.HTTP_VERSION, version)
            curl.setopt(pycurl.TIMEOUT_MS, max(1, ceil(seconds * 1000)))
        if content:
            curl.setopt(pycurl.POSTFIELDS, content)
            self._posted = True
        elif self._posted:
            curl.setopt(pycurl.HTTPGET, 1)
            self._posted = False
        self.too_late = self.dialled = False
        if late is not None:
            curl.setopt(pycurl.PREREQFUNCTION, self._sends)
        elif self._late is not None:
            curl.unsetopt(pycurl.PREREQFUNCTION)
        self._late = late
        return curl

    def unchanged(self) -> tuple[dict[str, str], int] | None:
        """The headers of a whole "not modified" and the bytes that came; None, and `end` it, if it is anything else."""
        curl, body = self.curl, self.body
        if curl.getinfo(pycurl.RESPONSE_CODE) != 304 or body.size:
            return None
        status, headers, ended = head_of(self._lines)
        if status != 304 or not ended:
            return None
        self._lines.clear()
        return headers, curl.getinfo(pycurl.HEADER_SIZE)

    def end(self, here: WebAddress, reason: str) -> TransferReply:
        """What came back, ours to keep; the handle holds on to nothing."""
        curl, body, self.body = self.curl, self.body, IncomingBody(self._room)
        received = int(curl.getinfo(pycurl.SIZE_DOWNLOAD_T)) + int(curl.getinfo(pycurl.HEADER_SIZE))
        read, headers, ended = head_of(self._lines)
        status = int(curl.getinfo(pycurl.RESPONSE_CODE))
        cut = ""
        if not reason:
            # libcurl also understands http/1.1 and 2000, of which nobody knows what is meant.
            cut = NO_HEAD if not ended else NO_HTTP if read != status else self._cut(status, headers, body)
        found: bytes | LandedBody = b""
        try:
            # Of what was given up there is what there was room for.
            found = body.rest() if reason or cut else body.land(self._limit)
        except TooMuch as error:
            found, cut = error.found, self._too_much()
        except BrokenCoding:
            cut = NO_CODING
        except EOFError:
            cut = NO_END
        except OSError as error:
            cut = f"its body could not be kept on disk: {error.strerror}"
        large = found if isinstance(found, LandedBody) else None
        if large is None:
            body.drop()
        reason = f"{here.host}: {cut}" if cut else reason
        self._lines.clear()
        kept = b"" if isinstance(found, LandedBody) else found
        return TransferReply(status, headers, kept, here.text, received, reason, large=large)

    def _cut(self, status: int, headers: Mapping[str, str], body: IncomingBody) -> str:
        """Which end of a body was not seen, though libcurl found nothing wrong with it."""
        if status not in WHOLE or status == 204:
            return ""
        length = headers.get("content-length")
        if length is not None and "transfer-encoding" not in headers and stated(length) != body.size:
            return NO_BODY
        if not body.codings:
            # Not one byte of a body that would have to end by itself.
            if codings_of(headers.get("content-encoding", "")):
                return NO_END
            over_second = self.curl.getinfo(pycurl.INFO_HTTP_VERSION) == pycurl.CURL_HTTP_VERSION_2_0
            return NO_PROOF if length is None and over_second else ""
        return ""

    def _too_much(self) -> str:
        return f"{TOO_MUCH} {self._limit} bytes"

    def too_many_headers(self) -> bool:
        """Whether libcurl gave up because of the headers."""
        return sum(map(len, self._lines)) > MOST_HEADERS

    def _open(self, purpose: int, dialled: Any) -> Any:
        try:
            if self._gate is not None and not self._gate.permits(dialled.addr[0]):
                self.refused = dialled.addr[0]
                return pycurl.SOCKET_BAD
            if not self.dialled and self._late is not None and self._late():
                self.too_late = True
                return pycurl.SOCKET_BAD
            self.dialled = True
            return _Socket(dialled.family, dialled.socktype, dialled.protocol)
        except (OSError, ValueError):
            return pycurl.SOCKET_BAD

    def _sends(self, *ends: object) -> int:
        """Whether the request goes out; one whose connection had to be made first was looked at when it was dialled."""
        self.too_late = not self.dialled and self._late is not None and self._late()
        return int(pycurl.PREREQFUNC_ABORT if self.too_late else pycurl.PREREQFUNC_OK)

    def _write(self, chunk: bytes) -> int | None:
        body = self.body
        if not body.size and not self._begin_body():
            return -1
        if self.status not in WHOLE:
            body.size += len(chunk)
            return -1 if body.size > SPARE else None
        if not self._expected and body.size + len(chunk) > SMALL:
            length = stated(head_of(self._lines)[1].get("content-length", ""))
            self._expected = length if 0 < length <= self._limit else self._limit
        try:
            if body.size + len(chunk) > self._limit:
                body.write(chunk[: self._limit - body.size], self._expected, self._go_on)
                self.fault = self._too_much()
                return -1
            return None if body.write(chunk, self._expected, self._go_on) else int(pycurl.WRITEFUNC_PAUSE)
        except OSError as error:
            self.fault = f"its body could not be kept on disk: {error.strerror}"
            return -1

    def _go_on(self) -> None:
        """There is room for the rest of the body; an exchange that has ended meanwhile is heard of all the same."""
        with suppress(pycurl.error):
            self.curl.pause(pycurl.PAUSE_CONT)

    def _begin_body(self) -> bool:
        """The head has come: read what it says of the body; whether that can be undone."""
        self.status, headers, _ = head_of(self._lines)
        if self.status in WHOLE:
            try:
                if codings := codings_of(headers.get("content-encoding", "")):
                    Decoder(codings)
                    self.body.codings = codings
            except BrokenCoding:
                self.fault = NO_CODING
                return False
        return True


class _Socket(socket.socket):
    """libcurl duplicates the socket it is handed; ours is closed as soon as it has."""

    def __del__(self) -> None:
        self.close()


def stated(text: str) -> int:
    """A length as HTTP writes it, -1 if it is none, or more than anybody has."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
