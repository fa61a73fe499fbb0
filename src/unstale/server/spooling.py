"""Large copies as files, out of which every reader is sent at its own pace.

Why: granian takes all pieces of an answer at once, however slowly they are read, so that a thousand readers who do not
read would hold a thousand copies in memory. Of a file it reads on when a reader has taken what it was sent.

Rules of this file:
1. A file has all of its bytes before anybody is told its name, and nobody else may read it.
2. It goes some time after it was named last, for it is opened a moment later: never while it may be asked for.
3. What a server left that was killed goes when the next one begins: whose folder nobody holds is nobody's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unstale.frozen import dataclass
from unstale.server.ranges import Stretch

#: seconds after which a file that was named is surely open, and after which it goes; files, and bytes of them, at most
OPENED, UNUSED, FILES, BYTES = 60.0, 600.0, 256, 256 * 2**20
_PREFIX, _HELD = "unstale-copies-", "held"


@dataclass(slots=True)
class _SpooledFile:
    path: Path
    size: int
    named_at: float


class SpooledCopies:
    """The files of copies that were asked for lately; by their ETags, which tell their bytes."""

    def __init__(self, parent: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._parent, self._clock = parent or Path(tempfile.gettempdir()), clock
        self._folder: Path | None = None
        self._files: OrderedDict[str, _SpooledFile] = OrderedDict()
        self._bytes = self._made = 0

    async def path(self, copy: Stretch) -> str | None:
        """The file that has all bytes of a copy; None where there can be none."""
        now = self._clock()
        found = self._files.get(copy.etag)
        if found is not None and not found.path.exists():
            # Somebody has tidied up.
            self._remove(self._files.pop(copy.etag))
            found = None
        if found is None:
            self._drop(now, len(copy.whole))
            if len(self._files) >= FILES or self._bytes + len(copy.whole) > BYTES:
                return None
            # Counted before it is there: others may come meanwhile.
            self._bytes += len(copy.whole)
            self._made += 1
            try:
                path = await asyncio.to_thread(self._write, f"{self._made}", copy.whole)
            except OSError:
                self._bytes -= len(copy.whole)
                return None
            there = self._files.get(copy.etag)
            if there is not None:
                self._remove(_SpooledFile(path, len(copy.whole), now))
            found = there or _SpooledFile(path, len(copy.whole), now)
            self._files[copy.etag] = found
        found.named_at = self._clock()
        self._files.move_to_end(copy.etag)
        return str(found.path)

    def _write(self, name: str, data: bytes) -> Path:
        path = self._ours() / name
        with path.open("xb") as file:
            file.write(data)
        return path

    def _ours(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            _clear(self._parent)
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._parent))
            held = _hold(self._folder)
            weakref.finalize(self, _end, self._folder, held)
        return self._folder

    def _drop(self, now: float, size: int) -> None:
        """Let go of what nobody asked for in a while, sooner where there is no room."""
        while self._files:
            full = len(self._files) >= FILES or self._bytes + size > BYTES
            etag, oldest = next(iter(self._files.items()))
            if now - oldest.named_at < (OPENED if full else UNUSED):
                return
            del self._files[etag]
            self._remove(oldest)

    def _remove(self, file: _SpooledFile) -> None:
        self._bytes -= file.size
        with suppress(OSError):
            file.path.unlink()


def _hold(folder: Path) -> int | None:
    """Hold a folder for as long as this process lives; None where the system cannot tell who does."""
    try:
        import fcntl
    except ImportError:
        return None
    file = os.open(folder / _HELD, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _clear(parent: Path) -> None:
    """Remove the folders of those who have ended without doing so."""
    for folder in parent.glob(f"{_PREFIX}*"):
        # Another user's, or one that is just being made, or in use, stays.
        with suppress(OSError):
            there = folder.lstat()
            ours = stat.S_ISDIR(there.st_mode) and there.st_uid == os.getuid() and (folder / _HELD).exists()
            if ours and (held := _hold(folder)) is not None:
                _end(folder, held)


def _end(folder: Path, held: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if held is not None:
        os.close(held)
