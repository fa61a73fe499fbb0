"""Ways to answer wrongly, crossed: status × how the body ends, coding × damage × how it ends, redirects, odd words.

Rules of this file:
1. Each row differs from every other in what a reader has to make of it, not in its bytes alone.
2. Whether a row may count as an answer follows from its parts: the status must say so, the body must end as it said it
   would, its coding must be whole. A list of lengths may be refused, and is.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator

import brotli
import zstandard

from unstale.origin.hostile_table import PLACES, Behaviour, redirect

_BODY = b"<p>another body of some length, that is always the same</p>" * 3
_TYPE = b"Content-Type: text/html\r\n"
#: statuses, and whether a whole body with one is an answer
_STATUSES = {200: True, 203: True, 202: False, 404: False, 410: False, 429: False, 500: False, 503: False}
#: how a body may end, and whether all of it came then
_ENDS = {
    "length": True,
    "length-cut": False,
    "length-zeros": True,
    "length-twice": True,
    "length-list": False,
    "chunks": True,
    "chunks-cut": False,
    "chunks-unended": False,
    "chunks-upper-case": True,
    "close": True,
}
_PACKED = {
    "gzip": gzip.compress(_BODY, mtime=0),
    "br": brotli.compress(_BODY),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress(_BODY),
    "deflate": zlib.compress(_BODY),
}
#: what is said in a header that wants a number, a date, a tag or a type
_WAITS = {
    "negative": "-5",
    "fraction": "1.5",
    "huge": "9" * 40,
    "words": "soon",
    "empty": "",
    "past": "Mon, 01 Jan 1990 00:00:00 GMT",
    "far": "Fri, 31 Dec 9999 23:59:59 GMT",
    "no-such-day": "Mon, 31 Feb 2026 00:00:00 GMT",
    "infinite": "inf",
    "list": "5, 10",
}
_TAGS = {
    "weak": 'W/"a"',
    "weak-lower": 'w/"a"',
    "unquoted": "abc",
    "half-quoted": '"abc',
    "empty": "",
    "empty-quoted": '""',
    "list": '"a", "b"',
    "star": "*",
    "latin": '"\xe4\xf6"',
    "quotes-within": '"a"b"',
}
_DATES = {
    "rfc850": "Sunday, 06-Nov-94 08:49:37 GMT",
    "asctime": "Sun Nov  6 08:49:37 1994",
    "iso": "2026-01-01T00:00:00Z",
    "number": "1700000000",
    "no-zone": "Sun, 06 Nov 1994 08:49:37",
    "wrong-day": "Tue, 06 Nov 1994 08:49:37 GMT",
    "leap-second": "Sun, 31 Dec 2016 23:59:60 GMT",
    "year-zero": "Sat, 01 Jan 0000 00:00:00 GMT",
    "year-of-six": "Sat, 01 Jan 123456 00:00:00 GMT",
    "ahead": "Fri, 01 Jan 2100 00:00:00 GMT",
    "empty": "",
}
_TYPES = {
    "none-such": "text/nonsense",
    "no-slash": "html",
    "empty": "",
    "long": "text/" + "x" * 5000,
    "unknown-charset": "text/html; charset=klingon",
    "utf-7": "text/html; charset=utf-7",
    "utf-16": "text/html; charset=utf-16",
    "utf-32": "text/html; charset=utf-32",
    "codec": "text/html; charset=rot13",
    "binary-codec": "text/html; charset=zlib_codec",
    "escape-codec": "text/html; charset=unicode_escape",
    "idna": "text/html; charset=idna",
    "two-charsets": "text/html; charset=utf-8; charset=latin-1",
    "thousand-parameters": "text/html" + "; a=b" * 1000,
    "half-quoted": 'text/html; charset="utf-8',
    "latin": "text/h\xe4ml",
}
_CONTROL = {
    "negative": "max-age=-1",
    "huge": "max-age=" + "9" * 40,
    "fraction": "max-age=1.5",
    "words": "max-age=long",
    "twice": "max-age=1, max-age=9999999",
    "both": "no-store, max-age=99999999, immutable",
    "unfinished": 'private="a, max-age=',
    "thousand": ", ".join(["no-cache"] * 1000),
    "ever": "max-age=31536000, immutable, stale-while-revalidate=99999999",
}
#: bodies that a parser may not get done with, or reads as another would not
_BODIES = {
    "nothing-but-nul": bytes(5000),
    "both-marks": b"\xff\xfe\xfe\xff<p>a</p>",
    "not-utf-8": b"<p>\xc3\x28 \xe2\x82 \xf0\x9f</p>",
    "overlong": b"<p>\xc0\xaf\xc0\xae</p>",
    "surrogates": b"<p>\xed\xa0\x80</p>",
    "deep": b"<div>" * 20_000,
    "attributes": b"<div " + b" ".join(b"a%d" % n for n in range(20_000)) + b">",
    "entities": b"&amp;" * 50_000,
    "comment-unended": b"<!--" + b"-" * 100_000,
    "script-unended": b"<script>" + b"<!--<script>" * 5_000,
    "laughs": b'<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>',
    "outer-entity": b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    "deep-json": b"[" * 50_000,
    "huge-number": b'{"a": ' + b"9" * 5000 + b"}",
    "keys-twice": b'{"a": 1, "a": 2}' * 1000,
    "turned-text": "\u202e<p>\u2066gnp.exe</p>".encode(),
    "zip": b"PK\x03\x04" + bytes(200),
    "pdf": b"%PDF-1.7\n" + b"1 0 obj\n" * 1000,
}


def framed(end: str, body: bytes) -> tuple[bytes, bytes]:
    """The head's word on how a body ends, and the body as it is sent."""
    size, chunk = b"Content-Length: %d\r\n" % len(body), b"%x\r\n%s\r\n" % (len(body), body)
    return {
        "length": (size, body),
        "length-cut": (b"Content-Length: %d\r\n" % (len(body) + 7), body),
        "length-zeros": (b"Content-Length: 000%d\r\n" % len(body), body),
        "length-twice": (size * 2, body),
        "length-list": (b"Content-Length: %d, %d\r\n" % (len(body), len(body)), body),
        "chunks": (b"Transfer-Encoding: chunked\r\n", chunk + b"0\r\n\r\n"),
        "chunks-cut": (b"Transfer-Encoding: chunked\r\n", chunk[:-9]),
        "chunks-unended": (b"Transfer-Encoding: chunked\r\n", chunk),
        "chunks-upper-case": (b"TRANSFER-ENCODING: CHUNKED\r\n", chunk + b"0\r\n\r\n"),
        "close": (b"", body),
    }[end]


def _answer(status: int, head: bytes, body: bytes, end: str = "length") -> bytes:
    said, sent = framed(end, body)
    return b"HTTP/1.1 %d Odd\r\n%s%s\r\n%s" % (status, head, said, sent)


def _ends() -> Iterator[tuple[str, Behaviour]]:
    for status, fine in _STATUSES.items():
        for end, whole in _ENDS.items():
            yield f"status-{status}-{end}", Behaviour(_answer(status, _TYPE, _BODY, end), fine and whole)


def _damaged() -> Iterator[tuple[str, Behaviour]]:
    for name, packed in _PACKED.items():
        flipped = bytearray(packed)
        flipped[len(packed) // 2] ^= 0x10
        damages = {
            "whole": packed,
            "cut-early": packed[:5],
            "cut-late": packed[:-1],
            "flipped": bytes(flipped),
            "doubled-head": packed[:4] + packed,
        }
        for end in ("length", "chunks", "close"):
            for damage, body in damages.items():
                head = _TYPE + b"Content-Encoding: %s\r\n" % name.encode()
                # Brotli has no sum: a flipped bit may be another text.
                if (name, damage) != ("br", "flipped"):
                    fine = damage == "whole"
                    yield f"coding-{name}-{damage}-{end}", Behaviour(_answer(200, head, body, end), fine)


def _led() -> Iterator[tuple[str, Behaviour]]:
    for status in (301, 303, 307, 308):
        for name, place in PLACES.items():
            yield f"redirect-{status}-{name}", Behaviour(redirect(status, place))


def _words() -> Iterator[tuple[str, Behaviour]]:
    for status in (429, 503):
        for name, word in _WAITS.items():
            head = b"Retry-After: %s\r\n" % word.encode("latin-1")
            yield f"wait-{status}-{name}", Behaviour(_answer(status, head, b"later"))
    for field, words in (("ETag", _TAGS), ("Last-Modified", _DATES), ("Content-Type", _TYPES)):
        for name, word in words.items():
            head = f"{field}: {word}\r\n".encode("latin-1")
            yield f"{field.lower()}-{name}", Behaviour(_answer(200, head, _BODY), True)
    for name, word in _CONTROL.items():
        yield f"control-{name}", Behaviour(_answer(200, f"Cache-Control: {word}\r\n".encode(), _BODY), True)
    for name, body in _BODIES.items():
        yield f"body-{name}", Behaviour(_answer(200, _TYPE, body), True)


def _unchanged() -> Iterator[tuple[str, Behaviour]]:
    """What was not asked for: that nothing has changed, in many ways."""
    for end in _ENDS:
        yield f"unasked-304-{end}", Behaviour(_answer(304, b'ETag: "a"\r\n', _BODY, end))
    for name, first in (("404", b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"), ("noise", b"\x00\x01\x02\r\n\r\n")):
        yield f"second-answer-before-{name}", Behaviour(first + _answer(200, _TYPE, _BODY))
        yield f"second-answer-after-{name}", Behaviour(_answer(200, _TYPE, _BODY) + first, True)


CROSSED: dict[str, Behaviour] = {
    name: one for group in (_ends, _damaged, _led, _words, _unchanged) for name, one in group()
}
