"""More due than can be polled, in virtual time: the engine, and what a plan for the room that is left would keep."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from long import alone, home

import unstale
from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.config import EngineConfig
from unstale.engine.loop import Engine
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualClock, VirtualWorld, in_virtual_time

#: sources, every other one worth ten times as much; changes of each and polls of all per second, polls at a time
SOURCES, CHANGES, BUDGET, SLOTS = 40, 0.01, 1.0, 4
WEIGHT = np.where(np.arange(SOURCES) % 2 == 0, 10.0, 1.0)
#: seconds: until the rates are known, of too much, and after
CALM, RUSH, AFTER = 1200.0, 1500.0, 300.0
#: seconds in which what was under way when it began has ended, and polls in which more is seen than chance
SETTLED, ENOUGH = 300.0, 150.0


def overload(first: int, count: int, folder: Path) -> Counter[str]:
    """Half an hour and more in which 2, 5, 10, 100 times as much is due as can be polled, then room again.

    Two minutes after the last slow poll has ended it must be as before.
    """
    found: Counter[str] = Counter()
    for factor in (2, 5, 10, 100)[first : first + count]:
        found.update(overloaded(factor, folder))
    return found


def overloaded(factor: int, folder: Path, calm: float = CALM, rush: float = RUSH) -> Counter[str]:
    """One engine whose polls take so many times as long as it has time for."""
    takes = factor * SLOTS / BUDGET
    rush, settled = max(rush, ENOUGH * factor / BUDGET), max(SETTLED, 2.0 * takes)
    end = START + calm + rush + AFTER + takes
    world = VirtualWorld(np.full(SOURCES, CHANGES), end, seed=factor)
    queue: list[int] = []

    async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
        async def look(claim: Claim) -> Fetched:
            if calm <= clock.now() - START < calm + rush:
                await clock.sleep(takes)
            seen = world.look(claim.source - 1, clock.now())
            return Fetched(Answer.CHANGED, clock.now(), body=seen, status=200)

        engine = Engine(alone(lambda: store), EngineConfig(BUDGET, polls=SLOTS), clock, look, host_limits=home())

        async def watch() -> None:
            while True:
                await clock.sleep(10.0)
                queue.append(len(engine._polls.ahead) + len(engine._recorder.done) + engine.in_flight)

        watching = asyncio.create_task(watch())
        await engine.run(stop)
        watching.cancel()

    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = SqliteStore(Path(place) / "unstale.db")
        store.add([Listing(f"memory:{n}", kind="memory", weight=w) for n, w in enumerate(WEIGHT.tolist())], START)
        in_virtual_time(body, end)
        store.close()

    def rate(which: np.ndarray, begin: float, end: float) -> float:
        times = np.concatenate([np.array(world.polls[i]) for i in np.flatnonzero(which)]) - START
        return float(((times >= begin) & (times < end)).sum()) / (end - begin)

    over, heavy = calm + rush, WEIGHT > 1.0
    before = [rate(which, calm / 2, calm) for which in (heavy, ~heavy)]
    during = [rate(which, calm + settled, over) for which in (heavy, ~heavy)]
    fresh = world.measured(START + calm + settled, START + over, WEIGHT)[0].value
    planned = unstale.plan(rates=world.rates, budget=BUDGET / factor, weights=WEIGHT)
    best = float(planned.fleet_freshness)
    everybody = np.ones(SOURCES, np.bool_)
    recovered = next(
        (s for s in range(0, int(240 + takes), 10) if rate(everybody, over + s, over + s + 60) >= 0.9 * BUDGET), 1200
    )
    return Counter(
        {
            "rounds": 1,
            f"percent of valuable polls kept at {factor}x": round(100 * during[0] / before[0]),
            f"percent of others kept at {factor}x": round(100 * during[1] / before[1]),
            f"percent of the best freshness at {factor}x": round(100 * fresh / best),
            f"most waiting at {factor}x": max(queue),
            f"seconds to recover from {factor}x": recovered,
            "others ten points before the valuable": int(during[1] / before[1] > during[0] / before[0] + 0.1),
            "below 95 % of the best freshness": int(fresh < 0.95 * best),
            "not recovered in two minutes": int(recovered > 120 + takes),
            "unbounded": int(max(queue) > 2 * SLOTS + 2),
        }
    )
