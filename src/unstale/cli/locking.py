"""One engine per store: the store's file itself is locked, whatever it is called and wherever a link to it stands.

Rules of this file:
1. Two locks: one on the file, by which a symbolic or hard link is the same store; one on `FILE.engine` beside it, which
   `unstale status` can look at without touching the store.
2. A handle on the store's file is never closed: the system would take away SQLite's own locks on it with that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unstale.cli.settings import near
from unstale.errors import StoreError, sentence

try:
    import fcntl
except ImportError:  # Not on Windows: there nothing keeps a second engine away but its owner.
    fcntl = None  # type: ignore[assignment]

#: handles by device and number of their files, open as long as this process lives
_HANDLES: dict[tuple[int, int], int] = {}


def beside(store: Path) -> Path:
    """The file beside a store that its engine holds locked; links lead to the same one."""
    return Path(f"{store.resolve()}.engine")


@contextmanager
def locked(store: Path) -> Iterator[None]:
    """The right to run the one engine of a store that is there; StoreError if another process has it."""
    if fcntl is None:
        yield
        return
    try:
        file = beside(store).open("a")
    except OSError as error:
        raise _refused(store, "its folder", error) from None
    with file:
        _lock(file.fileno(), store)
        try:
            own = _handle(store)
        except OSError as error:
            raise _refused(store, "its file", error) from None
        _lock(own, store)
        try:
            yield
        finally:
            fcntl.flock(own, fcntl.LOCK_UN)


def _refused(store: Path, what: str, error: OSError) -> StoreError:
    rule = f"cannot be kept fresh, {what} may not be written ({error.strerror})"
    remedy = "run it where the store may be written; `unstale status`, `get` and `list` only read"
    return StoreError(sentence("store", repr(near(str(store))), rule, remedy))


def _handle(store: Path) -> int:
    found = store.stat()
    if (known := _HANDLES.get((found.st_dev, found.st_ino))) is not None:
        return known
    handle = os.open(store, os.O_RDWR | os.O_CLOEXEC)
    found = os.fstat(handle)
    return _HANDLES.setdefault((found.st_dev, found.st_ino), handle)


def _lock(handle: int, store: Path) -> None:
    for patience in (0.2, 0.4, 0.0):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # `unstale status` looks for a moment whether somebody holds it.
            time.sleep(patience)
        else:
            return
    raise StoreError(
        sentence(
            "store",
            repr(str(store)),
            "is kept fresh by another process already",
            "end that one, or choose another store",
        )
    )
