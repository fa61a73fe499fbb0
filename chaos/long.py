"""The real engine for long, and beyond what it can do, in virtual time: months on one store, and too much to poll."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualClock, in_virtual_time

DAY = 86_400.0
#: sources of the soak, polls of them a day, and bytes of a body
SOURCES, DAILY, BODY = 40, 400.0, 20_000


def _memory() -> int:
    """Kilobytes of memory of our own."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def _standing(store: Path) -> tuple[int, int, int]:
    """Kilobytes of the store's files, kilobytes of memory, open files."""
    files = sum(file.stat().st_size for file in store.parent.glob(store.name + "*"))
    return files // 1024, _memory(), len(list(Path("/proc/self/fd").iterdir()))


def _run(
    store: SqliteStore,
    config: EngineConfig,
    seconds: float,
    took: Callable[[float], float],
    visits: dict[float, Callable[[Engine], None]],
) -> dict[int, list[float]]:
    """An engine for so long, whose polls take what `took` says of a time; when each source was polled."""
    polls: dict[int, list[float]] = {}

    async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
        async def look(claim: Claim) -> Fetched:
            begun = clock.now()
            if (wait := took(begun - START)) > 0.0:
                await clock.sleep(wait)
            now = clock.now()
            polls.setdefault(claim.source, []).append(now - START)
            # About every third poll finds a change; bodies differ, so that each is kept anew.
            rng = np.random.default_rng([claim.source, int(now / (6 * 3600.0))])
            return Fetched(Answer.CHANGED, now, body=rng.bytes(BODY // 4).hex().encode(), status=200)

        engine = Engine(_Alone(lambda: store, threads=False), config, clock, look, host_limits=_home())

        async def visit() -> None:
            for after, act in sorted(visits.items()):
                await clock.sleep(START + after - clock.now())
                act(engine)

        visiting = asyncio.create_task(visit())
        await engine.run(stop)
        visiting.cancel()

    in_virtual_time(body, START + seconds)
    return polls


class _Alone(StoreExecutor[SqliteStore]):
    """Nobody else writes to the store: so it need not be looked at twenty times a second of virtual time."""

    @property
    def shared(self) -> bool:
        return False


def _home() -> HostLimits:
    return HostLimits(lambda host: HOME)


def soak(first: int, count: int, folder: Path) -> Counter[str]:
    """So many virtual days, of which a twelfth is remembered: what the first quarter needs is all that they need."""
    span = count * DAY
    seen: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "unstale.db"
        store = SqliteStore(path, versions=3, horizon=span / 12.0)
        store.add([Listing(f"memory:{n}", kind="memory") for n in range(SOURCES)], START)
        visits = {share * span: lambda engine: seen.append(_standing(path)) for share in (0.25, 0.5, 0.75, 0.999)}
        polls = _run(store, EngineConfig(DAILY / DAY), span, lambda at: 0.0, visits)
        broken = len(store.verify())
        tally = store.counters()
        store.close()
    accounted = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    (files, memory, handles), (later_files, later_memory, later_handles) = seen[0], seen[-1]
    return Counter(
        {
            "rounds": count,
            "polls": sum(map(len, polls.values())),
            "kilobytes of the store after a quarter": files,
            "kilobytes of the store at the end": later_files,
            "kilobytes of memory more than after a quarter": max(later_memory - memory, 0),
            "files grown by a fifth": int(later_files > 1.2 * files),
            "memory grown by 16 MB": int(later_memory > memory + 16_384),
            "more open files": max(later_handles - handles, 0),
            "damaged": broken,
            "miscounted": abs(tally.get("claimed", 0) - accounted),
        }
    )


def overload(first: int, count: int, folder: Path) -> Counter[str]:
    """Twenty minutes in which 2, 5, 10 times as much is due as can be polled, then room again."""
    found: Counter[str] = Counter()
    for factor in (2, 5, 10)[first : first + count]:
        found.update(_overloaded(factor, folder))
    return found


def _overloaded(factor: int, folder: Path) -> Counter[str]:
    budget, slots, calm, rush, sources = 1.0, 4, 600.0, 600.0, 40
    queue: list[int] = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = SqliteStore(Path(place) / "unstale.db")
        # Half of them are worth ten times as much as the others.
        store.add([Listing(f"memory:{n}", kind="memory", weight=10.0 if n % 2 else 1.0) for n in range(sources)], START)

        def took(at: float) -> float:
            return factor * slots / budget if calm <= at < calm + rush else 0.0

        def watch(engine: Engine) -> None:
            queue.append(len(engine._polls.ahead) + len(engine._recorder.done) + engine.in_flight)

        visits = {float(at): watch for at in range(0, int(2 * calm + rush), 10)}
        config = replace(EngineConfig(budget), polls=slots)
        polls = _run(store, config, 2 * calm + rush, took, visits)
        store.close()

    def rate(which: int, begin: float, end: float) -> float:
        times = [at for source, seen in polls.items() if source % 2 == which for at in seen if begin <= at < end]
        return len(times) / (end - begin)

    # Sources have numbers from 1 on: the heavy ones are even.
    before, during = [(rate(0, a, b), rate(1, a, b)) for a, b in ((300.0, calm), (calm + 120.0, calm + rush))]
    over = calm + rush
    whole = budget * 0.9
    recovered = next(
        (s for s in range(0, 540, 10) if rate(0, over + s, over + s + 60) + rate(1, over + s, over + s + 60) >= whole),
        1200,
    )
    return Counter(
        {
            "rounds": 1,
            f"percent of valuable polls kept at {factor}x": round(100 * during[0] / before[0]),
            f"percent of others kept at {factor}x": round(100 * during[1] / max(before[1], 1e-9)),
            f"most waiting at {factor}x": max(queue),
            f"seconds to recover from {factor}x": recovered,
            "not recovered in two minutes": int(recovered > 120),
            "unbounded": int(max(queue) > 500 + slots),
        }
    )
