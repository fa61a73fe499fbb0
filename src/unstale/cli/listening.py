"""Where a server listens, and how it learns that it is to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from unstale.cli.stopping import Stopping
from unstale.errors import InputError, sentence

#: seconds that a server has to end, beside two more
GRACE = 5.0


def address(text: str) -> tuple[str, int]:
    """Host and port from `127.0.0.1:8600` or `[::1]:8600`.

    >>> address("[::1]:0")
    ('::1', 0)
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise InputError(
            sentence("listen", repr(text[:60]), "is not a host and a port", "write it like 127.0.0.1:8600")
        )
    return host, int(port)


def shown_host(host: str) -> str:
    """A host as it stands in an address.

    >>> shown_host("::1")
    '[::1]'
    """
    return f"[{host}]" if ":" in host else host


@contextlib.contextmanager
def until_ended(stop: asyncio.Event | None, *, tied: bool = False) -> Iterator[asyncio.Event]:
    """`stop`; or an event that is set when the process is asked to end or, if it is tied to another, when that one has.

    The process then ends within `GRACE` and two seconds, whatever hangs.
    """
    if stop is not None:
        yield stop
        return
    stop = asyncio.Event()
    stopping = Stopping(stop, GRACE)

    def wait_for_end() -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            # Past Python's own buffer: whoever waits in that holds a lock at which the interpreter dies when it ends.
            while os.read(sys.stdin.fileno(), 4096):
                pass
            stopping.ask()

    if tied:
        threading.Thread(target=wait_for_end, daemon=True).start()
    try:
        yield stop
    finally:
        stopping.now()
        stopping.saved()
        stopping.over()
