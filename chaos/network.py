"""A network that loses, delays, slices and cuts what goes between engine and sources, workers and their database, and
between replicas: accounts and copies stay exact.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from urllib.parse import quote

from relay import KINDS, Relay, relayed

from support.engine_victim import engines, settings_file
from support.postgres import postgres
from support.replicas import running
from support.worker_crew import LEASE, WORKERS, accounted, crew_of, fleet, spaced
from support.worker_crew import SOURCES as POLLED
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

SOURCES, LONGEST, AGAIN = 200, 1.0, 60.0
#: sources of two replicas, of which one only knows what the other says; how often it asks a second; and ways to it,
#: as if they were several: one that failed is left alone for a while
SHARED, ASKS, WAYS = 10, 10.0, 12


def network(first: int, count: int, folder: Path) -> Counter[str]:
    """So many connections with a fate, then calm: nothing is miscounted, nothing that was cut became a copy."""
    site = Site.of(SOURCES, change_rate=1.0)
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        Origin(site, host="127.0.0.2").in_thread() as origin,
        relayed(Relay(partial(asyncio.open_connection, "127.0.0.2", _port(origin)), 1)) as relay,
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
        found.update(_fates(relay))
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        found["miscounted"] = abs(tally.get("claimed", 0) - ended)
        found["damaged"] = len(store.verify())
        found["wrong copies"] = sum(_wrong(store, site, source, n, origin.now()) for n, source in enumerate(ids))
        found["failed polls"] = tally.get("failed", 0)
        store.close()
    return found


def database(first: int, count: int, folder: Path) -> Counter[str]:
    """Workers whose connections to PostgreSQL have a fate, then calm: every poll is accounted for, nobody is left."""
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(dir=folder) as name,
        tempfile.TemporaryDirectory(prefix="net", dir="/tmp") as net,
        postgres() as server,
        closing(PostgresCrew(server.address(), patience=60.0)) as store,
    ):
        hosts, there = fleet(store), f"{server.folder}/.s.PGSQL.5432"
        relay = Relay(partial(asyncio.open_unix_connection, there), first, cut=20_000, life=60_000)
        address = f"postgresql://postgres@/postgres?host={quote(net)}"
        with (
            relayed(relay, Path(net) / ".s.PGSQL.5432"),
            crew_of(server, Path(name), address=address) as crew,
        ):
            for _ in range(WORKERS):
                crew.beget()
            _until(lambda: sum(relay.fates.values()) >= count, max(2.0 * AGAIN, float(count)))
            before, begun, relay.calm = len(crew.lines()), time.monotonic(), True
            _until(lambda: len({line.source for line in crew.lines()[before:]}) == POLLED, 2.0 * AGAIN)
            found["not polled again"] = POLLED - len({line.source for line in crew.lines()[before:]})
            found["seconds until all were polled again, together"] = round(time.monotonic() - begun)
        time.sleep(LEASE)
        found["rounds"] = sum(relay.fates.values())
        found.update(_fates(relay))
        found["polls"] = len(crew.lines())
        found["miscounted"] = _broken(lambda: accounted(server, crew.lines))
        found["too close at a host"] = _broken(lambda: spaced(crew.lines(), hosts))
        found["damaged"] = len(store.verify())
    return found


def replicas(first: int, count: int, folder: Path) -> Counter[str]:
    """A replica that only knows what another tells over such a network, then calm: it has no copy that nobody made."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        return asyncio.run(_two_replicas(first, count, Path(place)))


async def _two_replicas(first: int, count: int, place: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    async with Origin(Site.of(SHARED, 0.5, seed=1)) as origin:
        listings = [Listing(origin.address + path) for path in origin.site.paths]
        async with running(place, "rich", listings, budget=20.0) as rich:
            dial = partial(asyncio.open_connection, "127.0.0.1", int(rich.address.rpartition(":")[2]))
            with ExitStack() as stack:
                relays = [
                    stack.enter_context(relayed(Relay(dial, first + n, cut=2_000, life=6_000))) for n in range(WAYS)
                ]
                peers = tuple(f"http://127.0.0.3:{relay.port}" for relay in relays)
                async with running(place, "poor", listings, budget=0.001, peers=peers, rate=ASKS, share=2**20) as poor:
                    await _eventually(lambda: _fates(*relays).total() >= count, max(2.0 * AGAIN, float(count)))
                    begun = time.time()
                    for relay in relays:
                        relay.calm = True

                    def behind() -> int:
                        return sum(one.last <= begun for one in poor.held().values())

                    await _eventually(lambda: not behind(), 2.0 * AGAIN)
                    found["not as fresh again"] = behind()
                    found["seconds until all were as fresh again, together"] = round(time.time() - begun)
                    found["rounds"] = _fates(*relays).total()
                    found.update(_fates(*relays))
                    views = poor.application.engine.peers()
                    found["copies taken over"] = sum(int(one["taken"]) for one in views)
                    found["honest ones banned"] = sum(int(one["bans"]) for one in views)
                    found["wrong copies"] = sum(
                        _wrong(poor.shelf, origin.site, n + 1, n, origin.now()) for n in range(SHARED)
                    )
                    found["damaged"] = len(poor.shelf.verify())
    return found


async def _eventually(condition: Callable[[], bool], seconds: float) -> None:
    begun = time.monotonic()
    while not condition() and time.monotonic() - begun < seconds:
        await asyncio.sleep(0.05)


def _broken(check: Callable[[], object]) -> int:
    try:
        check()
    except AssertionError as error:
        print(f"does not hold: {error}", flush=True)
        return 1
    return 0


def _fates(*relays: Relay) -> Counter[str]:
    return Counter({f"{kind} connections": sum(relay.fates[kind] for relay in relays) for kind in KINDS})


def _port(origin: Origin) -> int:
    return int(origin.address.rpartition(":")[2])


def _until(condition: Callable[[], bool], seconds: float = AGAIN) -> None:
    begun = time.monotonic()
    while not condition() and time.monotonic() - begun < seconds:
        time.sleep(0.05)


def _wrong(store: SqliteReplica, site: Site, source: int, n: int, now: float) -> int:
    """Versions of a source that the origin never said: a body is written by its version's number alone."""
    wrong = 0
    found = (site.find(f"/s/{n}".encode(), at) for at in [0.0, *site.changing.times(n, now), now])
    said = {one.body() for one in found if one is not None}
    for version in store.versions(source):
        copy = store.copy(source, version)
        wrong += copy is not None and copy.body.data not in said
    return wrong
