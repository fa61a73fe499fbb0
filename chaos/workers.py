"""Workers on PostgreSQL among faults: kills, stops, server crashes, ended sessions, set clocks and a silent network.

Rules of this file:
1. Four workers poll two hundred sources through a forwarder, which is stopped for the network to be silent. Those who
   count ask the server directly.
2. A clock that is set is that of one worker's machine, by five minutes to either side. Steady clocks cannot be set.
3. The next fault comes once some polls have been made after the one before, or a moment has passed without any.
4. After every few faults each poll is accounted for, and at the end that everybody is polled again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np

from support.postgres import Postgres, postgres
from support.worker_crew import LEASE, SOURCES, WORKERS, Crew, accounted, crew_of, fleet, spaced, until
from unstale.adapters.postgres_crew import PostgresCrew

FAULTS = ("kill", "stop", "clock forward", "kill", "session", "clock back", "network", "stop", "session", "crash")
#: faults after which polls are accounted for
EVERY = 10
#: polls between two faults, and seconds that they are waited for at most
BETWEEN, MOMENT = 10, 2.0


def faults(first: int, count: int, folder: Path) -> Counter[str]:
    """So many faults, one after the other; what is wrong is counted."""
    found: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory(dir=folder) as name,
        postgres() as server,
        closing(PostgresCrew(server.address(), patience=60.0)) as store,
    ):
        hosts = fleet(store)
        with (
            forwarder(server) as (process, address),
            crew_of(server, Path(name), large=100 if first // count % 2 else float("inf"), address=address) as crew,
        ):
            for _ in range(WORKERS):
                crew.beget()
            until(lambda: crew.polls() > SOURCES / 4, 60.0)
            asleep, quiet = dict[int, float](), crew.polls()
            for n in range(first, first + count):
                rng = np.random.default_rng([22, n])
                polled(crew, BETWEEN, MOMENT)
                time.sleep(float(rng.uniform(0.05, 0.4)))
                wake(asleep)
                found["begun again"] += revive(crew, asleep)
                found.update({"rounds": 1, fault(n, server, crew, process, asleep, rng): 1})
                if n % EVERY == EVERY - 1:
                    found["miscounted"] += wrong(server, crew)
            wake(asleep, all_of_them=True)
            found["begun again"] += revive(crew, asleep)
            before = len(crew.lines())
            found["polls among faults"] += before - quiet
            try:
                until(lambda: len({line.source for line in crew.lines()[before:]}) == SOURCES, 60.0)
            except AssertionError:
                found["not polled again"] += 1
        time.sleep(LEASE)
        found["miscounted"] += wrong(server, crew)
        found["polls"] += len(crew.lines())
        found["damaged"] += len(store.verify())
        try:
            spaced(crew.lines(), hosts)
        except AssertionError:
            found["too close at a host"] += 1
    return found


def fault(
    n: int, server: Postgres, crew: Crew, network: int, asleep: dict[int, float], rng: np.random.Generator
) -> str:
    """Do one; its name."""
    name, victim = FAULTS[n % len(FAULTS)], crew.processes[int(rng.integers(len(crew.processes)))]
    if name == "kill":
        asleep.pop(victim, None)
        crew.end(victim, signal.SIGKILL)
        crew.beget()
    elif name == "stop":
        os.kill(victim, signal.SIGSTOP)
        asleep[victim] = time.monotonic() + LEASE * float(rng.uniform(0.5, 2.0))
    elif name == "network":
        os.kill(network, signal.SIGSTOP)
        asleep[network] = time.monotonic() + float(rng.uniform(0.2, 3.0))
    elif name == "session":
        server.run(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity "
            f"WHERE application_name = 'unstale' AND pid <> pg_backend_pid() ORDER BY pid * {n} % 101 LIMIT 2) chosen"
        )
    elif name == "crash":
        server.crash()
        server.start()
    else:
        os.kill(victim, signal.SIGUSR1 if name == "clock forward" else signal.SIGUSR2)
    return name


def polled(crew: Crew, many: int, seconds: float) -> None:
    """Wait until so many polls more were made, or so long."""
    enough, ends = crew.polls() + many, time.monotonic() + seconds
    while crew.polls() < enough and time.monotonic() < ends:
        time.sleep(0.02)


def wake(asleep: dict[int, float], *, all_of_them: bool = False) -> None:
    """Resume who was stopped long enough."""
    for process in [one for one, at in asleep.items() if all_of_them or time.monotonic() > at]:
        del asleep[process]
        os.kill(process, signal.SIGCONT)


def revive(crew: Crew, asleep: dict[int, float]) -> int:
    """Beget others for those that ended by themselves, as whatever supervises workers does; how many.

    A worker that cannot open its store when it starts says so and ends.
    """
    dead = [process for process in crew.processes if not Path(f"/proc/{process}/exe").exists()]
    for process in dead:
        asleep.pop(process, None)
        crew.processes.remove(process)
        crew.beget()
    return len(dead)


def wrong(server: Postgres, crew: Crew) -> int:
    """1 if some poll is not accounted for."""
    try:
        accounted(server, crew.lines)
    except AssertionError as error:
        print(f"not accounted for: {error}", flush=True)
        return 1
    return 0


@contextmanager
def forwarder(server: Postgres) -> Iterator[tuple[int, str]]:
    """A process that passes everything on between workers and the server, and the address at which it does."""
    with tempfile.TemporaryDirectory(prefix="net", dir="/tmp") as folder:
        path, there = f"{folder}/.s.PGSQL.5432", f"{server.folder}/.s.PGSQL.5432"
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(_forward(path, there))
            finally:
                os._exit(0)
        try:
            until(lambda: Path(path).exists(), 10.0)
            yield child, f"postgresql://postgres@/postgres?host={quote(folder)}"
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


async def _forward(here: str, there: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_unix_connection(there)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass(reader, other_writer), _pass(other_reader, writer))

    async with await asyncio.start_unix_server(serve, here) as listening:
        await listening.serve_forever()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
