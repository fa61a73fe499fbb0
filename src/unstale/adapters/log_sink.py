"""Telling of changes by appending lines of JSON to a file."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from unstale.adapters.event_text import event_text
from unstale.ports import Event

#: how every line of ours begins
_BEGINS = b'{"number":'
_BLOCK = 65_536


class LogSink:
    """Appends a line per event: a batch is one write, and on the disk before it counts as told.

    A file that was moved away is begun anew. Half a line, left by a kill or a full disk, is cut off before the next
    one follows: its event has not counted as told, and comes again.
    """

    #: lines that share a write, and a wait for the disk
    batch, width = 64, 1

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.name = f"log {self.path}"
        self._file = -1
        self._in_use = Lock()

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """Append these; how many were taken, all or none, and why not."""
        lines = b"".join(event_text(event) + b"\n" for event in events)
        try:
            await asyncio.to_thread(self._append, lines)
        except OSError as error:
            return 0, f"{self.path}: {error.strerror or error}"
        return len(events), ""

    async def close(self) -> None:
        """Give back the file, once what is being written is written."""
        await asyncio.to_thread(self._close)

    def _append(self, lines: bytes) -> None:
        with self._in_use:
            if self._file < 0 or not self._is_there():
                self._give_back()
                self._file = _opened(self.path)
            try:
                if os.write(self._file, lines) < len(lines):
                    raise OSError("no room for a whole line")
                if stat.S_ISREG(os.fstat(self._file).st_mode):
                    os.fsync(self._file)
            except OSError:
                # Opening it again mends what is half written.
                self._give_back()
                raise

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file))
        except OSError:
            return False

    def _close(self) -> None:
        with self._in_use:
            self._give_back()

    def _give_back(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)


def _opened(path: Path) -> int:
    new = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        _mend(file)
        if new:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        os.close(file)
        raise
    return file


def _mend(file: int) -> None:
    """Let the file end with a whole line: half a line of ours is cut off, anything else is only ended."""
    size = begin = os.fstat(file).st_size
    tail = b""
    while begin > 0 and b"\n" not in tail:
        step = min(_BLOCK, begin)
        begin -= step
        tail = os.pread(file, step, begin) + tail
    half = tail[tail.rfind(b"\n") + 1 :]
    if not half:
        return
    if half.startswith(_BEGINS) or _BEGINS.startswith(half):
        os.ftruncate(file, size - len(half))
    else:
        os.write(file, b"\n")
