"""One exchange with a web server through libcurl: what is dialled passes the gate, what comes back has bounds."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pycurl

from unstale.adapters.addresses import Gate
from unstale.adapters.retry_headers import HEADERS

#: statuses whose body is the source's
WHOLE = frozenset({200, 203, 204})
#: bytes of an unwanted body that are read and dropped to keep the connection
SPARE = 65_536
#: bytes of headers beyond which libcurl's giving up is put down to them; its own bound is 300 KiB
MOST_HEADERS = 262_144
_OURS = {"cache-status", "content-location", "expires", "replica-status"}
_KEPT = {name.encode(): name for name in HEADERS | _OURS | {"etag", "last-modified", "location", "content-type"}}


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from the last hop. `reason` says why it is not whole; `status` is 0 if there was no answer."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    address: str = ""
    received: int = 0
    reason: str = ""


class Transfer:
    """One libcurl handle, used again and again, and what it has received this time."""

    __slots__ = ("_gate", "_limit", "_lines", "_size", "body", "curl", "fault", "refused", "status")

    def __init__(self, gate: Gate | None) -> None:
        self._gate = gate
        self._lines: list[bytes] = []
        self.body = BytesIO()
        self.curl = curl = pycurl.Curl()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.ACCEPT_ENCODING, "")
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)
        # libcurl bounds the headers; reading them line by line in Python would be a tenth of a poll.
        curl.setopt(pycurl.HEADERFUNCTION, self._lines.append)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)

    def begin(self, address: str, lines: list[str], seconds: float, limit: int) -> pycurl.Curl:
        """Forget the last exchange and make ready for the next."""
        self._lines.clear()
        self.status, self._size, self._limit = 0, 0, limit
        self.refused = self.fault = ""
        curl = self.curl
        curl.setopt(pycurl.URL, address)
        # An empty list would leave the lines of the poll before, which were for somebody else.
        if lines:
            curl.setopt(pycurl.HTTPHEADER, lines)
        else:
            curl.unsetopt(pycurl.HTTPHEADER)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(seconds * 1000)))
        return curl

    def end(self, address: str, reason: str) -> Reply:
        """What came back, ours to keep; the handle holds on to nothing."""
        curl, body, self.body = self.curl, self.body.getvalue(), BytesIO()
        received = int(curl.getinfo(pycurl.SIZE_DOWNLOAD_T)) + int(curl.getinfo(pycurl.HEADER_SIZE))
        headers = _headers(self._lines)
        self._lines.clear()
        return Reply(int(curl.getinfo(pycurl.RESPONSE_CODE)), headers, body, address, received, reason)

    def too_many_headers(self) -> bool:
        """Whether libcurl gave up because of the headers."""
        return sum(map(len, self._lines)) > MOST_HEADERS

    def _open(self, purpose: int, dialled: Any) -> Any:
        try:
            if self._gate is not None and not self._gate.permits(dialled.addr[0]):
                self.refused = dialled.addr[0]
                return pycurl.SOCKET_BAD
            return _Socket(dialled.family, dialled.socktype, dialled.protocol)
        except (OSError, ValueError):
            return pycurl.SOCKET_BAD

    def _write(self, chunk: bytes) -> int | None:
        if not self._size:
            line = next(line for line in reversed(self._lines) if line.startswith(b"HTTP/"))
            self.status = int(line.split(None, 2)[1])
        self._size += len(chunk)
        if self.status not in WHOLE:
            return -1 if self._size > SPARE else None
        over = self._size - self._limit
        self.body.write(chunk[:-over] if over > 0 else chunk)
        if over > 0:
            self.fault = f"the body has more than {self._limit} bytes"
            return -1
        return None


class _Socket(socket.socket):
    """libcurl duplicates the socket it is handed; ours is closed as soon as it has."""

    def __del__(self) -> None:
        self.close()


def _headers(lines: list[bytes]) -> dict[str, str]:
    """The headers of the last answer that `_KEPT` names, the first of each; interim answers come before it."""
    found: dict[str, str] = {}
    over = False
    for line in lines:
        if line.startswith(b"HTTP/"):
            found, over = {}, False
            continue
        name, colon, value = line.partition(b":")
        # A blank line ends the headers; trailers are not to be trusted with validators.
        over = over or not colon
        if not over and (key := _KEPT.get(name.lower())):
            found.setdefault(key, value.strip().decode("utf-8", "replace"))
    return found
