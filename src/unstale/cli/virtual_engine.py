"""The real engine in virtual time: its loop, scheduler and records, a store in memory, sources that change by law."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.polling import ContentOf
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualClock, VirtualWorld, in_virtual_time


def run_virtually(
    world: VirtualWorld,
    budget: float,
    seconds: float,
    *,
    listing: Callable[[int], Listing] | None = None,
    answer: Callable[[Claim, float], Fetched | None] | None = None,
    store: MemoryStore | None = None,
    config: Mapping[str, object] | None = None,
    host_limits: HostLimits | None = None,
    start: float = START,
    visits: Mapping[float, Callable[[], None]] | None = None,
    content: ContentOf = lambda claim: None,
) -> tuple[Engine, MemoryStore]:
    """Run an engine over a world for so many virtual seconds; `budget` is cost per second.

    `listing` says how each source is added, `answer` may answer in a source's stead, `config` holds further settings.
    `visits` are done so many seconds after the start, while time stands still; `content` says what counts.
    """
    kept = store or MemoryStore()
    make = listing or (lambda i: Listing(f"memory:{i}", kind="memory"))
    if not len(kept.fleet(1).source):
        kept.add([make(i) for i in range(len(world.rates))], start)

    async def body(clock: VirtualClock, stop: asyncio.Event) -> Engine:
        async def look(claim: Claim) -> Fetched:
            now = clock.now()
            special = answer(claim, now) if answer else None
            if special is not None:
                return special
            return Fetched(Answer.CHANGED, now, body=world.look(claim.source - 1, now), status=200)

        engine = Engine(
            StoreExecutor(lambda: kept, threads=False),
            replace(EngineConfig(budget), **(config or {})),  # type: ignore[arg-type]
            clock,
            look,
            content=content,
            host_limits=host_limits or HostLimits(lambda host: HOME),
        )

        async def visit() -> None:
            try:
                for after, act in sorted((visits or {}).items()):
                    await clock.sleep(start + after - clock.now())
                    act()
            except Exception:
                stop.set()
                raise

        visiting = asyncio.create_task(visit())
        await engine.run(stop)
        visiting.cancel()
        await asyncio.wait([visiting])
        if not visiting.cancelled():
            visiting.result()
        return engine

    return in_virtual_time(body, start + seconds, start), kept
