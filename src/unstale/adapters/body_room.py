"""Bodies that are being polled: bounded together, on disk where they are large, hashed as they come.

Rules of this file:
1. A body of up to SMALL bytes is nobody's concern. Up to LARGE it is in memory and counted, as long as there is room;
   otherwise it is in a file without a name, of which a kill leaves nothing. Large ones have room of their own: those
   who send them do not hold up others.
2. Who needs room waits for it in turn, within the time that its poll has. A body on disk has room for all of itself
   before the rest of it is let in, and one in memory needs no more than it has: so nobody waits for another for ever.
3. Room in memory is given back when nobody holds the body any more, wherever it went: to be parsed, judged, recorded.
4. What is coded stays so until it is read: of many bodies that unpack to much, only one at a time is being unpacked.
"""

from __future__ import annotations

import asyncio
import mmap
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO

from unstale.codings import Decoder, TooMuch
from unstale.ports import CallOff

#: bytes up to which a body is not counted, and beyond which it is not in memory while it comes
SMALL, LARGE = 1 << 14, 1 << 20
#: bytes that all bodies may have together, and in memory those of up to LARGE bytes, and those of more
TOTAL, LIGHT, HEAVY = 256 << 20, 16 << 20, 16 << 20
_PIECE = 1 << 16


class SharedBytes:
    """So many bytes, to be shared; what is larger than all of them gets them alone.

    >>> room = SharedBytes(10)
    >>> room.take(6), room.take(6), room.give(6), room.take(60), room.taken
    (True, False, None, True, 60)
    """

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        # Bodies may end in any thread, and wherever the interpreter collects them.
        self._lock = threading.RLock()

    def take(self, size: int, *, whatever: bool = False) -> bool:
        """Whether there was room at once; `whatever` takes it all the same."""
        with self._lock:
            if not whatever and (self._waiting or (self.taken and self.taken + size > self.most)):
                return False
            self.taken += size
            return True

    def wait(self, size: int, then: Callable[[], None]) -> CallOff:
        """Call `then` in a later turn of the loop, once room was taken; unless that is called off before."""
        self._loop = asyncio.get_running_loop()
        mine = (size, then)
        with self._lock:
            self._waiting.append(mine)
        self._loop.call_soon(self._serve)

        def call_off() -> None:
            with self._lock:
                if mine in self._waiting:
                    self._waiting.remove(mine)
            # Who comes next may fit where this one did not.
            self.give(0)

        return call_off

    def give(self, size: int) -> None:
        """Give back; from any thread."""
        with self._lock:
            self.taken -= size
            loop = self._loop if self._waiting else None
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._serve)

    def _serve(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or (self.taken and self.taken + self._waiting[0][0] > self.most):
                    return
                size, then = self._waiting.popleft()
                self.taken += size
            then()


class BodyRoom:
    """The room of all bodies of a process: `total` bytes, on disk in `folder` but for what is in memory.

    Where it is one `of` several that share all this, it has its part.
    """

    def __init__(self, total: int = TOTAL, folder: Path | None = None, *, of: int = 1) -> None:
        self.total = total
        self.disk, self.light, self.heavy = (SharedBytes(min(most, total) // of) for most in (total, LIGHT, HEAVY))
        self.folder = folder

    def file(self) -> IO[bytes]:
        """A file without a name; in the system's folder for such if ours may not be written."""
        try:
            return tempfile.TemporaryFile(dir=self.folder)
        except OSError:
            return tempfile.TemporaryFile()


class HeldBody(bytes):
    """A body that gives back its room in memory when nobody holds it any more."""

    room: SharedBytes

    def __del__(self) -> None:
        self.room.give(len(self))

    def __reduce__(self) -> tuple[type[bytes], tuple[bytes]]:
        # To another process it goes as what it is: its room is here.
        return bytes, (self[:],)


def held(data: bytes | mmap.mmap, room: SharedBytes) -> HeldBody:
    """A body for which room was taken."""
    body = HeldBody(data)
    body.room = room
    return body


class IncomingBody:
    """What has come of one body so far, as it was sent, in memory or on disk."""

    __slots__ = ("_counted", "_digest", "_file", "_reserved", "_room", "_waits", "codings", "size")

    def __init__(self, room: BodyRoom) -> None:
        self._room = room
        self._file: IO[bytes] = BytesIO()
        self._counted = self._reserved = self.size = 0
        self._waits: CallOff | None = None
        self.codings: Sequence[str] = ()

    @property
    def waits(self) -> bool:
        """Whether there is no room for the rest of it."""
        return self._waits is not None

    def write(self, chunk: bytes, expected: int, resume: Callable[[], None]) -> bool:
        """Take a piece of a body that has at most `expected` bytes; if false, `resume` is called when it can be."""
        size = self.size + len(chunk)
        if size > SMALL and not self._reserved and not self._grow(size):
            if not self._room.disk.take(expected):
                self._waits = self._room.disk.wait(expected, lambda: self._resumed(expected, resume))
                return False
            self._spill(expected)
        self.size = size
        self._file.write(chunk)
        if self._reserved:
            self._digest.update(chunk)
        return True

    def rest(self) -> bytes:
        """What there is of it, if it is not large and can be read as it is."""
        if self.codings or self.size > LARGE:
            return b""
        self._file.seek(0)
        return self._file.read()

    def land(self, limit: int) -> bytes | LandedBody:
        """It has come: as itself, or still to be read. BrokenCoding, EOFError without its coding's end, and TooMuch."""
        if self.codings:
            return self._unpacked(limit)
        if self.size > LARGE:
            return LandedBody(self, self._room.heavy, self.size, self._digest.digest())
        if self._reserved:
            self._room.light.take(self.size, whatever=True)
            return self.load(self.size, self._room.light)
        counted, self._counted = self._counted, 0
        return held(self.rest(), self._room.light) if counted else self.rest()

    def pieces(self, limit: int) -> Iterator[bytes]:
        """All of it, with its codings undone."""
        self._file.seek(0)
        decoder = Decoder(self.codings)
        while piece := self._file.read(_PIECE):
            for found in decoder.unpack(piece, limit):
                limit -= len(found)
                yield found
        if not decoder.whole:
            raise EOFError

    def load(self, size: int, room: SharedBytes) -> HeldBody:
        """All of it in memory, for which room was taken; forgotten here."""
        file = self._file
        if self.codings:
            file = self._room.file()
            file.writelines(self.pieces(size))
        file.flush()
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as view:
            found = held(view, room)
        if file is not self._file:
            file.close()
        self.drop()
        return found

    def drop(self) -> None:
        """Forget it, and give back its room."""
        if self._waits is not None:
            self._waits()
            self._waits = None
        if self._counted:
            self._room.light.give(self._counted)
        if self._reserved:
            self._room.disk.give(self._reserved)
        self._counted = self._reserved = 0
        self._file.close()

    def _unpacked(self, limit: int) -> bytes | LandedBody:
        found: list[bytes] = []
        size, digest = 0, sha256()
        try:
            for piece in self.pieces(limit):
                size += len(piece)
                digest.update(piece)
                if size <= LARGE:
                    found.append(piece)
        except TooMuch as error:
            raise TooMuch(b"".join([*found, error.found]) if size <= LARGE else b"") from None
        if size > LARGE:
            return LandedBody(self, self._room.heavy, size, digest.digest())
        if size > SMALL:
            self._room.light.take(size, whatever=True)
            return held(b"".join(found), self._room.light)
        return b"".join(found)

    def _grow(self, size: int) -> bool:
        if size > LARGE or not self._room.light.take(size - self._counted):
            return False
        self._counted = size
        return True

    def _spill(self, expected: int) -> None:
        """From memory to disk, where room was taken for all that is expected."""
        assert isinstance(self._file, BytesIO)
        self._reserved = expected
        before, self._file = self._file.getvalue(), self._room.file()
        self._file.write(before)
        self._digest = sha256(before)
        self._room.light.give(self._counted)
        self._counted = 0

    def _resumed(self, expected: int, resume: Callable[[], None]) -> None:
        self._waits = None
        self._spill(expected)
        resume()


class LandedBody:
    """A body that has come whole and waits for room in memory; how large it is, and its SHA-256, are known."""

    __slots__ = ("_incoming", "_room", "digest", "size")

    def __init__(self, incoming: IncomingBody, room: SharedBytes, size: int, digest: bytes) -> None:
        self._incoming, self._room, self.size, self.digest = incoming, room, size, digest

    def read(self, then: Callable[[bytes | OSError], None]) -> CallOff:
        """Tell the body once there is room for it, or what is wrong with the disk; unless that is called off before."""

        def served() -> None:
            try:
                found: bytes | OSError = self._incoming.load(self.size, self._room)
            except OSError as error:
                self._room.give(self.size)
                self.drop()
                found = error
            then(found)

        waiting = self._room.wait(self.size, served)

        def call_off() -> None:
            waiting()
            self.drop()

        return call_off

    def drop(self) -> None:
        """Nobody wants it."""
        self._incoming.drop()
