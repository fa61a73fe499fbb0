"""What comes up while a fleet is read may not be in what was read: then it is read once more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits
from unstale.engine.loading import LoadedFleet
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.ports import FleetColumns, Listing


class Reading(MemoryStore):
    """A store in whose readings of the fleet something happens, once."""

    meanwhile: Callable[[], None] | None = None

    def fleet(self, width: int) -> FleetColumns:
        found = super().fleet(width)
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return found


def _fleet() -> tuple[LoadedFleet, Reading, list[str]]:
    store, clock, told = Reading(), SystemClock(), list[str]()
    store.add([Listing("https://site.example/")], clock.now() - 10.0)
    executor = StoreExecutor(lambda: store, threads=False)
    return (
        LoadedFleet(executor, EngineConfig(1.0), clock, HostLimits(), lambda name, facts: told.append(name)),
        store,
        told,
    )


def test_what_comes_up_while_it_is_read_has_it_read_once_more() -> None:
    async def scene() -> None:
        fleet, store, told = _fleet()
        # A poll whose lease had run out is recorded: the store has not learned what we have.
        store.meanwhile = lambda: fleet.recorded([], 1, 0.0)
        await fleet.look_around()
        assert (told, fleet.outdated) == (["loaded"], True)
        await fleet.look_around()
        await fleet.look_around()
        assert (told, fleet.outdated) == (["loaded", "loaded"], False)

    asyncio.run(scene())


def test_a_fleet_that_could_not_be_read_is_read_again() -> None:
    async def scene() -> None:
        fleet, store, told = _fleet()

        def fails() -> None:
            raise StoreError("the disk is away")

        store.meanwhile = fails
        with pytest.raises(StoreError, match="the disk is away"):
            await fleet.look_around()
        await fleet.look_around()
        assert (told, fleet.outdated) == (["loaded"], False)

    asyncio.run(scene())
