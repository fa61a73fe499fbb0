"""The one way in which files are written: a regular file appears whole or not at all, everything else is written to.

Rules of this file:
- Links are followed, symbolic and hard ones; what a name stands for is changed, never the name.
- A device, a pipe, a socket and whatever lies in /dev or /proc is opened and written to. It is never replaced.
- A regular file keeps its permissions, owner and attributes. Where that or a draft beside it is impossible, the bytes
  are gathered elsewhere and written into the file itself: what is there was whole before the first byte changed.
- A file that may not be written is not replaced either, though its folder would allow it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from unstale.errors import InputError, sentence

#: folders whose names stand for what is not a file, even where it looks like one
_SPECIAL = ("/dev", "/proc")
_LINKS = 40


@contextmanager
def whole_file(path: str | Path, name: str = "output") -> Iterator[BinaryIO]:
    """A stream to write a file's bytes to; InputError, which calls it `name`, if they cannot be written.

    A regular file has its new bytes once the block has ended well, and is untouched if it has not.
    """
    try:
        with _opened(os.fspath(path)) as out:
            yield out
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(sentence(name, repr(str(path)), f"cannot be written ({why})", "choose another")) from None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    there = _stat(path)
    if there is not None and stat.S_ISSOCK(there.st_mode):
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(path)
            with end.makefile("wb") as out:
                yield out
        return
    if (there is not None and not stat.S_ISREG(there.st_mode)) or _special(path):
        # a folder is refused here, by the system
        with open(os.open(path, os.O_WRONLY), "wb") as out:  # noqa: PTH123
            yield out
        return
    target = os.path.realpath(path)
    if there is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "it is read-only")
    draft = None if there is not None and there.st_nlink > 1 else _draft(target, there)
    if draft is None:
        with tempfile.TemporaryFile() as gathered:
            yield gathered
            gathered.seek(0)
            with open(target, "wb") as out:  # noqa: PTH123
                shutil.copyfileobj(gathered, out)
                out.flush()
                os.fsync(out.fileno())
        return
    beside, handle = draft
    try:
        with open(handle, "wb") as out:  # noqa: PTH123
            yield out
            out.flush()
            os.fsync(out.fileno())
        Path(beside).replace(target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _stat(path: str) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except FileNotFoundError:
        return None


def _special(path: str) -> bool:
    """Whether a name, or one that it is a link to, is in a folder of what are no files, such as /dev/stdout."""
    for _ in range(_LINKS):
        folder = os.path.realpath(os.path.dirname(path) or ".")  # noqa: PTH120
        if any(folder == special or folder.startswith(f"{special}/") for special in _SPECIAL):
            return not folder.startswith("/dev/shm")
        if not Path(path).is_symlink():
            return False
        path = os.path.join(folder, os.readlink(path))  # noqa: PTH115, PTH118
    return False


def _draft(target: str, there: os.stat_result | None) -> tuple[str, int] | None:
    """A new file beside the target that is like it, and its handle; None if there can be none."""
    folder, base = os.path.split(target)
    beside = os.path.join(folder, f".{base[:200]}.{secrets.token_hex(4)}")  # noqa: PTH118
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if there is None else 0o600)
    except PermissionError:
        if there is None:
            raise
        return None
    try:
        if there is not None:
            mine = os.fstat(handle)
            if (mine.st_uid, mine.st_gid) != (there.st_uid, there.st_gid):
                os.fchown(handle, there.st_uid, there.st_gid)
            _copy_attributes(target, beside)
            os.fchmod(handle, stat.S_IMODE(there.st_mode))
    except BaseException as error:
        os.close(handle)
        Path(beside).unlink(missing_ok=True)
        if isinstance(error, PermissionError):
            return None
        raise
    return beside, handle


def _copy_attributes(source: str, to: str) -> None:
    """Extended attributes, access lists among them; where the file system has none, there is nothing to keep."""
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for name in os.listxattr(source):
            os.setxattr(to, name, os.getxattr(source, name))
