"""Sources of known rates that lie about their changes, answer noise or fail: what is believed of them all the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
from long import alone, home

from unstale.adapters.memory_store import MemoryStore
from unstale.core.learning.outlook import BelievedColumns, outlook
from unstale.core.learning.state import WIDTH
from unstale.engine.config import EngineConfig
from unstale.engine.loop import Engine
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualClock, VirtualWorld, in_virtual_time

#: how sources lie, one after the other
WAYS = ("honest", "changed now", "changed long ago", "changes in the future", "other headers", "often fails")
HOUR = 3600.0
#: changes of a source until the end, and polls of it for each of them
CHANGES, OFTEN = 100, 3.0


def noisy(first: int, count: int, folder: Path) -> Counter[str]:
    """So many sources, which change every hour to every half day: the rates believed at the end, and the true ones."""
    rng = np.random.default_rng([25, first])
    rates = np.exp(rng.uniform(np.log(1 / (12 * HOUR)), np.log(1 / HOUR), count))
    span = float(CHANGES / np.median(rates))
    world = VirtualWorld(rates, START + span, seed=first)
    store, polls = MemoryStore(), Counter[int]()
    tried: list[list[float]] = [[] for _ in rates]
    store.add([Listing(f"memory:{i}", kind="memory") for i in range(count)], START)

    async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
        async def look(claim: Claim) -> Fetched:
            now, way = clock.now(), WAYS[(claim.source - 1) % len(WAYS)]
            polls[claim.source] += 1
            tried[claim.source - 1].append(now)
            if way == "often fails" and rng.random() < 0.2:
                return Fetched(Answer.FAILED, now, reason="it does not answer", status=500)
            said = {"changed now": now, "changed long ago": START - 1e6, "changes in the future": now + 1e6}.get(way)
            told = () if said is None else (said,)
            tag = f'"{rng.integers(1e9)}"' if way == "other headers" else None
            return Fetched(
                Answer.CHANGED, now, world.look(claim.source - 1, now), etag=tag, changed_at=told, status=200
            )

        await Engine(
            alone(lambda: store), EngineConfig(OFTEN * float(rates.sum())), clock, look, host_limits=home()
        ).run(stop)

    in_virtual_time(body, START + span)
    fleet = store.fleet(WIDTH)
    held = BelievedColumns(fleet.beliefs, fleet.last, fleet.found, fleet.settings)
    off = outlook(held, START + span).change_rate / rates - 1.0
    found = Counter({"rounds": count, "polls": polls.total()})
    caught, asked, due = Counter[str](), Counter[str](), Counter[str]()
    for i in range(count):
        usual, changes, way = float(np.median(np.diff(world.polls[i]))), world.changes[i], WAYS[i % len(WAYS)]
        changes = changes[changes < START + span - 2.0 * usual]
        due[way] += len(changes)
        for which, times in ((caught, world.polls[i]), (asked, tried[i])):
            after = np.append(times, np.inf)[np.searchsorted(times, changes)]
            which[way] += int((after - changes <= 2.0 * usual).sum())
    found["changes"] = due.total()
    found["percent of changes caught in two intervals"] = int(100.0 * caught.total() / max(due.total(), 1))
    answering = tuple(way for way in WAYS if way != "often fails")
    for kind, ways in {"all who answer": answering, **{way: (way,) for way in WAYS}}.items():
        told = {"caught": caught, "asked after": asked} if kind == "often fails" else {"caught": caught}
        for word, which in told.items():
            share = sum(which[way] for way in ways) / max(sum(due[way] for way in ways), 1)
            found[f"tenths of a percent {word} in two intervals: {kind}"] = int(1000.0 * share)
    for k, way in enumerate(WAYS):
        mine = float(np.mean(off[k :: len(WAYS)]))
        found[f"percent that rates are off: {way}"] = round(100.0 * mine)
        found["kinds over 20 % off"] += abs(mine) > 0.2
    return found
