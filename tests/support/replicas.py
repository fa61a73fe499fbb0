"""Real replicas on loopback within a test: an engine, a store, and the server that others ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application
from unstale.cli.settings import Http, Replicas, Settings
from unstale.ports import Listing
from unstale.server.app import replica
from unstale.server.asking import StoreAsker
from unstale.server.digests import digest_route
from unstale.server.serving import serve

NEAR = replace(Http(), allow_networks=("127.0.0.0/8",), robots=False)


@dataclass
class Running:
    """One replica that runs: where it is, what reads its store, its engine, and the events it told."""

    address: str
    shelf: SqliteReplica
    application: Application
    events: list[tuple[str, dict[str, Any]]]

    async def until(self, condition: Any, seconds: float = 30.0) -> None:
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not in {seconds} s; {self.events[-5:]}"
            await asyncio.sleep(0.02)

    def held(self) -> dict[str, tuple[int, float, tuple[bytes, ...]]]:
        """What it holds: id, as of when, digests."""
        return self.shelf.held([one.address for one in self.shelf.listings(self.shelf.search(limit=10_000))])


@asynccontextmanager
async def running(
    folder: Path, name: str, sources: Sequence[Listing] = (), *, budget: float = 50.0, ask: bool = False, **others: Any
) -> AsyncIterator[Running]:
    """A replica with these sources, that follows or asks `others`, until the block ends; with `ask` it polls for
    those who ask."""
    path = folder / f"{name}.db"
    own = replace(Replicas(), name=name, **others)
    settings = replace(Settings(), store=str(path), budget=budget, http=NEAR, replicas=own)
    store = SqliteStore(path)
    store.add(sources, time.time())
    store.close()
    events: list[tuple[str, dict[str, Any]]] = []
    application = Application(settings, lambda event, facts: events.append((event, dict(facts))))
    shelf, stop = SqliteReplica(path), asyncio.Event()
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    pusher = SqliteStore(path)
    asker = StoreAsker(pusher, shelf, time.time) if ask else None
    app = replica(shelf, name=name, asker=asker, patience=3.0, more=[digest_route(shelf, time.time, name)])
    server = asyncio.create_task(serve(app, "127.0.0.1", 0, token=None, stop=stop, ready=ready.set_result))
    engine = asyncio.create_task(application.run(stop))
    try:
        yield Running(f"http://127.0.0.1:{await asyncio.wait_for(ready, 30.0)}", shelf, application, events)
    finally:
        stop.set()
        await asyncio.gather(server, engine)
        shelf.close()
        pusher.close()
