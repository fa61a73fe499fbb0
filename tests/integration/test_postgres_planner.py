"""The elected planner in this process: what ends one plan of it does not end planning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from support.patience import SOON
from support.postgres import Postgres, postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.ports import Lesson, Listing


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


class Broken(PostgresCrew):
    """A store of which one answer is what nobody expected."""

    broken = False

    def lessons(self) -> list[Lesson]:
        if not Broken.broken:
            Broken.broken = True
            raise ZeroDivisionError("once")
        return super().lessons()


async def until(what: Any) -> None:
    async with asyncio.timeout(SOON):
        while not what():
            await asyncio.sleep(0.02)


def test_neither_a_fault_nor_a_session_lost_and_won_again_ends_planning(server: Postgres) -> None:
    told: list[str] = []

    def tell(name: str, facts: Mapping[str, Any]) -> None:
        told.append(name)

    with closing(PostgresCrew(server.address())) as looking:
        looking.add([Listing(f"s{n}") for n in range(5)], time.time())

        async def scene() -> None:
            config = EngineConfig(1.0, owner="me", lease=2.0, polls=1, grace=1.0)
            planner = Planner(
                StoreExecutor(lambda: Broken(server.address())),
                config,
                SystemClock(),
                HostLimits(lambda host: Rules(0.0, 1000)),
                tell,
            )
            stop = asyncio.Event()
            planning = asyncio.create_task(planner.run(stop))
            try:
                await until(lambda: looking.setting("plan"))
                assert told[:2] == ["elected", "plan_failed"]
                elections, plans = told.count("elected"), planner.plans
                # Nobody else was elected meanwhile, but somebody could have been: it plans at once.
                server.run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
                await until(lambda: told.count("elected") > elections)
                await until(lambda: planner.plans > plans)
            finally:
                stop.set()
                await planning
                planner.close()

        asyncio.run(scene())
