"""How soon work goes on: after kill -9 of `unstale run`, and after a full disk has room again.

Rules of this file:
1. A start is that of the command itself, with all that it imports. On a busy machine seconds tell of the others: the
   processor time that it takes to the first poll is what must be below two seconds.
2. A disk is full for SQLite alone: every write is refused for want of room until there is some.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
from disk import Disk, installed
from long import alone, home

from support.engine_victim import settings_file
from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.loop import Engine
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Claim, Fetched, Listing

#: sources that are due all the time; seconds for which a start may take on a busy machine
SOURCES, PATIENCE = 100, 60.0
#: seconds for which a disk is full, about, and after which writing must have gone on
FULL, SOON = 1.0, 30.0


def restarts(first: int, count: int, folder: Path) -> Counter[str]:
    """Kill an engine, begin it again, and wait until a source is asked; so many times on one store."""
    waits, processor, found = [], [], Counter[str]()
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        Origin(Site.of(SOURCES, change_rate=0.3), host="127.0.0.2").in_thread() as origin,
    ):
        config = settings_file(Path(place), 'budget = "200/s"', ("127.0.0.2/32",))
        store = SqliteStore(Path(place) / "unstale.db")
        store.add([Listing(origin.address + path, longest=0.5) for path in origin.site.paths], time.time())
        store.close()
        for n in range(first, first + count):
            asked, begun = len(origin.polls().times), time.monotonic()
            command = [sys.executable, "-m", "unstale", "run", "--events", "--no-serve", "--config", str(config)]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as engine:
                while len(origin.polls().times) == asked and time.monotonic() - begun < PATIENCE:
                    time.sleep(0.01)
                waits.append(time.monotonic() - begun)
                processor.append(_processor(engine.pid))
                time.sleep(float(np.random.default_rng([31, n]).uniform(0.0, 0.5)))
                engine.send_signal(signal.SIGKILL)
        found["damaged"] = len(SqliteStore(Path(place) / "unstale.db").verify())
    found["never polled"] = sum(wait >= PATIENCE for wait in waits)
    found["over two seconds of processor time"] = sum(one > 2.0 for one in processor)
    found["milliseconds to the first poll, of every second"] = round(1000 * float(np.median(waits)))
    found["milliseconds of processor time, of every second"] = round(1000 * float(np.median(processor)))
    found["rounds"] = count
    return found


def _processor(pid: int) -> float:
    """Seconds of processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Small(Disk):
    """A disk that has no room while it is `full`, and is read all the same."""

    full = False

    def happens(self, kind: str) -> None:
        if self.full and kind == "write":
            self.failed += 1
            raise apsw.FullError("no room")


def full_disk(first: int, count: int, folder: Path) -> Counter[str]:
    """An engine whose disk is full and has room again, so many times: nothing is lost, and writing goes on."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        return asyncio.run(_filled(first, count, Path(place) / "unstale.db"))


async def _filled(first: int, count: int, path: Path) -> Counter[str]:
    clock, disk, stop, found, waits = SystemClock(), _Small(), asyncio.Event(), Counter[str](), []
    with closing(SqliteStore(path)) as made:
        made.add([Listing(f"memory:{n}", kind="memory", longest=0.2) for n in range(SOURCES)], time.time())
    with installed(disk):
        held: list[SqliteStore] = []

        def opened() -> SqliteStore:
            # Such a disk takes one connection at a time, so that the one before goes first.
            for one in held:
                one.close()
            held[:] = [SqliteStore(path)]
            return held[0]

        executor = alone(opened)

        async def look(claim: Claim) -> Fetched:
            return Fetched(Answer.CHANGED, clock.now(), body=os.urandom(2000), status=200)

        def recorded() -> int:
            try:
                return executor.store.counters().get("recorded", 0)
            except StoreError:
                return 0

        engine = Engine(executor, EngineConfig(100.0, grace=2.0), clock, look, host_limits=home())
        running = asyncio.create_task(engine.run(stop))
        await _until(recorded)
        for n in range(first, first + count):
            disk.full = True
            await asyncio.sleep(FULL * float(np.random.default_rng([8, n]).uniform(0.2, 2.0)))
            disk.full = False
            disk.journal.clear()
            before, begun = recorded(), time.monotonic()
            await _until(lambda before=before: recorded() > before)
            waits.append(time.monotonic() - begun)
        stop.set()
        await running
        executor.close()
    with closing(SqliteStore(path)) as store:
        tally = store.counters()
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        found["miscounted"] = abs(tally.get("claimed", 0) - ended)
        found["damaged"] = len(store.verify())
    found["rounds"] = count
    found["refused writes"] = disk.failed
    found["recorded"] = tally.get("recorded", 0)
    found["not within 30 s"] = sum(wait > SOON for wait in waits)
    found["milliseconds until writing went on, of every second"] = round(1000 * float(np.median(waits)))
    found["milliseconds until writing went on, of the longest"] = round(1000 * max(waits))
    return found


async def _until(condition: Callable[[], object]) -> None:
    begun = time.monotonic()
    while not condition() and time.monotonic() - begun < 2.0 * SOON:
        await asyncio.sleep(0.01)
