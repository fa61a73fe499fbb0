"""The real engine for long, in virtual time: a year on one store."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing, Opened
from unstale.sim.virtual import START, VirtualClock, in_virtual_time

S = TypeVar("S", bound=Opened)

DAY = 86_400.0
#: sources of the soak, polls of them a day, and bytes of a body
SOURCES, DAILY, BODY = 12, 60.0, 20_000
#: one poll in so many fails
FAILING = 20


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
    store: SqliteStore, config: EngineConfig, seconds: float, visits: dict[float, Callable[[], None]]
) -> Counter[Answer]:
    """An engine for so long, with visits at times; what its polls found."""
    polls: Counter[Answer] = Counter()

    async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
        async def look(claim: Claim) -> Fetched:
            now = clock.now()
            if claim.token % FAILING == 0:
                polls[Answer.FAILED] += 1
                return Fetched(Answer.FAILED, now, reason="it does not answer", status=503)
            polls[Answer.CHANGED] += 1
            # Bodies differ every six hours, so that each is kept anew.
            rng = np.random.default_rng([claim.source, int(now / (6 * 3600.0))])
            return Fetched(Answer.CHANGED, now, body=rng.bytes(BODY // 4).hex().encode(), status=200)

        engine = Engine(alone(lambda: store), config, clock, look, host_limits=home())

        async def visit() -> None:
            for after, act in sorted(visits.items()):
                await clock.sleep(START + after - clock.now())
                act()

        visiting = asyncio.create_task(visit())
        await engine.run(stop)
        visiting.cancel()

    in_virtual_time(body, START + seconds)
    return polls


class _Alone(StoreExecutor[S]):
    @property
    def shared(self) -> bool:
        return False


def alone(opened: Callable[[], S]) -> StoreExecutor[S]:
    """Nobody else writes to the store: so it need not be looked at twenty times a second of virtual time."""
    return _Alone(opened, threads=False)


def home() -> HostLimits:
    """No host wants to be spared."""
    return HostLimits(lambda host: HOME)


def soak(first: int, count: int, folder: Path) -> Counter[str]:
    """So many virtual days, of which a twelfth is remembered: what the first quarter needs is all that they need.

    Every week a source goes and another comes.
    """
    span = count * DAY
    seen: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "unstale.db"
        store = SqliteStore(path, versions=3, horizon=span / 12.0)
        here = store.add([Listing(f"memory:{n}", kind="memory") for n in range(SOURCES)], START)

        def exchange(week: int) -> None:
            # As a command beside the engine does it.
            other = SqliteStore(path)
            other.remove([here.pop(0)])
            here.extend(other.add([Listing(f"memory:{SOURCES + week}", kind="memory")], START + week * 7 * DAY))
            other.close()

        visits: dict[float, Callable[[], None]] = {
            week * 7 * DAY: partial(exchange, week) for week in range(1, int(count / 7))
        }
        visits |= {share * span: lambda: seen.append(_standing(path)) for share in (0.25, 0.5, 0.75, 0.999)}
        polls = _run(store, EngineConfig(DAILY / DAY), span, visits)
        broken = len(store.verify())
        tally = store.counters()
        store.close()
    accounted = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    (files, memory, handles), (later_files, later_memory, later_handles) = seen[0], seen[-1]
    return Counter(
        {
            "rounds": count,
            "polls": polls.total(),
            "of them failed": polls[Answer.FAILED],
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
