"""Parts of a copy [RFC 9110 14]: one range, several as multipart/byteranges, and no more than is reasonable."""

from __future__ import annotations

import re

from unstale.frozen import dataclass

#: ranges of one request; who wants more wants to make us work
MOST = 16
#: bytes of a Range header that are read, and of several ranges together that are sent; for more the whole is
LONGEST, TOGETHER = 1000, 2**20

_ONE = re.compile(r"\s*(\d{0,18})-(\d{0,18})\s*")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some of a copy's bytes, which all together have an ETag that nothing else has."""

    etag: str
    whole: bytes
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin

    def __bytes__(self) -> bytes:
        return self.whole[self.begin : self.end]


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """A status, the fields that go with it, and the bytes."""

    status: int
    fields: list[tuple[bytes, bytes]]
    body: bytes | Stretch


def wanted(header: str, size: int) -> list[tuple[int, int]] | None:
    """Half-open ranges that a Range header asks of `size` bytes; empty if none can be had, None if it cannot be read.

    >>> wanted("bytes=0-3,-2", 10), wanted("bytes=10-", 10), wanted("lines=1-2", 10)
    ([(0, 4), (8, 10)], [], None)
    """
    unit, equals, rest = header.partition("=")
    if unit.strip().lower() != "bytes" or not equals:
        return None
    if len(header) > LONGEST:
        return []
    found = []
    for text in rest.split(","):
        match = _ONE.fullmatch(text)
        if match is None or match[1] == match[2] == "" or (match[1] and match[2] and int(match[1]) > int(match[2])):
            return None
        if not match[1]:
            begin, end = max(size - int(match[2]), 0), size
        else:
            begin, end = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
        if begin < end:
            found.append((begin, end))
    overlapping = sum(end - begin for begin, end in found) > size
    return [] if len(found) > MOST or overlapping else found


def cut(data: bytes, header: str, media_type: bytes, etag: str) -> RangeAnswer | None:
    """What answers a Range header, None if it asks for nothing special, or too much: then the whole is sent."""
    size = len(data)
    parts = wanted(header, size)
    if parts is None:
        return None
    if not parts:
        return RangeAnswer(416, [(b"content-range", b"bytes */%d" % size)], b"")
    if len(parts) == 1:
        ((begin, end),) = parts
        where = b"bytes %d-%d/%d" % (begin, end - 1, size)
        return RangeAnswer(
            206, [(b"content-range", where), (b"content-type", media_type)], Stretch(etag, data, begin, end)
        )
    if sum(end - begin for begin, end in parts) > TOGETHER:
        return None
    boundary = etag.strip('"').encode()
    pieces = [
        b"--%s\r\ncontent-type: %s\r\ncontent-range: bytes %d-%d/%d\r\n\r\n%s\r\n"
        % (boundary, media_type, begin, end - 1, size, data[begin:end])
        for begin, end in parts
    ]
    kind = b"multipart/byteranges; boundary=" + boundary
    return RangeAnswer(206, [(b"content-type", kind)], b"".join(pieces) + b"--%s--\r\n" % boundary)
