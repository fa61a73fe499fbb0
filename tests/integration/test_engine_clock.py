"""A wall clock that jumps under a running engine, and between two runs: no stampede, nobody starves, nothing breaks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from support.engine_victim import warm_up
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.mixture import parts
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing

HOUR, DAY, YEAR = 3600.0, 86400.0, 365.25 * 86400.0
SOURCES, RATE, BURST, LONGEST = 60, 100.0, 8.0, 1.2
#: seconds by which a busy machine may delay the start of a poll
LATE = 0.4


class Machine:
    """A machine whose wall clock can be set; what its engine polled, by the steady clock."""

    def __init__(self, path: Path) -> None:
        self.path, self.shift = path, 0.0
        self.polls: list[tuple[float, int]] = []
        self.told: Counter[str] = Counter()

    def wall(self) -> float:
        return time.time() + self.shift

    async def run(self, jumps: list[float], each: float, last: float | None = None) -> Engine:
        """An engine that runs for so many seconds, then for so many again after every jump."""
        clock, stop = SystemClock(self.wall), asyncio.Event()

        async def look(claim: Claim) -> Fetched:
            here = time.monotonic()
            self.polls.append((here, claim.source))
            return Fetched(Answer.CHANGED, clock.now(), body=b"%d" % (here + 0.37 * claim.source))

        config = EngineConfig(RATE, burst=BURST)
        executor = StoreExecutor(lambda: SqliteStore(self.path))
        engine = Engine(
            executor,
            config,
            clock,
            look,
            host_limits=HostLimits(lambda host: HOME),
            tell=lambda name, facts: self.told.update([name]),
        )
        running = asyncio.create_task(engine.run(stop))
        for jump in [*jumps, 0.0]:
            await asyncio.sleep(each)
            self.shift += jump
        await asyncio.sleep(0.0 if last is None else last)
        stop.set()
        await running
        executor.close()
        return engine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    warm_up()
    store = SqliteStore(tmp_path / "unstale.db")
    store.add([Listing(f"memory:{i}", kind="memory", longest=LONGEST) for i in range(SOURCES)], time.time())
    store.close()
    return Machine(tmp_path / "unstale.db")


def nothing_broke(machine: Machine, engine: Engine, settled_at: float) -> None:
    """No stretch of time spends more than its share and a burst; at the end nobody waits long."""
    at = np.array([t for t, _ in machine.polls])
    for k in range(1, len(at)):
        assert np.all(k + 1 <= RATE * (at[k:] - at[:-k] + LATE) + BURST)
    end = at[-1]
    for source in range(1, SOURCES + 1):
        mine = np.array([t for t, who in machine.polls if who == source and t > settled_at] + [end])
        assert np.diff(mine, prepend=settled_at).max() < 2.0 * LONGEST + LATE, source
    assert machine.told["fault"] == machine.told["store_failed"] == 0
    assert engine.counters.failed == 0
    store = SqliteStore(machine.path)
    fleet = store.fleet(WIDTH)
    assert np.all(np.isfinite(fleet.beliefs))
    # Every belief's exposure, in seconds, is positive: no time that ran backward was taught.
    assert np.all(parts(fleet.beliefs)[1] >= 0.0)
    tally = store.counters()
    assert tally["claimed"] == sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    assert tally["recorded"] == engine.counters.polls
    store.close()


def test_jumps_under_a_running_engine(machine: Machine) -> None:
    begun = time.monotonic()
    engine = asyncio.run(machine.run([HOUR, -HOUR, 10 * YEAR, -10 * YEAR], 2.5, last=5.0))
    # The last jump is after ten seconds.
    nothing_broke(machine, engine, begun + 10.5)
    assert abs(engine.clock.now() - time.time()) < 2.0
    store = SqliteStore(machine.path)
    assert np.all(np.abs(store.fleet(WIDTH).last - time.time()) < 10.0)
    store.close()


@pytest.mark.parametrize("jump", [-DAY, -10 * YEAR, 10 * YEAR])
def test_a_jump_between_two_runs(machine: Machine, jump: float) -> None:
    asyncio.run(machine.run([], 2.0))
    machine.polls.clear()
    machine.shift += jump
    before = SqliteStore(machine.path).counters()["recorded"]
    begun = time.monotonic()
    engine = asyncio.run(machine.run([], 4.0))
    engine.counters.polls += before
    nothing_broke(machine, engine, begun + 1.0)
    store = SqliteStore(machine.path)
    assert np.all(np.abs(store.fleet(WIDTH).last - machine.wall()) < 10.0)
    store.close()
