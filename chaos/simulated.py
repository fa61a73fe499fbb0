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

SOURCES, RATE, BURST = 6, 0.5, 3.0


@dataclass(frozen=True, slots=True)
class World:
    """Virtual seconds with faults and without them at the end, of a lease, and within which each source is polled."""

    trouble: float
    calm: float
    lease: float
    longest: float
    #: so many times as many faults in a time
    thick: float


#: A short world has nearly as many faults as a long one, in a fifth of the time; one in so many seeds is long.
LONG, SHORT = World(900.0, 240.0, 40.0, 60.0, 1.0), World(150.0, 130.0, 20.0, 30.0, 4.0)
SELDOM = 20
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
    world: World = LONG
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
            await clock.sleep(2.0 * self.world.lease)
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

    config = EngineConfig(RATE, burst=BURST, lease=sources.world.lease, grace=0.0)
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
    tally, wrong, world = store.counters(), Counter[str](), sources.world
    settled = end - world.calm + 2.0 * world.lease + world.longest
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
        mine = [at for at, who in sources.asked if who == source and at > settled]
        wrong["late sources"] += not mine
    at = np.array([moment for moment, _ in sources.asked])
    for k in range(1, len(at)):
        wrong["over the budget"] += bool((k + 1 > RATE * (at[k:] - at[:-k]) + BURST * lives + 1.0).any())
    fleet = store.fleet(WIDTH)
    wrong["broken beliefs"] += int((~np.isfinite(fleet.beliefs)).any())
    return wrong


def world_of(seed: int) -> World:
    """Whether the world of a seed is long."""
    return SHORT if seed % SELDOM else LONG


def one_world(seed: int) -> tuple[Counter[str], bytes]:
    """One seed: what must not be and is, with how often what happened, and a sum of all that was done."""
    rng, found, world = np.random.default_rng([13, seed]), Counter[str](), world_of(seed)
    store = MemoryStore()
    listed = [Listing(f"memory:{i}", kind="memory", longest=world.longest, host=f"h{i % 2}") for i in range(SOURCES)]
    store.add(listed, START)
    often = {kind: world.thick * rng.choice([0.0, 0.003, 0.02]) for kind in KINDS}
    odd = {kind: rng.choice([0.0, 0.05]) for kind in ("hangs", "breaks", "refuses", "lies")}
    begun = START + rng.uniform(0.0, world.trouble, rng.integers(0, 3))
    cuts = [(at, at + rng.exponential(40.0 / world.thick)) for at in begun.tolist()]

    async def body(virtual: LoopClock) -> tuple[Counter[str], bytes]:
        clock, calm_at = SetClock(virtual), START + world.trouble
        end = calm_at + world.calm

        def strange(claim: Claim) -> str:
            now = virtual.now()
            kind = "cut" if any(a <= now < b for a, b in cuts) else drawn(odd)
            kind = kind if now < calm_at - 2.0 * world.lease else ""
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
            if rng.random() < 0.003 * world.thick:
                clock.shift += float(rng.choice([-1.0, 1.0]) * np.exp(rng.uniform(1.0, np.log(3e8))))
                found["set clocks"] += 1
            if kind := drawn(often):
                found[kind] += 1
            return kind

        sources, lives = Sources(virtual, world, strange), 0
        while virtual.now() < end:
            await live(sources, clock, store, happens, end)
            lives += 1
            if virtual.now() < end:
                await virtual.sleep(float(rng.exponential(5.0)))
        # Whoever was killed last has left claims: the next one gives them back.
        store.give_back("engine")
        found.update(judged(sources, store, end, lives))
        found["polls"] += len(sources.asked)
        said = repr((sources.asked, sorted(store.counters().items()), store.fleet(WIDTH).due.tolist()))
        return found, sha256(said.encode()).digest()

    return virtually(body)


def seeds(first: int, count: int, folder: Path) -> Counter[str]:
    """So many seeds, on all processors; every fiftieth twice."""
    with ProcessPoolExecutor(initializer=_rarely_tidied) as pool:
        found = sum(pool.map(_one_seed, range(first, first + count), chunksize=10), Counter[str]())
    # A sum forgets what is 0, and that it is 0 is to be told.
    found.update(dict.fromkeys((*found, *_WRONG, "not the same again"), 0))
    found["rounds"] = count
    return found


def _rarely_tidied() -> None:
    """What was imported is not searched for garbage again and again: that took a fifth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


def _one_seed(seed: int) -> Counter[str]:
    found, said = one_world(seed)
    world = world_of(seed)
    found["virtual seconds"] += round(world.trouble + world.calm)
    found["long worlds"] += world is LONG
    if seed % 50 == 0:
        found["not the same again"] += one_world(seed)[1] != said
    return found
