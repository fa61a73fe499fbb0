"""Until there is what decides by signals, collections are sources like any other; then the fleet is read anew."""

from __future__ import annotations

import asyncio

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits
from unstale.engine.loading import LoadedFleet
from unstale.engine.store_executor import StoreExecutor
from unstale.listings.records import CollectionMember
from unstale.ports import Listing
from unstale.service.hints import push

PAGES = 4


class Held:
    """A fleet with a sitemap of all its pages, which listens once it is told to."""

    def __init__(self) -> None:
        self.listens, self.loaded, self.asked = False, 0, 0
        self.store, clock = MemoryStore(), SystemClock()
        self.now = clock.now()
        self.store.add([Listing(f"https://site.example/{i}") for i in range(PAGES)], self.now - 10.0)
        self.store.add([Listing("https://site.example/map.xml", options={"collection": "sitemap"})], self.now - 10.0)
        executor = StoreExecutor(lambda: self.store, threads=False)
        self.fleet = LoadedFleet(executor, EngineConfig(1.0), clock, HostLimits(), self._tell)
        self.fleet.listens = self._listens

    def _tell(self, name: str, facts: object) -> None:
        self.loaded += name == "loaded"

    def _listens(self) -> bool:
        self.asked += 1
        return self.listens

    def tell_of_pages(self) -> None:
        page = "https://site.example/{}"
        self.store.enlist([CollectionMember(PAGES + 1, i + 1, page.format(i), self.now - 99.0) for i in range(PAGES)])


def test_collections_are_listened_to_as_soon_as_that_is_possible() -> None:
    async def scene() -> None:
        held = Held()
        held.tell_of_pages()
        await held.fleet.look_around()
        assert held.fleet.scheduler.collected is None
        await held.fleet.look_around()
        assert held.loaded == 1
        held.listens = True
        await held.fleet.look_around()
        assert held.loaded == 2
        collected = held.fleet.scheduler.collected
        assert collected is not None
        assert collected.number.tolist() == [-1] * PAGES + [0]
        await held.fleet.look_around()
        assert held.loaded == 2

    asyncio.run(scene())


def test_nobody_asks_whether_it_is_possible_where_there_are_no_collections() -> None:
    async def scene() -> None:
        held = Held()
        await held.fleet.look_around()
        await held.fleet.look_around()
        assert held.asked == 0

    asyncio.run(scene())


def test_hints_are_followed_meanwhile_and_heard_as_signals_later() -> None:
    async def scene() -> None:
        held = Held()
        await held.fleet.look_around()
        fleet, scheduler = held.fleet, held.fleet.scheduler
        scheduler.answered[:] = held.now - 5.0
        later = held.now + 1000.0
        scheduler.due_at[:] = later
        held.store.set_due([1, 2], [later, later])
        push(held.store, [1], "hint", held.now)
        await fleet.catch_up(held.now)
        assert scheduler.due_at[0] == held.now
        assert scheduler.due_at[1] == later
        assert scheduler.collected is None
        held.listens = True
        await fleet.look_around()
        assert fleet.scheduler.collected is not None
        assert held.loaded == 2

    asyncio.run(scene())
