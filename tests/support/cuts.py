"""Ways to cut an answer: none of them is whole, though many look it. Sent as they are, then the connection is closed.

The body that all of them are cut from is in `NEWS`; `WHOLE` are the same answers uncut.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import brotli
import zstandard

#: compresses to a few hundred bytes, so that every tenth of them is a cut of its own
NEWS = b"".join(b"%d %d news\n" % (i, i * i * 7919 % 10_007) for i in range(120))
PACKED = {
    "gzip": gzip.compress(NEWS, mtime=0),
    "deflate": zlib.compress(NEWS),
    "br": brotli.compress(NEWS),
    "zstd": zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(NEWS),
}
HEAD = b'Content-Type: text/plain\r\nETag: "7"\r\nCache-Control: max-age=60\r\n'


def chunked(body: bytes, size: int = 400, trailer: bytes = b"") -> bytes:
    """A body in chunks, with its end."""
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n" + trailer + b"\r\n"


def sized(body: bytes, more: bytes = b"", length: bytes | None = None, version: bytes = b"1.1") -> bytes:
    """An answer with a stated length, true unless given."""
    said = b"%d" % len(body) if length is None else length
    return b"HTTP/%b 200 OK\r\n%b%bContent-Length: %b\r\n\r\n%b" % (version, HEAD, more, said, body)


def in_chunks(body: bytes, more: bytes = b"", trailer: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n%b%bTransfer-Encoding: chunked\r\n\r\n%b" % (HEAD, more, chunked(body, 400, trailer))


def closed(body: bytes, more: bytes = b"", version: bytes = b"1.1") -> bytes:
    """An answer that ends where its connection does."""
    return b"HTTP/%b 200 OK\r\n%b%b\r\n%b" % (version, HEAD, more, body)


def _coding(name: str) -> bytes:
    return b"Content-Encoding: %b\r\n" % name.encode()


def whole() -> dict[str, bytes]:
    """What is cut below, uncut."""
    found = {
        "sized": sized(NEWS),
        "sized by HTTP/1.0": sized(NEWS, version=b"1.0"),
        "in chunks": in_chunks(NEWS),
        "in chunks with a trailer": in_chunks(NEWS, trailer=b"X-Sum: 7\r\n"),
        "closed": closed(NEWS),
        "closed by HTTP/1.0": closed(NEWS, version=b"1.0"),
        "two members of gzip": sized(gzip.compress(NEWS[:500]) + gzip.compress(NEWS[500:]), _coding("gzip")),
        "two frames of zstd": sized(
            b"".join(zstandard.compress(part) for part in (NEWS[:500], NEWS[500:])), _coding("zstd")
        ),
        "gzip in brotli": sized(brotli.compress(PACKED["gzip"]), _coding("gzip, br")),
        "deflate without its wrapping": sized(zlib.compress(NEWS, wbits=-15), _coding("deflate")),
    }
    for name, packed in PACKED.items():
        found[f"{name}, sized"] = sized(packed, _coding(name))
        found[f"{name}, in chunks"] = in_chunks(packed, _coding(name))
        found[f"{name}, closed"] = closed(packed, _coding(name))
        found[f"{name}, closed by HTTP/1.0"] = closed(packed, _coding(name), b"1.0")
    return found


def _head_cuts(said: bytes) -> Iterator[int]:
    """Before and after every line of a head, within its names and values, and within its line ends."""
    end = said.index(b"\r\n\r\n") + 4
    at = 0
    while at < end:
        stop = said.index(b"\r\n", at) + 2
        colon = said.find(b":", at, stop)
        within = {at, at + 2, stop - 1, *((colon, colon + 1, (colon + stop) // 2) if colon > 0 else ())}
        yield from (cut for cut in within if cut < end)
        at = stop


def cuts() -> dict[str, bytes]:
    """All of them, by what was done."""
    found: dict[str, bytes] = {}
    for name, said in (("sized", sized(NEWS)), ("chunks", in_chunks(NEWS)), ("HTTP/1.0", sized(NEWS, version=b"1.0"))):
        for at in _head_cuts(said):
            found[f"{name}: head cut at {at}"] = said[:at]
    # A head that is cut where a body without a length would begin.
    for at in _head_cuts(closed(NEWS)):
        found[f"closed: head cut at {at}"] = closed(NEWS)[:at]
    for version in (b"1.1", b"1.0"):
        said = sized(NEWS, version=version)
        start = said.index(b"\r\n\r\n") + 4
        for at in range(start, len(said), 97):
            found[f"HTTP/{version.decode()}: sized body cut at {at - start}"] = said[:at]
    body = chunked(NEWS, 400, b"X-Sum: 7\r\n")
    head = in_chunks(b"")[: -len(chunked(b""))]
    boundaries = {0, len(body) - 1, len(body) - 2, len(body) - 3, len(body) - 5, len(body) - 12, len(body) - 13}
    at = 0
    while (line := body.index(b"\r\n", at) + 2) and (size := int(body[at : line - 2], 16)):
        boundaries |= {at, at + 1, line - 1, line, line + size // 2, line + size, line + size + 1}
        at = line + size + 2
    boundaries |= {at, at + 1, at + 2, at + 3}
    for at in sorted(boundaries):
        found[f"chunks cut at {at}"] = head + body[:at]
    for name, packed in PACKED.items():
        for at in range(0, len(packed), 10):
            part = packed[:at]
            found[f"{name} cut at {at}, its length right"] = sized(part, _coding(name))
            found[f"{name} cut at {at}, closed"] = closed(part, _coding(name))
            if at % 50 == 0:
                found[f"{name} cut at {at}, in whole chunks"] = in_chunks(part, _coding(name))
                found[f"{name} cut at {at}, closed by HTTP/1.0"] = closed(part, _coding(name), b"1.0")
        found[f"{name} without its last byte"] = sized(packed[:-1], _coding(name))
        found[f"{name} with more behind it"] = sized(packed + b"more", _coding(name))
        found[f"{name} in a gzip that is cut"] = sized(gzip.compress(packed)[:-9], _coding(f"{name}, gzip"))
    double = gzip.compress(NEWS) * 2
    found["the second member of gzip cut"] = sized(double[:-20], _coding("gzip"))
    found["the second frame of zstd cut"] = sized((PACKED["zstd"] * 2)[:-20], _coding("zstd"))
    lengths = (
        b"99999",
        b"9" * 23,
        b"1" + b"0" * 30,
        b"18446744073709551619",
        b"-5",
        b"1e3",
        b"0x10",
        b"+5",
        b"5 5",
        b"abc",
    )
    for length in lengths:
        found[f"a length of {length.decode()}"] = sized(b"abc", length=length)
    found["two lengths"] = sized(b"abc", more=b"Content-Length: 9\r\n")
    return found


CUTS = cuts()
WHOLE = whole()
