"""A relay on loopback that loses, delays, slices and cuts what goes through it, each connection in its own way.

Packets cannot be dropped without rights of the system; what a program notices of that is a connection that stands
still, comes late, comes in small pieces, is closed or reset in the middle, or is not to be had.
"""

from __future__ import annotations

import asyncio
import random
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
KINDS = ("let through", "delayed", "sliced", "cut", "reset", "lost", "partitioned")
#: seconds by which a delayed piece comes late, and for which a lost connection stands still
LATE, STILL = (0.05, 0.4), 3.0


class Relay:
    """Passes connections on, each with a fate of its own; from `calm` on all are let through.

    Those that are cut are so after `cut` bytes. With a `life` all of them are, after about so many: else those that
    are used again and again would soon be only such as nothing happens to.
    """

    def __init__(self, dial: Callable[[], Awaitable[Ends]], seed: int, *, cut: int = 300, life: int = 0) -> None:
        self._dial, self._rng, self._cut, self._life = dial, random.Random(seed), cut, life
        self.fates: Counter[str] = Counter()
        self.calm = False
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from its beginning to its end."""
        fate = "let through" if self.calm else self._rng.choice(KINDS)
        self.fates[fate] += 1
        ends = [writer]
        ways: list[asyncio.Task[None]] = []
        try:
            if fate == "partitioned":
                writer.transport.abort()
                return
            there = await self._dial()
            ends.append(there[1])
            ways = [
                asyncio.create_task(self._pass(reader, there[1], "let through")),
                asyncio.create_task(self._pass(there[0], writer, fate)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except (OSError, asyncio.CancelledError):
            # Either end has gone, or all is over: that is what a relay is there for.
            return
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for one in ends:
                one.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fate: str) -> None:
        sent, most = 0, self._life * self._rng.uniform(0.1, 2.0)
        broken = fate in ("cut", "reset", "lost") and self._cut * (1.0 if not self._life else self._rng.uniform(0, 2))
        while data := await reader.read(65536):
            if fate == "delayed" and not self.calm:
                await asyncio.sleep(self._rng.uniform(*LATE))
            if broken is not False and (sent + len(data) > broken or (fate == "lost" and not self._life)):
                writer.write(data[: self._rng.randrange(len(data))])
                await writer.drain()
                if fate == "lost":
                    await asyncio.sleep(STILL)
                elif fate == "reset":
                    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                return
            piece = 37 if fate == "sliced" and not self.calm else len(data)
            for at in range(0, len(data), piece):
                writer.write(data[at : at + piece])
                await writer.drain()
            sent += len(data)
            if self._life and sent > most and not self.calm:
                return


@contextmanager
def relayed(relay: Relay, path: Path | None = None) -> Iterator[Relay]:
    """A relay in a thread of its own, at a port of 127.0.0.3 or at a path."""
    loop, ready, ending = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        if path is not None:
            server = await asyncio.start_unix_server(relay.handle, path)
        else:
            server = await asyncio.start_server(relay.handle, "127.0.0.3", 0)
            relay.port = server.sockets[0].getsockname()[1]
        ready.set()
        await ending.wait()
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield relay
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()
