"""The real engine in virtual time among faults that a seed decides: a fault that breaks something comes again.

Rules of this file:
1. Everything goes by virtual time and one seed: kills, failing stores that may have written all the same, networks that
   are cut, polls that hang or break, sources that lie about time, clocks that are set.
2. A kill leaves the store as it is and everything else behind: whoever was killed never asks nor answers again.
3. What must hold is asked of the store alone, against what the sources say they were asked and what they answered.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import numpy as np
from virtual_loop import LoopClock, virtually

from unstale.adapters.memory_store import MemoryStore
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START

T = TypeVar("T")

SOURCES, LONGEST, RATE, BURST, LEASE = 6, 60.0, 0.5, 3.0, 40.0
#: virtual seconds with faults, and without them at the end
TROUBLE, CALM = 900.0, 240.0
#: virtual seconds of an engine of which every question fails once
FIRST = 30.0
#: what `judged` counts, and must not be
_WRONG = (
    "miscounted",
    "applied twice",
    "copies nobody sent",
    "old copies",
    "late sources",
    "over the budget",
    "broken beliefs",
)
#: what can come of a question to the store
KINDS = ("refused", "refused after it was done", "ended", "killed before", "killed after")


class SetClock(SystemClock):
    """A wall clock that can be set, beside the virtual one."""

    def __init__(self, virtual: LoopClock) -> None:
        self.virtual, self.shift = virtual, 0.0
        super().__init__(lambda: virtual.now() + self.shift, virtual.now)


@dataclass
class Sources:
    """What sources were asked and have answered, by the claim's token; `strange` says what else may come of a poll."""

    virtual: LoopClock
    strange: Callable[[Claim], str] = lambda claim: ""
    asked: list[tuple[float, int]] = field(default_factory=list)
    answered: dict[int, bytes] = field(default_factory=dict)
    alive: int = 0

    async def look(self, life: int, clock: SetClock, claim: Claim) -> Fetched:
        """One poll by the engine of a life."""
        self.asked.append((self.virtual.now(), claim.source))
        begun, strange = clock.now(), self.strange(claim)
        await clock.sleep(0.2)
        if strange == "hangs":
            await clock.sleep(2.0 * LEASE)
        if life != self.alive:
            await asyncio.Future()
        if strange == "breaks":
            raise RuntimeError("injected")
        if strange in ("cut", "refuses"):
            wait = 5.0 if strange == "refuses" else None
            return Fetched(Answer.FAILED, begun, reason="injected", status=503 if wait else 0, retry_after=wait)
        body = self.answered[claim.token] = b"%d at %d" % (claim.source, len(self.asked))
        told = (begun + 1e9, -5.0) if strange == "lies" else ()
        return Fetched(Answer.CHANGED, begun, body=body, changed_at=told, last_modified="never" if told else None)


class Faulty(StoreExecutor[MemoryStore]):
    """Lets questions to the store fail; `happens` says how the one with this number ends, "" for well."""

    def __init__(self, store: MemoryStore, happens: Callable[[int], str], ends: Callable[[], None]) -> None:
        super().__init__(lambda: store, threads=False)
        self._happens, self._ends = happens, ends
        self.questions, self.killed = 0, asyncio.Event()

    async def do(self, work: Callable[[MemoryStore], T], *, long: bool = False) -> T:
        """The answer of the store, or what happens instead."""
        self.questions += 1
        kind = self._happens(self.questions)
        if kind == "killed before":
            self.killed.set()
        if self.killed.is_set():
            return await asyncio.Future()
        if kind == "refused":
            raise StoreError("injected")
        found = await super().do(work, long=long)
        if kind == "killed after":
            self.killed.set()
            return await asyncio.Future()
        if kind == "ended":
            self._ends()
        if kind == "refused after it was done":
            raise StoreError("injected")
        return found

    async def reopen(self) -> None:
        """It is open."""


async def live(sources: Sources, clock: SetClock, store: MemoryStore, happens: Callable[[int], str], end: float) -> int:
    """One engine until a moment, its end or its kill; how many questions it asked the store."""
    sources.alive += 1
    life, stop, before = sources.alive, asyncio.Event(), asyncio.all_tasks()
    executor = Faulty(store, happens, lambda: running.cancel() and None)

    async def look(claim: Claim) -> Fetched:
        return await sources.look(life, clock, claim)

    config = EngineConfig(RATE, burst=BURST, lease=LEASE, grace=0.0)
    limits = HostLimits(lambda host: Rules(0.5, 4))
    engine = Engine(executor, config, clock, look, host_limits=limits)
    running = asyncio.create_task(engine.run(stop))
    timer = asyncio.create_task(clock.sleep(max(end - clock.virtual.now(), 0.0)))
    killed = asyncio.create_task(executor.killed.wait())
    await asyncio.wait({running, timer, killed}, return_when=asyncio.FIRST_COMPLETED)
    if executor.killed.is_set():
        sources.alive += 1
        while left := asyncio.all_tasks() - before:
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
    else:
        stop.set()
        await asyncio.gather(running, return_exceptions=True)
    for task in (timer, killed):
        task.cancel()
    await asyncio.gather(timer, killed, return_exceptions=True)
    if running.done() and not running.cancelled() and running.exception() is not None:
        raise running.exception()  # type: ignore[misc]
    return executor.questions


def judged(sources: Sources, store: MemoryStore, end: float, lives: int) -> Counter[str]:
    """What must not be, and is."""
    tally, wrong = store.counters(), Counter[str]()
    ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    wrong["miscounted"] += abs(tally.get("claimed", 0) - ended)
    tokens = [one.token for source in range(1, SOURCES + 1) for one in store.observations(source, 100_000)]
    wrong["applied twice"] += len(tokens) - len(set(tokens))
    wrong["miscounted"] += abs(len(tokens) - tally.get("recorded", 0))
    sent = set(sources.answered.values())
    for source in range(1, SOURCES + 1):
        newest = store.copy(source)
        wrong["copies nobody sent"] += newest is not None and newest.body.data not in sent
        seen = [one for one in store.observations(source, 100_000) if one.answer is Answer.CHANGED]
        last = max(seen, key=lambda one: one.token, default=None)
        # Kept is what the newest applied poll brought.
        wrong["old copies"] += last is not None and (newest is None or newest.body.data != sources.answered[last.token])
        mine = [at for at, who in sources.asked if who == source and at > end - CALM + 2.0 * LEASE + LONGEST]
        wrong["late sources"] += not mine
    at = np.array([moment for moment, _ in sources.asked])
    for k in range(1, len(at)):
        wrong["over the budget"] += bool((k + 1 > RATE * (at[k:] - at[:-k]) + BURST * lives + 1.0).any())
    fleet = store.fleet(WIDTH)
    wrong["broken beliefs"] += int((~np.isfinite(fleet.beliefs)).any())
    return wrong


def one_world(seed: int) -> tuple[Counter[str], bytes]:
    """One seed: what must not be and is, with how often what happened, and a sum of all that was done."""
    rng, found = np.random.default_rng([13, seed]), Counter[str]()
    store = MemoryStore()
    store.add([Listing(f"memory:{i}", kind="memory", longest=LONGEST, host=f"h{i % 2}") for i in range(SOURCES)], START)
    often = {kind: rng.choice([0.0, 0.003, 0.02]) for kind in KINDS}
    odd = {kind: rng.choice([0.0, 0.05]) for kind in ("hangs", "breaks", "refuses", "lies")}
    cuts = [(START + at, START + at + rng.exponential(40.0)) for at in rng.uniform(0.0, TROUBLE, rng.integers(0, 3))]

    async def body(virtual: LoopClock) -> tuple[Counter[str], bytes]:
        clock, calm_at = SetClock(virtual), START + TROUBLE

        def strange(claim: Claim) -> str:
            now = virtual.now()
            kind = "cut" if any(a <= now < b for a, b in cuts) else drawn(odd)
            kind = kind if now < calm_at - 2.0 * LEASE else ""
            found[f"{kind or 'fine'} polls"] += 1
            return kind

        def drawn(chances: dict[str, float]) -> str:
            lot = rng.random()
            for kind, chance in chances.items():
                lot -= chance
                if lot < 0.0:
                    return kind
            return ""

        def happens(number: int) -> str:
            if virtual.now() >= calm_at:
                return ""
            if rng.random() < 0.003:
                clock.shift += float(rng.choice([-1.0, 1.0]) * np.exp(rng.uniform(1.0, np.log(3e8))))
                found["set clocks"] += 1
            if kind := drawn(often):
                found[kind] += 1
            return kind

        sources, lives = Sources(virtual, strange), 0
        while virtual.now() < calm_at + CALM:
            await live(sources, clock, store, happens, calm_at + CALM)
            lives += 1
            if virtual.now() < calm_at + CALM:
                await virtual.sleep(float(rng.exponential(5.0)))
        # Whoever was killed last has left claims: the next one gives them back.
        store.give_back("engine")
        found.update(judged(sources, store, calm_at + CALM, lives))
        found["polls"] += len(sources.asked)
        said = repr((sources.asked, sorted(store.counters().items()), store.fleet(WIDTH).due.tolist()))
        return found, sha256(said.encode()).digest()

    return virtually(body)


def seeds(first: int, count: int, folder: Path) -> Counter[str]:
    """So many seeds, on all processors; every fiftieth twice."""
    with ProcessPoolExecutor() as pool:
        found = sum(pool.map(_one_seed, range(first, first + count), chunksize=10), Counter[str]())
    # A sum forgets what is 0, and that it is 0 is to be told.
    found.update(dict.fromkeys((*found, *_WRONG, "not the same again"), 0))
    found["rounds"] = count
    return found


def _one_seed(seed: int) -> Counter[str]:
    found, said = one_world(seed)
    found["virtual minutes"] += round((TROUBLE + CALM) / 60.0)
    if seed % 50 == 0:
        found["not the same again"] += one_world(seed)[1] != said
    return found


def _fail_at(at: int, kind: str) -> tuple[Counter[str], int]:
    """An engine whose question with this number ends so, and those after it; how many questions the first asked."""
    store = MemoryStore()
    store.add([Listing(f"memory:{i}", kind="memory", longest=LONGEST, host="h") for i in range(SOURCES)], START)

    async def body(virtual: LoopClock) -> tuple[Counter[str], int]:
        clock, sources, tasks = SetClock(virtual), Sources(virtual), len(asyncio.all_tasks())
        end = START + FIRST + CALM
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
