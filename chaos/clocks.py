"""A wall clock that is set again and again under a running engine, by seconds and by years, forward and back."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from served import tested

from support.engine_victim import warm_up
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.mixture import parts
from unstale.core.learning.state import WIDTH
from unstale.engine.loop import Engine
from unstale.ports import Listing

YEARS = 10 * 365.25 * 86400.0
#: seconds between two jumps, and after the last one
EACH, LAST = 0.15, 6.0


def _unserved() -> float:
    """Seconds for which this process was ready to go on and had no processor; 0 where the system does not tell."""
    told = [one.read_text().split() for one in Path("/proc/self/task").glob("*/schedstat")]
    return sum(float(line[1]) for line in told) / 1e9


async def _run(machine: Any, wanted: list[float]) -> tuple[Engine, float]:
    """The engine at its end, and for how long it had no processor once the clock was right again."""
    running = asyncio.create_task(machine.run(wanted, EACH, last=LAST))
    await asyncio.wait({running}, timeout=EACH * len(wanted))
    begun = _unserved()
    await asyncio.wait({running}, timeout=LAST)
    unserved = _unserved() - begun
    return await running, unserved


def jumps(first: int, count: int, folder: Path) -> Counter[str]:
    """One engine for all of them: budget, lateness once settled, beliefs, and that nothing grew old.

    Who waits while others have the processor is not late by our fault: that much is allowed for, and told.
    """
    machines = tested("integration/test_engine_clock")
    # As an engine opens it.
    machines.SqliteStore = functools.partial(SqliteStore, steady=time.monotonic)
    rng, shift, wanted = np.random.default_rng([11, first]), 0.0, []
    for _ in range(count):
        # Mostly towards the true time, so that it is not only left but also found again.
        sign = -np.sign(shift) if shift and rng.random() < 0.7 else rng.choice([-1.0, 1.0])
        size = float(sign * np.exp(rng.uniform(0.0, np.log(YEARS))))
        if shift + size < -0.9 * time.time():
            size = -size
        wanted.append(-shift if rng.random() < 0.2 else size)
        shift += wanted[-1]
    wanted[-1] = -sum(wanted[:-1])
    warm_up()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "unstale.db"
        store = SqliteStore(path)
        listed = [Listing(f"memory:{i}", kind="memory", longest=machines.LONGEST) for i in range(machines.SOURCES)]
        store.add(listed, time.time())
        store.close()
        machine = machines.Machine(path)
        engine, unserved = asyncio.run(_run(machine, wanted))
        at = np.array([moment for moment, _ in machine.polls])
        # Once settled: after the longest interval has passed once.
        settled = at[-1] - LAST + 1.5 * machines.LONGEST
        late = 0
        for source in range(1, machines.SOURCES + 1):
            mine = [moment for moment, who in machine.polls if who == source and moment > settled]
            late += int(np.diff([settled, *mine, at[-1]]).max() > 2.0 * machines.LONGEST + machines.LATE + unserved)
        seconds = np.bincount((at - at[0]).astype(int))
        store = SqliteStore(path)
        recorded, db = store.counters()["recorded"], store._db
        assert db is not None
        found = Counter(
            {
                "rounds": count,
                "polls": len(at),
                "late sources": late,
                "tenths of seconds without a processor": round(10.0 * unserved),
                "seconds over twice the budget": int((seconds > 2.0 * machines.RATE + machines.BURST).sum()),
                "faults": machine.told["fault"] + machine.told["store_failed"] + engine.counters.failed,
                "negative durations": int((parts(store.fleet(WIDTH).beliefs)[1] < 0.0).sum()),
                "observations dropped": recorded - int(db.execute("SELECT count(*) FROM observations").get),
            }
        )
        store.close()
    return found
