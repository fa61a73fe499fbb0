"""What an engine and the processes that poll for it say to each other, in batches, over a pair of sockets.

Rules of this file:
1. Both ends are the same program under the same Python: what is said is plain values, as Python itself writes them.
2. Whoever has more to say than the other end takes waits: nothing is lost, and nothing grows without end.
3. The end of one is the end of the other: a closed socket is the last word.
"""

from __future__ import annotations

import asyncio
import marshal
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from unstale.adapters.transfer import TransferReply
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, RateLimit, Request

#: a frame has its length before it
LENGTH = struct.Struct(">Q")
#: how plain values are written: without looking for those that occur twice, which takes longer than writing them
_VERSION = 2
#: bytes that are read at a time
_PIECE = 1 << 18
#: how a look ended: with what was found, with an answer as it came, begun too late, by a fault of ours
FOUND, REPLIED, LATE, FAULT = range(4)

_ANSWERS = tuple(Answer)
_NUMBERS = {answer: number for number, answer in enumerate(_ANSWERS)}
_FETCHED = [field.name for field in fields(Fetched)]
_ALL = attrgetter(*_FETCHED)
#: fields of which those behind are nearly always as usual, and what they are then
_MANY = _FETCHED.index("spacing")
_USUAL = _ALL(Fetched(Answer.FAILED, 0.0))[_MANY:]
_BODY, _LIMIT = _FETCHED.index("body"), _FETCHED.index("rate_limit")
_REPLY = attrgetter("status", "headers", "body", "address", "received", "reason", "requests")


def asked(number: int, request: Request, at: float, looks: bool) -> tuple[Any, ...]:
    """A look that is to be begun; `looks` if its answer is wanted as it comes."""
    return (
        number,
        at,
        looks,
        request.address,
        request.etag,
        request.last_modified,
        dict(request.headers) if request.headers else None,
        dict(request.options) if request.options else None,
        request.limit,
        request.seconds,
        request.since,
        request.begin_by,
        request.digest,
        request.content,
    )


def request_of(said: Sequence[Any]) -> Request:
    """What `asked` wrote, without its first three."""
    address, etag, last_modified, headers, options, *rest = said
    return Request(address, etag, last_modified, headers or {}, options or {}, *rest)


def written(found: Fetched) -> tuple[Any, ...]:
    """What was found, as plain values; those at its end that are as usual are left out."""
    said = _ALL(found)
    number = _NUMBERS[found.answer]
    if said[_MANY:] == _USUAL:
        return (number, *said[1:_MANY])
    told = found.rate_limit
    limit = None if told is None else (told.left, told.seconds, told.of)
    return (number, *said[1:_LIMIT], limit, *said[_LIMIT + 1 :])


def found_of(said: Sequence[Any], body: bytes | None) -> Fetched:
    """What `written` wrote, with its body.

    >>> full = Fetched(Answer.FAILED, 5.0, reason="no", rate_limit=RateLimit(1.0, 2.0), rows=3)
    >>> [found_of(written(one), one.body) == one for one in (full, Fetched(Answer.CHANGED, 5.0, b"a", "text/plain"))]
    [True, True]
    """
    if len(said) > _MANY and said[_LIMIT] is not None:
        said = (*said[:_LIMIT], RateLimit(*said[_LIMIT]), *said[_LIMIT + 1 :])
    answer, polled_at, _, *rest = said
    return Fetched(_ANSWERS[answer], polled_at, body, *rest)


def written_reply(reply: TransferReply) -> tuple[Any, ...]:
    """An answer as it came, as plain values."""
    status, headers, *rest = _REPLY(reply)
    return (status, dict(headers), *rest)


def reply_of(said: Sequence[Any], body: bytes | None) -> TransferReply:
    """What `written_reply` wrote, with its body."""
    status, headers, _, address, received, reason, requests = said
    return TransferReply(status, headers, body or b"", address, received, reason, requests)


class FrameLine:
    """One end of a pair of sockets: `heard` takes what the other end says, `over` that there is no other end any more.

    `drained` is called when everything that had to wait was taken.
    """

    def __init__(
        self,
        end: socket.socket,
        heard: Callable[[Any], None],
        over: Callable[[], None],
        drained: Callable[[], None] = lambda: None,
    ) -> None:
        end.setblocking(False)
        self._end, self._heard, self._over, self._drained = end, heard, over, drained
        self._loop = asyncio.get_running_loop()
        self._came, self._unsent = bytearray(), bytearray()
        self.closed = False
        self._loop.add_reader(end.fileno(), self._read)

    @property
    def full(self) -> bool:
        """Whether something waits for the other end to take it."""
        return bool(self._unsent)

    def say(self, message: Any) -> int:
        """Send plain values; how many bytes they take."""
        data = marshal.dumps(message, _VERSION)
        self._send(LENGTH.pack(len(data)) + data)
        return len(data)

    def close(self) -> None:
        """The last word."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._end.fileno())
            self._loop.remove_writer(self._end.fileno())
            self._end.close()
            self._unsent.clear()

    def _send(self, data: bytes) -> None:
        if self.closed:
            return
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._end.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            # It is gone, which reading tells.
            return
        if sent < len(data):
            self._unsent += memoryview(data)[sent:]
            self._loop.add_writer(self._end.fileno(), self._write)

    def _write(self) -> None:
        try:
            sent = self._end.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._unsent.clear()
            self._loop.remove_writer(self._end.fileno())
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._loop.remove_writer(self._end.fileno())
            self._drained()

    def _read(self) -> None:
        try:
            piece = self._end.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            piece = b""
        if not piece:
            self.close()
            self._over()
            return
        self._came += piece
        at = 0
        while len(self._came) - at >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._came, at)
            begins, ends = at + LENGTH.size, at + LENGTH.size + length
            if len(self._came) < ends:
                break
            with memoryview(self._came) as view:
                # Written by the other end of ourselves.
                message = marshal.loads(view[begins:ends])  # noqa: S302
            at = ends
            self._heard(message)
            if self.closed:
                return
        del self._came[:at]
