"""What a stored response says to one request: whole, not modified, a range of it, or that there is no such range."""

from __future__ import annotations

from unstale.frozen import dataclass
from unstale.server.dates import read_date
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.rules import matches
from unstale.server.proxy.stored import Stored
from unstale.server.ranges import wanted

#: what a 304 leaves out: it describes a body that is not there [RFC 9110 section 15.4.5]
_OF_THE_BODY = frozenset({"content-length", "content-range", "content-type", "content-encoding"})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer ready to be sent."""

    status: int
    fields: Fields
    body: bytes = b""


def reply(stored: Stored, method: str, request: Fields, now: float) -> Reply | None:
    """The answer to this request, its Age included; None if a partial response does not hold what is asked for."""
    fields = stored.fields.having(("age", str(int(stored.http_age(now)))))
    if stored.status in (200, 206) and not_modified(stored, request):
        return Reply(304, fields.without(_OF_THE_BODY))
    ranges = _ranges(stored, request) if method == "GET" else None
    part = stored.part
    if ranges is None or len(ranges) > 1:
        # Several ranges at once are answered with the whole, as HTTP allows.
        return None if part else Reply(stored.status, fields, b"" if method == "HEAD" else stored.body)
    total = part.total if part else len(stored.body)
    if not ranges:
        return Reply(416, Fields((("content-range", f"bytes */{total}"), ("content-length", "0"))))
    ((begin, end),) = ranges
    offset = part.first if part else 0
    body = stored.body[begin - offset : end - offset] if begin >= offset else b""
    if len(body) != end - begin:
        return None
    said = ("content-range", f"bytes {begin}-{end - 1}/{total}"), ("content-length", str(len(body)))
    return Reply(206, fields.having(*said), body)


def not_modified(stored: Stored, request: Fields) -> bool:
    """Whether the client holds this response already; If-None-Match counts before If-Modified-Since [RFC 9110 13.2].

    A response without Last-Modified counts as modified when it was made.
    """
    if "if-none-match" in request:
        return matches(request.joined("if-none-match"), stored.fields.first("etag"))
    since = read_date(request.first("if-modified-since"))
    if since is None:
        return False
    modified = read_date(stored.fields.first("last-modified"))
    made = read_date(stored.fields.first("date"))
    newest = modified if modified is not None else made if made is not None else stored.taken_at
    return newest <= since


def _ranges(stored: Stored, request: Fields) -> list[tuple[int, int]] | None:
    """The half-open ranges that are asked for and there; None if the whole is, or nobody can tell."""
    total = stored.part.total if stored.part else len(stored.body)
    asked, condition = request.joined("range"), request.first("if-range")
    if asked is None or total is None or stored.status not in (200, 206):
        return None
    if condition is not None:
        # If-Range holds for the same strong entity tag or the very same date.
        name = "etag" if condition.endswith('"') else "last-modified"
        if condition.startswith("W/") or condition != stored.fields.first(name):
            return None
    return wanted(asked, total)
