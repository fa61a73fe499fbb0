"""An answer of HTTP/1 out of the bytes of its connection: interim heads, the head, the body without framing, trailers.

Rules of this file:
1. Bytes in, pieces out: nothing here knows of sockets or clocks.
2. An end that was not seen is a failure: of the head, of the stated length, of the last chunk, of the trailers. Only a
   body that states none of these ends where its connection is closed; whether that was in order, its feeder says.
3. Where a body ends is read strictly [RFC 9112 6.3]: what two readers could understand in two ways is refused. Lines
   are read as the RFC allows: a line feed alone ends one, a folded one is put together again.
4. A transfer coding that nobody knows is passed through. One that is known to change the body is refused: it was not
   asked for, and without its name the body would be taken for something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Line = tuple[str, str]
Interim = Callable[[int, Sequence[Line]], None]

#: bytes that all heads and the trailers of an answer may have together, and those of a line that tells a chunk's size
MOST_HEAD, MOST_LINE = 256 * 1024, 4096
_STATUS = re.compile(rb"HTTP/1\.([01]) +([1-9][0-9]{2})(?:[ \t].*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_END = re.compile(rb"\n\r?\n")
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")
#: transfer codings that change the body [IANA]
_CHANGING = frozenset({"compress", "deflate", "gzip", "x-compress", "x-gzip"})


class Broken(ValueError):
    """What came is not an answer of HTTP/1, or not all of one."""


class AnswerReader:
    """Reads one answer to a request of this method; `interim` hears of the heads before it, but for 100."""

    __slots__ = (
        "_buffer",
        "_interim",
        "_left",
        "_method",
        "_scanned",
        "_seen",
        "_step",
        "keep",
        "lines",
        "pieces",
        "status",
        "trailers",
        "whole",
    )

    def __init__(self, method: str, interim: Interim | None = None) -> None:
        self._method, self._interim = method, interim
        self._buffer = bytearray()
        self._left = self._scanned = self._seen = 0
        self._step: Callable[[], bool] = self._head
        #: the final status, 0 until its head is there
        self.status = 0
        self.lines: list[Line] = []
        self.trailers: list[Line] = []
        #: of the body, what nobody has taken yet
        self.pieces: list[bytes] = []
        #: whether the end was seen, and whether another answer may come the same way
        self.whole = self.keep = False

    def feed(self, data: bytes) -> None:
        """Some more bytes; Broken if they cannot be of an answer."""
        self._buffer += data
        while self._step():
            pass

    def close(self) -> None:
        """The connection was closed in order; Broken if the answer is not over with that."""
        if self._step == self._until_closed:
            self._over(keep=False)
        if not self.whole:
            raise Broken("the body ended before its end" if self.status else "its headers ended before their end")

    def _over(self, *, keep: bool) -> bool:
        self.whole, self.keep, self._step = True, keep and self.keep and not self._buffer, self._after
        return False

    def _after(self) -> bool:
        """Whatever comes behind an answer was not asked for."""
        self.keep = self.keep and not self._buffer
        return False

    def _head(self) -> bool:
        end = _END.search(self._buffer, self._scanned)
        if end is None:
            self._scanned = max(0, len(self._buffer) - 2)
            self._bounded(len(self._buffer))
            return False
        self._seen += end.end()
        self._bounded(0)
        first, *rest = bytes(self._buffer[: end.start()]).split(b"\n")
        del self._buffer[: end.end()]
        self._scanned = 0
        said = _STATUS.fullmatch(first.rstrip(b"\r"))
        if said is None:
            raise Broken("it did not answer in HTTP/1")
        version, status, lines = int(said[1]), int(said[2]), _lines(rest)
        if status == 101:
            raise Broken("it switched to another protocol unasked")
        if status < 200:
            if self._interim is not None and status != 100:
                self._interim(status, lines)
            return True
        self.status, self.lines = status, lines
        self._framed(version)
        return True

    def _framed(self, version: int) -> None:
        """How the body ends, by what the head says."""
        said = _words(self.lines, "connection")
        self.keep = "close" not in said if version else "keep-alive" in said
        codings, lengths = _words(self.lines, "transfer-encoding"), set(_words(self.lines, "content-length"))
        if self._method == "HEAD" or self.status in (204, 304):
            self._over(keep=True)
        elif codings:
            if _CHANGING & set(codings) or "chunked" in codings[:-1]:
                raise Broken("it used a transfer coding that was not asked for")
            # A length beside it is not to be believed, nor that the connection is in step.
            self.keep = self.keep and bool(version) and not lengths
            self.lines = [line for line in self.lines if line[0] != "content-length"]
            self._step = self._size if codings[-1] == "chunked" else self._until_closed
        elif lengths:
            (length, *others) = lengths
            if others or not (length.isascii() and length.isdigit() and len(length) < 19):
                raise Broken("it stated a length that is none")
            self._left, self._step = int(length), self._sized
        else:
            self._step = self._until_closed

    def _sized(self) -> bool:
        self._take()
        return False if self._left else self._over(keep=True)

    def _until_closed(self) -> bool:
        self._left = len(self._buffer)
        self._take()
        return False

    def _size(self) -> bool:
        """The line before a chunk."""
        end = self._buffer.find(b"\n") + 1
        if max(end, len(self._buffer) if not end else 0) > MOST_LINE:
            raise Broken("a chunk has no size")
        if not end:
            return False
        said = _SIZE.fullmatch(bytes(self._buffer[:end]))
        if said is None:
            raise Broken("a chunk has no size")
        del self._buffer[:end]
        self._left = int(said[1], 16)
        self._step = self._chunk if self._left else self._last
        return True

    def _chunk(self) -> bool:
        self._take()
        if self._left:
            return False
        self._step = self._chunk_end
        return True

    def _chunk_end(self) -> bool:
        for end in (b"\r\n", b"\n"):
            if self._buffer.startswith(end):
                del self._buffer[: len(end)]
                self._step = self._size
                return True
        if bytes(self._buffer[:2]) not in (b"", b"\r"):
            raise Broken("a chunk is longer than its size")
        return False

    def _last(self) -> bool:
        """Trailers, up to the blank line that ends the answer."""
        while end := self._buffer.find(b"\n") + 1:
            line = bytes(self._buffer[:end])
            del self._buffer[:end]
            self._seen += end
            self._bounded(0)
            if line in (b"\r\n", b"\n"):
                return self._over(keep=True)
            self.trailers += _lines([line[:-1]])
        self._bounded(len(self._buffer))
        return False

    def _take(self) -> None:
        """Give out of the buffer what belongs to the body."""
        if not self._buffer or not self._left:
            return
        if len(self._buffer) <= self._left:
            self.pieces.append(bytes(self._buffer))
            self._left -= len(self._buffer)
            self._buffer.clear()
        else:
            self.pieces.append(bytes(self._buffer[: self._left]))
            del self._buffer[: self._left]
            self._left = 0

    def _bounded(self, waiting: int) -> None:
        if self._seen + waiting > MOST_HEAD:
            raise Broken("its headers are too large")


def _lines(raw: list[bytes]) -> list[Line]:
    """Header lines: names in lower case, values without the space around them."""
    found: list[Line] = []
    for line in raw:
        line = line.removesuffix(b"\r")
        if line[:1] in (b" ", b"\t") and found:
            name, value = found[-1]
            found[-1] = (name, f"{value} {line.strip().decode('latin-1')}".strip())
            continue
        before, colon, after = line.partition(b":")
        # Space before the colon is an error that a proxy has to mend [RFC 9112 5.1].
        before = before.rstrip(b" \t")
        if not colon or not _NAME.fullmatch(before) or b"\0" in after or b"\r" in after:
            raise Broken("one of its header lines is none")
        found.append((before.decode().lower(), after.strip(b" \t").decode("latin-1")))
    return found


def _words(lines: list[Line], name: str) -> list[str]:
    """The members of a list of words, over all lines of this name."""
    said = ",".join(value for known, value in lines if known == name)
    return [word for word in (member.strip(" \t").lower() for member in said.split(",")) if word]
