"""Files and folders of this machine, below chosen roots: no link, pipe or device leads anywhere else."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from unstale.adapters.file_places import CHUNK, FolderEntry, Found, below_a_root
from unstale.errors import InputError

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class LocalPlace:
    """A file or folder of this machine, held open: what replaces it meanwhile is for the next look."""

    def __init__(self, path: str, roots: Sequence[Path]) -> None:
        self._handle = _opened(path, roots)

    def look(self) -> Found:
        """What is there now; its times of writing and of change, its size and number are its tag."""
        s = os.fstat(self._handle)
        tag = f"{s.st_mtime_ns} {s.st_ctime_ns} {s.st_size} {s.st_ino} {s.st_dev}"
        written = max(s.st_mtime, s.st_ctime)
        return Found(tag, False, s.st_size, s.st_mtime, written, stat.S_ISDIR(s.st_mode))

    def read(self, limit: int) -> Iterator[bytes]:
        """The content in pieces, from the beginning each time."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        while piece := os.read(self._handle, min(CHUNK, limit + 1)):
            yield piece

    def members(self) -> Iterator[FolderEntry]:
        """The names in the folder; links are named, not followed."""
        with os.scandir(self._handle) as entries:
            for entry in entries:
                # what is removed while we look is no longer there
                with contextlib.suppress(FileNotFoundError):
                    s = entry.stat(follow_symlinks=False)
                    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
                    kind = kinds.get(stat.S_IFMT(s.st_mode), "other")
                    yield FolderEntry(entry.name, kind, s.st_size if kind == "file" else 0, s.st_mtime)

    def close(self) -> None:
        """Close it."""
        os.close(self._handle)


def _opened(path: str, roots: Sequence[Path]) -> int:
    """A handle on `path`, all links followed, if it is below a root.

    The way is walked again without following any, folder by folder: one that is put in between is not taken.
    """
    if os.open not in os.supports_dir_fd:
        raise InputError("files of this machine can be polled on POSIX systems only: serve them over HTTP")
    # The root is asked first: whether something exists elsewhere is nobody's business.
    root, real = below_a_root(path, roots)
    handle = os.open(root, _FLAGS | os.O_DIRECTORY)
    for name in real.relative_to(root).parts:
        try:
            # Opening alone may already do something to a device.
            mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise InputError("it is no file or folder: pipes, sockets and devices are not polled")
            inner = os.open(name, _FLAGS, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle
