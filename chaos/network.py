"""A network that loses, delays, slices and cuts what goes between engine and sources: accounts and copies stay exact.

Packets cannot be dropped without rights of the system; what a poll notices of that is a connection that stands still,
comes late, comes in small pieces, is closed or reset in the middle. A relay on loopback does all of these.
"""

from __future__ import annotations

import asyncio
import random
import struct
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

from support.engine_victim import engines, settings_file
from unstale.adapters.sqlite_store import SqliteStore
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

SOURCES, LONGEST, AGAIN = 200, 1.0, 60.0
KINDS = ("let through", "delayed", "sliced", "cut", "reset", "lost", "partitioned")


class Relay:
    """Passes connections on to an origin, each with a fate of its own; from `calm` on all are let through."""

    def __init__(self, port: int, seed: int) -> None:
        self._port, self._rng = port, random.Random(seed)
        self.fates: Counter[str] = Counter()
        self.calm = False
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from its beginning to its end."""
        fate = "let through" if self.calm else self._rng.choice(KINDS)
        self.fates[fate] += 1
        there = None
        try:
            if fate == "partitioned":
                writer.transport.abort()
                return
            there = await asyncio.open_connection("127.0.0.2", self._port)
            up = asyncio.create_task(self._pass(reader, there[1], "let through"))
            await self._pass(there[0], writer, fate)
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            # Either end has gone, or all is over: that is what a relay is there for.
            return
        finally:
            for one in (writer, there[1] if there else writer):
                one.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fate: str) -> None:
        sent = 0
        while data := await reader.read(65536):
            if fate == "delayed":
                await asyncio.sleep(self._rng.uniform(0.05, 0.4))
            if fate == "lost" or (fate in ("cut", "reset") and sent + len(data) > 300):
                writer.write(data[: self._rng.randrange(len(data))])
                await writer.drain()
                if fate == "lost":
                    await asyncio.sleep(3.0)
                elif fate == "reset":
                    writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                return
            for at in range(0, len(data), 37 if fate == "sliced" else len(data)):
                writer.write(data[at : at + 37] if fate == "sliced" else data)
                await writer.drain()
            sent += len(data)


@contextmanager
def relayed(port: int, seed: int) -> Iterator[Relay]:
    """A relay in a thread of its own."""
    relay, loop, ready, ending = Relay(port, seed), asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
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


def network(first: int, count: int, folder: Path) -> Counter[str]:
    """So many connections with a fate, then calm: nothing is miscounted, nothing that was cut became a copy."""
    site = Site.of(SOURCES, change_rate=1.0)
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        Origin(site, host="127.0.0.2").in_thread() as origin,
        relayed(int(origin.address.rpartition(":")[2]), 1) as relay,
        engines(Path(place)) as parent,
    ):
        config = settings_file(Path(place), 'budget = "60/s"', ("127.0.0.2/32", "127.0.0.3/32"), 'timeout = "1s"')
        store = SqliteStore(Path(place) / "unstale.db", versions=50)
        here = f"http://127.0.0.3:{relay.port}"
        ids = store.add(
            [Listing(here + path, host=f"h{n}", longest=LONGEST) for n, path in enumerate(site.paths)], time.time()
        )
        life = parent.begin(config)
        _until(lambda: sum(relay.fates.values()) >= count, max(AGAIN, float(count)))
        begun, relay.calm = time.time(), True
        _until(
            lambda: all(store.observations(one, 1)[0].polled_at > begun for one in ids if store.observations(one, 1))
        )
        found["seconds until all were polled again"] = round(time.time() - begun)
        life.end()
        tally = store.counters()
        found["rounds"] = sum(relay.fates.values())
        found.update({f"{name} connections": number for name, number in relay.fates.items()})
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        found["miscounted"] = abs(tally.get("claimed", 0) - ended)
        found["damaged"] = len(store.verify())
        found["wrong copies"] = sum(_wrong(store, site, source, n, origin.now()) for n, source in enumerate(ids))
        found["failed polls"] = tally.get("failed", 0)
        store.close()
    return found


def _until(condition: Callable[[], bool], seconds: float = AGAIN) -> None:
    begun = time.monotonic()
    while not condition() and time.monotonic() - begun < seconds:
        time.sleep(0.05)


def _wrong(store: SqliteStore, site: Site, source: int, n: int, now: float) -> int:
    """Versions of a source that the origin never said: a body is written by its version's number alone."""
    wrong = 0
    found = (site.find(f"/s/{n}".encode(), at) for at in [0.0, *site.changing.times(n, now), now])
    said = {one.body() for one in found if one is not None}
    for version in store.versions(source):
        copy = store.copy(source, version)
        wrong += copy is not None and copy.body.data not in said
    return wrong
