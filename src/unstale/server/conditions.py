"""What the conditions and ranges of a request make of a representation: 200, 206, 304, 412 or 416 [RFC 9110 13.2.2]."""

from __future__ import annotations

from collections.abc import Mapping

from unstale.server import headers, ranges
from unstale.server.dates import read_date
from unstale.server.headers import Field
from unstale.server.problems import problem
from unstale.server.ranges import Stretch

Reply = tuple[int, list[Field], bytes | Stretch]

#: what a 304 leaves out: it describes a body that is not there
OF_THE_BODY = (b"content-type", b"content-disposition", b"content-encoding")


def reply(etag: str, body: bytes, fields: list[Field], method: str, asked: Mapping[bytes, str]) -> Reply:
    """The answer with these fields; `asked` are header fields of the request by name, in lower case."""
    modified = read_date(value(fields, b"last-modified"))
    wanted, unmodified = asked.get(b"if-match"), read_date(asked.get(b"if-unmodified-since"))
    if wanted is not None:
        if not headers.matches(wanted, etag, strongly=True):
            return problem(412, "the copy has another ETag than If-Match names: read it anew")
    elif unmodified is not None and modified is not None and modified > unmodified:
        return problem(412, "the copy was modified since the date of If-Unmodified-Since: read it anew")
    listed, since = asked.get(b"if-none-match"), read_date(asked.get(b"if-modified-since"))
    same = since is not None and modified is not None and modified <= since
    if same if listed is None else headers.matches(listed, etag):
        return 304, without(fields, *OF_THE_BODY), b""
    part_of = asked.get(b"range")
    if part_of is not None and method == "GET" and _in_time(asked.get(b"if-range"), etag, fields):
        media_type = value(fields, b"content-type").encode("latin-1")
        part = ranges.cut(body, part_of, media_type, etag)
        if part is not None and part.status == 416:
            return problem(
                416,
                f"the copy has {len(body)} bytes: ask for up to {ranges.MOST} separate ranges of them",
                *part.fields,
            )
        if part is not None:
            rest = without(fields, b"content-type")
            return 206, [*rest, *part.fields, (b"content-length", b"%d" % len(part.body))], part.body
    return 200, [*fields, (b"content-length", b"%d" % len(body))], Stretch(etag, body, 0, len(body))


def _in_time(condition: str | None, etag: str, fields: list[Field]) -> bool:
    """Whether If-Range holds: only the same bytes may be continued, so the comparison is strong."""
    return condition is None or condition.strip() in (etag, value(fields, b"last-modified") or None)


def value(fields: list[Field], wanted: bytes) -> str:
    """The value of the first field of this name, empty if there is none."""
    return next((text.decode("latin-1") for name, text in fields if name == wanted), "")


def without(fields: list[Field], *names: bytes) -> list[Field]:
    """The other fields."""
    return [(name, text) for name, text in fields if name not in names]
