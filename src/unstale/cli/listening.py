"""Where a server listens, and how it learns that it is to end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading

from unstale.errors import InputError, sentence


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


def ended(tied: bool = False) -> asyncio.Event:
    """An event that is set when the process is asked to end or, if it is tied to another, when that one has."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on Windows, where Ctrl-C raises KeyboardInterrupt instead.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)

    def wait_for_end() -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            while sys.stdin.buffer.read(4096):
                pass
            loop.call_soon_threadsafe(stop.set)

    if tied:
        threading.Thread(target=wait_for_end, daemon=True).start()
    return stop
