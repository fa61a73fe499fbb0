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
    store.add([Listing(f"memory:{i}", kind="memory") for i in range(count)], START)

    async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
        async def look(claim: Claim) -> Fetched:
            now, way = clock.now(), WAYS[(claim.source - 1) % len(WAYS)]
            polls[claim.source] += 1
            if way == "often fails" and rng.random() < 0.2:
                return Fetched(Answer.FAILED, now, reason="it does not answer", status=500)
            said = {"changed now": now, "changed long ago": START - 1e6, "changes in the future": now + 1e6}.get(way)
            told = () if said is None else (said,)
            tag = f'"{rng.integers(1e9)}"' if way == "other headers" else None
            return Fetched(
                Answer.CHANGED, now, world.look(claim.source - 1, now), etag=tag, changed_at=told, status=200
            )

        await Engine(alone(store), EngineConfig(OFTEN * float(rates.sum())), clock, look, host_limits=home()).run(stop)

    in_virtual_time(body, START + span)
    fleet = store.fleet(WIDTH)
    held = BelievedColumns(fleet.beliefs, fleet.last, fleet.found, fleet.settings)
    off = outlook(held, START + span).change_rate / rates - 1.0
    found = Counter({"rounds": count, "polls": polls.total()})
    caught, due = Counter[str](), Counter[str]()
    for i in range(count):
        kind = "of who often fails" if WAYS[i % len(WAYS)] == "often fails" else "of who answers"
        asked = np.array(world.polls[i])
        usual, changes = float(np.median(np.diff(asked))), world.changes[i]
        changes = changes[changes < START + span - 2.0 * usual]
        after = asked[np.minimum(np.searchsorted(asked, changes), len(asked) - 1)]
        caught[kind] += int((after - changes <= 2.0 * usual).sum())
        due[kind] += len(changes)
    found["changes"] = due.total()
    found["percent of changes caught in two intervals"] = int(100.0 * caught.total() / max(due.total(), 1))
    for kind, number in due.items():
        found[f"percent of changes caught in two intervals {kind}"] = int(100.0 * caught[kind] / max(number, 1))
    for k, way in enumerate(WAYS):
        mine = float(np.mean(off[k :: len(WAYS)]))
        found[f"percent that rates are off: {way}"] = round(100.0 * mine)
        found["kinds over 20 % off"] += abs(mine) > 0.2
    return found
