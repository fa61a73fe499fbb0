"""HTTP/1.1 by hand, as much of it as the origin speaks: the benches want it faster than what they measure."""

from __future__ import annotations

import asyncio
import re
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING, cast

from unstale.origin.hostile import ACTS, ALWAYS, BROKEN, KINDS, SAID
from unstale.replica_list import ASKING, RECENT

if TYPE_CHECKING:
    from unstale.origin.server import Origin
    from unstale.origin.site import Document

#: longest head of a request in bytes
LONGEST = 65_536
_ASKING = b"\r\n%b:" % ASKING.lower().encode()
_HOST = re.compile(rb"[A-Za-z0-9.:\[\]-]{1,255}")


class OriginConnection(asyncio.Protocol):
    """One client: requests in, answers out, in order."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._held = b""
        self._taken: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._origin.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._origin.connections.discard(self)
        if self._taken is not None:
            self._taken.cancel()

    def pause_writing(self) -> None:
        # Who does not read answers asks no more questions.
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        if self._held:
            data = self._held + data
        at = 0
        while self._taken is None and not self.transport.is_closing() and (end := data.find(b"\r\n\r\n", at)) >= 0:
            self._hear(data[at:end])
            at = end + 4
        self._held = data[at:]
        if len(self._held) > LONGEST:
            self._refuse(b"", b"", 431, b"Request Header Fields Too Large")

    def _hear(self, head: bytes) -> None:
        line, _, rest = head.partition(b"\r\n")
        words = line.split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return self._refuse(b"", line[:100], 400, b"Bad Request")
        method, target, spoken = words
        fields = b"\r\n" + rest
        small = fields.lower()
        if method not in (b"GET", b"HEAD") or b"\r\ncontent-length:" in small or b"\r\ntransfer-encoding:" in small:
            # What follows may be a body, which nobody here reads.
            return self._refuse(method, target, 405, b"Method Not Allowed")
        path = target.partition(b"?")[0]
        if path.startswith(b"/hostile/"):
            self._misbehave(method, path)
        else:
            self._answer(method, path, fields, small)
        if b"\r\nconnection: close" in small or (spoken == b"HTTP/1.0" and b"keep-alive" not in small):
            self.transport.close()
        return None

    def _answer(self, method: bytes, path: bytes, fields: bytes, small: bytes) -> None:
        origin = self._origin
        t = origin.now()
        base = "" if path.startswith(b"/s/") else self._base(fields, small)
        document = origin.site.find(path, t, base)
        if document is None:
            return self._say(method, path, t, -1, 404, b"Not Found", b"", b"not here\n")
        lines = b""
        if document.etag:
            lines = b"ETag: %b\r\n" % document.etag
            if who := _field(fields, small, _ASKING):
                lines += b"%b: %b\r\n" % (
                    RECENT.encode(),
                    origin.replicas.answer(path, who.decode("latin-1"), t).encode(),
                )
            if origin.last_modified:
                lines += b"Last-Modified: %b\r\n" % formatdate(document.since, usegmt=True).encode()
            if self._holds(document, fields, small):
                return self._say(method, path, t, document.version, 304, b"Not Modified", lines, b"")
        lines += b"Content-Type: %b\r\n" % document.media_type
        return self._say(method, path, t, document.version, 200, b"OK", lines, document.body())

    def _say(
        self, method: bytes, path: bytes, t: float, version: int, status: int, reason: bytes, lines: bytes, body: bytes
    ) -> None:
        origin = self._origin
        number = origin.log.note(t, method, path, version, status)
        if status != 304:
            lines = b"%bContent-Length: %d\r\n" % (lines, len(body))
        self.transport.write(
            b"HTTP/1.1 %d %b\r\n%b%bX-Origin-Request: %d\r\n\r\n%b"
            % (status, reason, origin.date(t), lines, number, b"" if method == b"HEAD" else body)
        )

    def _refuse(self, method: bytes, path: bytes, status: int, reason: bytes) -> None:
        lines = b"Allow: GET, HEAD\r\nConnection: close\r\n"
        self._say(method, path, self._origin.now(), -1, status, reason, lines, b"")
        self.transport.close()

    def _misbehave(self, method: bytes, path: bytes) -> None:
        kind = path.removeprefix(b"/hostile/").decode("latin-1")
        t = self._origin.now()
        kind = kind.partition("?")[0]
        if kind not in KINDS:
            known = ", ".join(KINDS).encode()
            return self._say(method, path, t, -1, 404, b"Not Found", b"", b"one of " + known + b"\n")
        self._origin.log.note(t, method, path, -1, 0)
        if kind in ACTS:
            self._taken = asyncio.ensure_future(ACTS[kind](self.transport))
            self._origin.tasks.add(self._taken)
            self._taken.add_done_callback(self._origin.tasks.discard)
            return None
        self.transport.write(ALWAYS[kind].speech if kind in ALWAYS else SAID[kind]())
        if kind in ALWAYS or kind in BROKEN:
            self.transport.close()
        return None

    def _holds(self, document: Document, fields: bytes, small: bytes) -> bool:
        """Whether the client has this version already; if it names ETags, they alone count (RFC 9110, 13.2.2)."""
        named = _field(fields, small, b"\r\nif-none-match:")
        if named is not None:
            tags = [tag.strip().removeprefix(b"W/") for tag in named.split(b",")]
            return document.etag in tags or tags == [b"*"]
        since = _field(fields, small, b"\r\nif-modified-since:") if self._origin.last_modified else None
        try:
            return since is not None and int(document.since) <= parsedate_to_datetime(since.decode()).timestamp()
        except ValueError:
            return False

    def _base(self, fields: bytes, small: bytes) -> str:
        """How the client calls us, which is how it should find us again."""
        host = _field(fields, small, b"\r\nhost:") or b""
        return f"http://{host.decode()}" if _HOST.fullmatch(host) else self._origin.address


def _field(fields: bytes, small: bytes, name: bytes) -> bytes | None:
    """The value of a header, its name in lower case between the line break before it and its colon."""
    at = small.find(name)
    if at < 0:
        return None
    end = fields.find(b"\r\n", at + len(name))
    return fields[at + len(name) : end if end >= 0 else None].strip()
