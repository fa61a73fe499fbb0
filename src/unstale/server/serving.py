"""Running the replica's application on granian, inside the loop of whoever calls.

Why granian: on loopback it answers twice as much as uvicorn, and it closes connections that do not finish their header
in time, which uvicorn never does: a thousand of them would keep everybody else out.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unstale.errors import InputError, MissingExtraError, sentence
from unstale.server.auth import check_binding

#: milliseconds in which a request's header must have come; a silent connection ends then too
HEADER_TIME = 10_000
#: connections that are served at a time, and those that may wait to be accepted
CONNECTIONS, BACKLOG = 8192, 2048
#: threads that read the files of copies
READING = 4
#: bytes of a request's header
HEADER_SIZE = 64 * 1024
#: new records after which the collector looks for rings among them, and how often it goes deeper
COLLECTED = (20_000, 20, 20)
#: hundredths of a second for which granian's threads are waited for when it has stopped
CLEARING = 200


async def serve(
    app: Any,
    host: str,
    port: int,
    *,
    token: str | None,
    stop: asyncio.Event,
    ready: Callable[[int], None] | None = None,
    ending: Callable[[], None] = lambda: None,
) -> None:
    """Serve until `stop` is set. Port 0 takes a free one; `ready` is told which, `ending` ends answers that last.

    `app` speaks ASGI, or RSGI if it says so by having `__rsgi__`.
    """
    try:
        from granian.constants import HTTPModes, Interfaces
        from granian.http import HTTP1Settings
        from granian.server.embed import Server
    except ImportError:
        raise MissingExtraError("granian", "server") from None
    host, port = place(host, port)
    check_binding(host, token)
    _raise_file_limit()
    before = _native_threads()
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.RSGI if hasattr(app, "__rsgi__") else Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=CONNECTIONS,
        runtime_blocking_threads=READING,
        log_enabled=False,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_TIME, max_buffer_size=HEADER_SIZE),
    )
    running = asyncio.ensure_future(server.serve())
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await _listening(host, port, running)
        if ready is not None:
            ready(port)
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        ending()
        server.stop()  # type: ignore[no-untyped-call]
        await running
        await _gone(before)


def new_loop() -> asyncio.AbstractEventLoop:
    """The loop that serves most: uvloop's, where there is one, which takes half as long to be woken by granian."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def settled() -> None:
    """What is there when serving begins stays to the end: the collector need not go through it again and again.

    Requests make many small records that point at nothing, so that it looks seldom, too.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED)


def place(host: str, port: int) -> tuple[str, int]:
    """The numeric address and the port, if nobody listens there: granian shares ports, two servers would take turns."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
            probe.listen()
            address, number = probe.getsockname()[:2]
            return str(address), int(number)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(
            sentence(
                "listen",
                f"{host}:{port}",
                f"cannot be used ({why.lower()})",
                "choose another place, or end what listens there",
            )
        ) from None


async def _listening(host: str, port: int, running: asyncio.Future[None]) -> None:
    for _ in range(500):
        if running.done():
            return
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return


def _native_threads() -> set[str]:
    """The threads of this process that Python does not know, where the system tells."""
    known = {str(thread.native_id) for thread in threading.enumerate()}
    try:
        return {task.name for task in Path("/proc/self/task").iterdir()} - known
    except OSError:
        return set()


async def _gone(before: set[str]) -> None:
    """Wait until granian's own threads have ended.

    It says that it has stopped while they still clear up, for which they need the interpreter: one that comes when
    the interpreter is ending aborts the whole process.
    """
    for _ in range(CLEARING):
        if _native_threads() <= before:
            return
        await asyncio.sleep(0.01)


def _raise_file_limit() -> None:
    """As many open files as the system allows: each connection is one."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
