"""Ways to answer wrongly, as bytes, each by itself: `/hostile/<kind>` says them and closes the connection.

Rules of this file:
1. A row is what is said and whether it may count as an answer: what is odd but whole may, what was cut or could be read
   in two ways never.
2. Names tell what is odd: the status line, the head, how the body ends, how it is coded, where it leads.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import brotli
import zstandard

from unstale.frozen import dataclass

_BODY = b"<p>a body of some length, that is always the same</p>"
_TYPE = b"Content-Type: text/html\r\n"
_LENGTH = b"Content-Length: %d\r\n" % len(_BODY)
#: statuses that say that there is nothing to be had now
REFUSALS = (
    400,
    401,
    403,
    404,
    405,
    406,
    407,
    408,
    409,
    410,
    411,
    418,
    421,
    423,
    425,
    426,
    451,
    500,
    501,
    502,
    504,
    505,
)
ODD_STATUSES = (205, 206, 207, 226, 300, 305, 306, 511, 520, 530, 599, 600, 999)


#: where redirects lead that lead to no answer
PLACES = {
    "nowhere": b"",
    "to-a-file": b"file:///etc/passwd",
    "to-ftp": b"ftp://127.0.0.1/",
    "to-gopher": b"gopher://127.0.0.1:70/_x",
    "to-data": b"data:text/plain,hello",
    "to-javascript": b"javascript:alert(1)",
    "to-odd-port": b"http://127.0.0.1:99999999/",
    "to-no-host": b"http:///x",
    "to-bad-host": b"http://exa mple..org/",
    "to-user": b"http://user:secret@127.0.0.1:1/",
    "to-metadata": b"http://169.254.169.254/latest/meta-data/",
    "to-private": b"http://10.0.0.1/",
    "to-mapped": b"http://[::ffff:10.0.0.1]/",
    "to-number": b"http://167772161/",
    "to-a-very-long-place": b"/" + b"a" * 100_000,
    "to-control-characters": b"/a\x01b",
}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What is said, and whether that is an answer."""

    speech: bytes
    answers: bool = False


def _said(line: bytes = b"HTTP/1.1 200 OK\r\n", head: bytes = _TYPE + _LENGTH, body: bytes = _BODY) -> bytes:
    return line + head + b"\r\n" + body


def _lines() -> Iterator[tuple[str, Behaviour]]:
    """Status lines."""
    yield "line-without-reason", Behaviour(_said(b"HTTP/1.1 200\r\n"), True)
    yield "line-of-1.0", Behaviour(_said(b"HTTP/1.0 200 OK\r\n"), True)
    yield "line-feeds-only", Behaviour(_said(b"HTTP/1.1 200 OK\n").replace(b"\r\n", b"\n"), True)
    yield "line-long-reason", Behaviour(_said(b"HTTP/1.1 200 " + b"fine " * 200 + b"\r\n"), True)
    yield "line-of-9.9", Behaviour(_said(b"HTTP/9.9 200 OK\r\n"))
    yield "line-of-0.9", Behaviour(_BODY)
    yield "line-lower-case", Behaviour(_said(b"http/1.1 200 OK\r\n"))
    yield "line-of-radio", Behaviour(_said(b"ICY 200 OK\r\n"))
    yield "line-letters", Behaviour(_said(b"HTTP/1.1 2OO OK\r\n"))
    yield "line-negative", Behaviour(_said(b"HTTP/1.1 -200 OK\r\n"))
    yield "line-two-digits", Behaviour(_said(b"HTTP/1.1 20 OK\r\n"))
    yield "line-four-digits", Behaviour(_said(b"HTTP/1.1 2000 OK\r\n"))
    yield "line-zeros", Behaviour(_said(b"HTTP/1.1 000 OK\r\n"))
    yield "line-endless", Behaviour(b"HTTP/1.1 200 " + b"a" * 2**19)
    yield "line-nothing", Behaviour(b"")
    yield "line-blank", Behaviour(b"\r\n\r\n\r\n\r\n")
    yield "line-ssh", Behaviour(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    yield "line-mail", Behaviour(b"220 mail.example.org ESMTP\r\n")
    yield "line-tls-alert", Behaviour(b"\x15\x03\x01\x00\x02\x02\x28")
    yield "line-second-protocol", Behaviour(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18))
    yield "interim-only", Behaviour(b"HTTP/1.1 100 Continue\r\n\r\n")
    yield "interim-hints-only", Behaviour(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    yield "interim-thousand", Behaviour(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + _said(), True)
    yield "interim-then-answer", Behaviour(b"HTTP/1.1 103 Early Hints\r\n\r\n" + _said(), True)
    yield "switching", Behaviour(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + _BODY)
    for status in (*REFUSALS, *ODD_STATUSES):
        yield f"status-{status}", Behaviour(_said(b"HTTP/1.1 %d Odd\r\n" % status))


def _heads() -> Iterator[tuple[str, Behaviour]]:
    """Header sections."""
    yield "head-cut-in-name", Behaviour(b"HTTP/1.1 200 OK\r\nContent-Ty")
    yield "head-cut-in-value", Behaviour(b"HTTP/1.1 200 OK\r\nContent-Type: text/h")
    yield "head-without-end", Behaviour(b"HTTP/1.1 200 OK\r\n" + _TYPE + _LENGTH)
    yield "head-of-status-only", Behaviour(b"HTTP/1.1 200 OK\r\n")
    yield "head-no-colon", Behaviour(_said(head=_TYPE + _LENGTH + b"no colon here\r\n"))
    yield "head-folded", Behaviour(_said(head=b"X-Long: a\r\n b\r\n" + _LENGTH), True)
    yield "head-zero-byte", Behaviour(_said(head=b"X-Odd: a\x00b\r\n" + _LENGTH))
    yield "head-not-ascii", Behaviour(_said(head=b"X-Odd: \xff\xfe\xe4\r\n" + _LENGTH), True)
    yield "head-odd-name", Behaviour(_said(head=b"X Odd: a\r\n" + _LENGTH), True)
    yield "head-hundred-thousand", Behaviour(_said(head=b"a: b\r\n" * 100_000 + _LENGTH))
    yield "head-one-huge", Behaviour(_said(head=b"X-Odd: " + b"a" * 2**20 + b"\r\n" + _LENGTH))
    yield (
        "head-odd-dates",
        Behaviour(_said(head=b"Date: yesterday\r\nLast-Modified: 0\r\nExpires: -1\r\n" + _LENGTH), True),
    )
    yield "head-far-dates", Behaviour(_said(head=b"Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT\r\n" + _LENGTH), True)
    yield "head-negative-age", Behaviour(_said(head=b"Age: -5\r\n" + _LENGTH), True)
    yield "head-huge-age", Behaviour(_said(head=b"Age: 99999999999999999999\r\n" + _LENGTH), True)
    yield "head-huge-tag", Behaviour(_said(head=b'ETag: "' + b"a" * 60_000 + b'"\r\n' + _LENGTH), True)
    yield "head-odd-tag", Behaviour(_said(head=b"ETag: \x01\x02 unquoted\r\n" + _LENGTH), True)
    yield "head-thousand-cookies", Behaviour(_said(head=b"Set-Cookie: a=b\r\n" * 1000 + _LENGTH), True)
    yield "head-odd-type", Behaviour(_said(head=b"Content-Type: ;;;///\r\n" + _LENGTH), True)
    yield "head-two-types", Behaviour(_said(head=_TYPE + b"Content-Type: image/png\r\n" + _LENGTH), True)


def _frames() -> Iterator[tuple[str, Behaviour]]:
    """How the body ends."""
    chunked = _TYPE + b"Transfer-Encoding: chunked\r\n"
    chunk = b"%x\r\n%s\r\n" % (len(_BODY), _BODY)
    yield "length-too-long", Behaviour(_said(head=_TYPE + b"Content-Length: 1000\r\n"))
    yield "length-of-23-digits", Behaviour(_said(head=_TYPE + b"Content-Length: 12345678901234567890123\r\n"))
    yield "length-negative", Behaviour(_said(head=_TYPE + b"Content-Length: -1\r\n"))
    yield "length-in-words", Behaviour(_said(head=_TYPE + b"Content-Length: many\r\n"))
    yield "length-hexadecimal", Behaviour(_said(head=_TYPE + b"Content-Length: 0x35\r\n"))
    yield "length-empty", Behaviour(_said(head=_TYPE + b"Content-Length:\r\n"))
    yield "length-twice-different", Behaviour(_said(head=_TYPE + _LENGTH + b"Content-Length: 999\r\n"))
    yield "length-and-more", Behaviour(_said(head=_TYPE + b"Content-Length: 20\r\n"), True)
    yield "length-none", Behaviour(_said(head=_TYPE), True)
    yield "chunks-whole", Behaviour(_said(head=chunked, body=chunk + b"0\r\n\r\n"), True)
    yield "chunks-with-trailers", Behaviour(_said(head=chunked, body=chunk + b"0\r\nX-Odd: a\r\n\r\n"), True)
    yield (
        "chunks-with-extensions",
        Behaviour(_said(head=chunked, body=chunk.replace(b"\r\n", b";a=b\r\n", 1) + b"0\r\n\r\n"), True),
    )
    yield "chunks-without-last", Behaviour(_said(head=chunked, body=chunk))
    yield "chunks-without-blank-line", Behaviour(_said(head=chunked, body=chunk + b"0\r\n"))
    yield "chunks-cut", Behaviour(_said(head=chunked, body=chunk[:20]))
    yield "chunks-cut-in-size", Behaviour(_said(head=chunked, body=chunk + b"3"))
    yield "chunks-huge-size", Behaviour(_said(head=chunked, body=b"fffffffffffffffff\r\n" + _BODY))
    yield "chunks-negative-size", Behaviour(_said(head=chunked, body=b"-5\r\n" + _BODY))
    yield "chunks-no-size", Behaviour(_said(head=chunked, body=b"\r\n" + _BODY))
    yield "chunks-in-words", Behaviour(_said(head=chunked, body=b"five\r\n" + _BODY))
    yield "chunks-too-short", Behaviour(_said(head=chunked, body=b"5\r\n" + _BODY + b"\r\n0\r\n\r\n"))
    yield "chunks-endless-extension", Behaviour(_said(head=chunked, body=b"5;" + b"a" * 200_000))
    yield "chunks-of-one-byte", Behaviour(_said(head=chunked, body=b"1\r\na\r\n" * 5000 + b"0\r\n\r\n"), True)
    yield (
        "transfer-gzip",
        Behaviour(_said(head=_TYPE + b"Transfer-Encoding: gzip, chunked\r\n", body=chunk + b"0\r\n\r\n")),
    )
    yield "empty-200", Behaviour(_said(head=_TYPE + b"Content-Length: 0\r\n", body=b""), True)


def _codings() -> Iterator[tuple[str, Behaviour]]:
    """How the body is coded."""
    coded = {"gzip": gzip.compress(_BODY), "br": brotli.compress(_BODY), "zstd": zstandard.compress(_BODY)}
    for name, body in coded.items():
        yield f"coding-{name}", Behaviour(_coded(name, body), True)
        yield f"coding-{name}-cut", Behaviour(_coded(name, body[:-9]))
        yield f"coding-{name}-of-nothing", Behaviour(_coded(name, b""))
        yield f"coding-{name}-not-coded", Behaviour(_coded(name, _BODY))
        yield f"coding-{name}-and-more", Behaviour(_coded(name, body + b"more behind it"))
    flipped = bytearray(coded["gzip"])
    flipped[-6] ^= 1
    yield "coding-gzip-wrong-sum", Behaviour(_coded("gzip", bytes(flipped)))
    yield "coding-gzip-two-members", Behaviour(_coded("gzip", coded["gzip"] * 2), True)
    yield "coding-deflate", Behaviour(_coded("deflate", zlib.compress(_BODY)), True)
    yield "coding-unknown", Behaviour(_coded("pack200", _BODY))
    yield "coding-nested", Behaviour(_coded("gzip, gzip", gzip.compress(coded["gzip"])), True)
    yield "coding-nested-deep", Behaviour(_coded(", ".join(["gzip"] * 40), coded["gzip"]))


def _coded(name: str, body: bytes) -> bytes:
    head = _TYPE + b"Content-Encoding: %s\r\nContent-Length: %d\r\n" % (name.encode(), len(body))
    return _said(head=head, body=body)


def redirect(status: int, place: bytes) -> bytes:
    """An answer that leads elsewhere."""
    return _said(b"HTTP/1.1 %d Found\r\nLocation: %s\r\n" % (status, place), b"Content-Length: 0\r\n", b"")


def _redirects() -> Iterator[tuple[str, Behaviour]]:
    """Where it leads; none of these leads to an answer."""
    for name, place in PLACES.items():
        yield f"redirect-{name}", Behaviour(redirect(302, place))
    yield "redirect-without-place", Behaviour(_said(b"HTTP/1.1 301 Moved\r\n", b"Content-Length: 0\r\n", b""))


#: every behaviour by name
TABLE: dict[str, Behaviour] = {
    name: one for group in (_lines, _heads, _frames, _codings, _redirects) for name, one in group()
}
