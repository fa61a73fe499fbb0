"""One engine per store: the store's file itself is locked, whatever it is called and wherever a link to it stands.

Rules of this file:
1. Two locks: one on the file, by which a symbolic or hard link is the same store; one on `FILE.engine` beside it, which
   `unstale status` can look at without touching the store.
2. A handle on the store's file is never closed: the system would take away SQLite's own locks on it with that.
3. A file under two names has two logs, of which neither knows the other: who writes by one name while an engine holds
   the other tears the store. So whoever opens it by another name than its engine is refused, also to read.
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

#: handles by device and number of their files, open as long as this process lives; others only to look who locks them
_HANDLES: dict[tuple[int, int], int] = {}
_LOOKS: dict[tuple[int, int], int] = {}


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
            own = _handle(store, _HANDLES)
        except OSError as error:
            raise _refused(store, "its file", error) from None
        _lock(own, store)
        try:
            yield
        finally:
            fcntl.flock(own, fcntl.LOCK_UN)


def engine_runs(store: Path) -> bool | None:
    """Whether a process keeps this store file fresh now, by this name; None where the system cannot tell."""
    if fcntl is None:
        return None
    try:
        # A shared look lets others look too.
        with beside(store).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_name(store: Path) -> None:
    """StoreError if an engine keeps this file fresh by another of its names."""
    try:
        if fcntl is None or store.stat().st_nlink < 2 or engine_runs(store):
            return
        # Not the handle that locks: asking by that would let go.
        look = _handle(store, _LOOKS)
    except OSError:
        return
    try:
        fcntl.flock(look, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        rule = "is kept fresh by an engine under another name of the same file (a hard link)"
        remedy = "use the name that the engine uses, and remove this one"
        raise StoreError(sentence("store", repr(near(str(store))), rule, remedy)) from None
    fcntl.flock(look, fcntl.LOCK_UN)


def _refused(store: Path, what: str, error: OSError) -> StoreError:
    rule = f"cannot be kept fresh, {what} may not be written ({error.strerror})"
    remedy = "run it where the store may be written; `unstale status`, `get` and `list` only read"
    return StoreError(sentence("store", repr(near(str(store))), rule, remedy))


def _handle(store: Path, known: dict[tuple[int, int], int]) -> int:
    found = store.stat()
    if (held := known.get((found.st_dev, found.st_ino))) is not None:
        return held
    handle = os.open(store, os.O_RDWR | os.O_CLOEXEC)
    found = os.fstat(handle)
    return known.setdefault((found.st_dev, found.st_ino), handle)


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
