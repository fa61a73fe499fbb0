"""The head of an answer: its status and those of its headers that count, read in one pass.

Most lines are the same from answer to answer: what a line says is remembered, for reading it takes as long as all the
rest of looking at an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstale.adapters.retry_headers import HEADERS
from unstale.replica_list import RECENT

#: lines that are remembered, all forgotten when there are more; longer ones are not
_LINES, _LONGEST = 4096, 256
_OURS = {"cache-status", "content-location", "replica-status", RECENT.lower()}
_OF_BODY = {"content-type", "content-encoding", "content-length", "transfer-encoding"}
_OF_TIME = {"etag", "last-modified", "expires", "age", "cache-control"}
_KEPT = {name.encode(): name for name in HEADERS | _OURS | _OF_BODY | _OF_TIME | {"location", "link"}}
#: what a line can be besides a header: of no interest, blank, the first of an answer, one that only looks like it
_OTHER, _BLANK, _STATUS, _ODD = "", "\n", "HTTP/", "http/"
#: lines that count otherwise than as the first header of their name
_SPECIAL = {_BLANK, _STATUS, _ODD, "content-encoding"}

_known: dict[bytes, tuple[str, str]] = {}


def head_of(lines: Iterable[bytes]) -> tuple[int, dict[str, str], bool]:
    """The status of the last answer, 0 if it has none; its headers, the first of each; whether their end was seen.

    Interim answers come before it. Codings are a list, which several lines continue.

    >>> head_of([b"HTTP/1.1 103 Early Hints\\r\\n", b"Age: 9\\r\\n", b"\\r\\n", b"HTTP/1.1 200 OK\\r\\n"])
    (200, {}, False)
    >>> head_of([b"HTTP/1.1 304 Not Modified\\r\\n", b"ETag: \\"a\\"\\r\\n", b"Server: x\\r\\n", b"\\r\\n"])
    (304, {'etag': '"a"'}, True)
    """
    status, found, over = 0, dict[str, str](), False
    for line in lines:
        key, text = _known.get(line) or _read(line)
        if not key:
            continue
        if key not in _SPECIAL:
            if not over and key not in found:
                found[key] = text
        elif key == _STATUS:
            status, found, over = int(text), {}, False
        elif key == _ODD:
            # libcurl also understands http/1.1 and 2000, of which nobody knows what is meant.
            status = 0
        elif key == _BLANK:
            # A blank line ends the headers; trailers are not to be trusted with validators.
            over = True
        elif not over:
            found[key] = f"{found[key]}, {text}" if key in found else text
    return status, found, over


def _read(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    key = _KEPT.get(name.lower()) if colon else None
    if key is not None:
        read = key, value.strip().decode("utf-8", "replace")
    elif line in (b"\r\n", b"\n"):
        read = _BLANK, ""
    elif line[:5].upper() == b"HTTP/":
        _, code, *_ = *line.split(None, 2), b""
        plain = line.startswith(b"HTTP/")
        read = (_STATUS if plain else _ODD), code.decode() if plain and len(code) == 3 and code.isdigit() else "0"
    else:
        read = _OTHER, ""
    # Each source has a tag of its own, which would only drive out the others.
    if len(line) <= _LONGEST and key != "etag":
        if len(_known) >= _LINES:
            _known.clear()
        _known[line] = read
    return read
