"""Every question that an engine asks its store in its first seconds ends in each way once: what is left behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path

from simulated import KINDS, LONG, SOURCES, SetClock, Sources, judged, live
from virtual_loop import LoopClock, virtually

from unstale.adapters.memory_store import MemoryStore
from unstale.ports import Listing
from unstale.sim.virtual import START

#: virtual seconds of an engine of which every question fails once
FIRST = 30.0


def _fail_at(at: int, kind: str) -> tuple[Counter[str], int]:
    """An engine whose question with this number ends so, and those after it; how many questions the first asked."""
    store = MemoryStore()
    store.add([Listing(f"memory:{i}", kind="memory", longest=LONG.longest, host="h") for i in range(SOURCES)], START)

    async def body(virtual: LoopClock) -> tuple[Counter[str], int]:
        clock, sources, tasks = SetClock(virtual), Sources(virtual), len(asyncio.all_tasks())
        end = START + FIRST + LONG.calm
        asked = await live(sources, clock, store, lambda number: kind if number == at else "", START + FIRST)
        await live(sources, clock, store, lambda number: "", end)
        wrong = judged(sources, store, end, 2)
        wrong["tasks left behind"] += len(asyncio.all_tasks()) - tasks
        return wrong, asked

    handles = _handles()
    wrong, asked = virtually(body)
    wrong["handles left behind"] += max(_handles() - handles, 0)
    return wrong, asked


def _handles() -> int:
    """Open files, sockets and pipes of this process; what nobody holds any more is closed first."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def fail_points(first: int, count: int, folder: Path) -> Counter[str]:
    """Every question that an engine asks its store in its first seconds ends in each of the ways, one at a time."""
    points = _fail_at(-1, "")[1]
    rounds = [
        (1 + round_ % points, KINDS[round_ // points])
        for round_ in range(first, first + count)
        if round_ < points * len(KINDS)
    ]
    found = Counter[str]()
    for at, kind in rounds:
        found.update(_fail_at(at, kind)[0])
        found[kind] += 1
    found.update({"rounds": len(rounds), "fail-points": points if not first else 0})
    return found
