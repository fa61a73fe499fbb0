"""`unstale run` as a user starts it, every outcome durable, against a bare libcurl loop that records nothing.

What is compared is processor time per poll, user and system, for the server shares the machine. The bare loop polls the
same addresses, 64 at a time, which is what one host is granted here. Candidates take turns.

With processes that poll beside the engine, what counts is the busiest of all: where each has a core, and the server is
elsewhere, that one sets the pace.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import apsw
import pycurl

from bench_engine import SPIDER
from bench_fetch import ETAG, Server
from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

SOURCES, FLIGHTS = 6_000, 64
#: polls before measuring begins, in which all sources get their first copies and what was compiled is read; polls that
#: are measured; of a bare loop
WARM, MEASURED, BARE = 12 * SOURCES, 8 * SOURCES, 4 * SOURCES
#: seconds after which a run that does not come so far is given up
PATIENCE = 120.0
#: connections that are kept, as many as the settings grant where they say nothing
CONNECTIONS = 512
SETTINGS = f"""
store = "fleet.db"
budget = "600000000/min"
[http]
pollers = 0
allow_networks = ["127.0.0.0/8"]
[hosts."127.0.1.1"]
spacing = "0s"
concurrency = {FLIGHTS}
"""


def serve(ready: Connection) -> None:
    """Answers on every address of loopback, so that there are as many hosts as one likes."""

    async def play() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "0.0.0.0", 0, backlog=1024)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(play())


@contextmanager
def serving() -> Iterator[int]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def addresses(port: int, hosts: int) -> list[str]:
    return [f"http://127.0.{1 + n % hosts // 250}.{1 + n % hosts % 250}:{port}/page/{n}" for n in range(SOURCES)]


def spent(pid: int) -> float:
    """Seconds of all cores that a process has used, its ended children not counted."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def recorded(db: apsw.Connection) -> int:
    found: list[Any] = db.execute("SELECT value FROM counters WHERE name = 'recorded'").fetchall()
    return int(found[0][0]) if found else 0


def reach(db: apsw.Connection, polls: int) -> None:
    """Wait until so many polls are in the store."""
    ends = time.monotonic() + PATIENCE
    while recorded(db) < polls:
        assert time.monotonic() < ends, f"only {recorded(db)} polls of {polls}"
        time.sleep(0.2)


def memory(pid: int) -> float:
    """The most memory that a process has held, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def processes(engine: int) -> list[int]:
    """An engine, and those that poll for it."""
    begun = Path(f"/proc/{engine}/task/{engine}/children").read_text().split()
    return [engine, *(int(pid) for pid in begun if b"poller_child" in Path(f"/proc/{pid}/cmdline").read_bytes())]


@contextmanager
def fleet(where: list[str], pollers: int = 0) -> Iterator[Path]:
    """A folder with settings and a store of these sources."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "unstale.toml").write_text(SETTINGS.replace("pollers = 0", f"pollers = {pollers}"))
        store = SqliteStore(folder / "fleet.db")
        store.add([Listing(one, host=one.split("/")[2].split(":")[0]) for one in where], time.time() - 1.0)
        store.close()
        yield folder


def run(folder: Path, more: list[str]) -> tuple[list[float], float, float]:
    """CPU seconds per poll of each process, polls per second, and MB in all, of `unstale run` once it has its pace."""
    command = [sys.executable, "-m", "unstale", "run", "--no-serve"]
    with (folder / "said").open("w", encoding="utf-8") as said:
        engine = subprocess.Popen([*command, *more], cwd=folder, stdout=said, stderr=said)
    try:
        with closing(apsw.Connection(str(folder / "fleet.db"))) as db:
            before = recorded(db)
            reach(db, before + WARM)
            pids = processes(engine.pid)
            began, cpu, polls = time.perf_counter(), [spent(pid) for pid in pids], recorded(db)
            reach(db, polls + MEASURED)
            took, polls = time.perf_counter() - began, recorded(db) - polls
            cost = [(spent(pid) - before) / polls for pid, before in zip(pids, cpu, strict=True)]
            most = sum(map(memory, pids))
    except AssertionError:
        print((folder / "said").read_text("utf-8")[-2000:], flush=True)
        raise
    finally:
        engine.terminate()
        engine.wait(30)
    assert engine.returncode == 0, (folder / "said").read_text("utf-8")[-2000:]
    return cost, polls / took, most


async def bare(where: list[str], polls: int) -> None:
    """The same polls with nothing around them: no gate, no limits, no record."""
    numbers = iter(range(polls))
    lines = [f"If-None-Match: {ETAG}"]
    async with pycurl.AsyncCurlMulti() as multi:
        multi.setopt(pycurl.M_MAXCONNECTS, CONNECTIONS)

        async def fly() -> None:
            curl = pycurl.Curl()
            curl.setopt(pycurl.PROXY, "")
            curl.setopt(pycurl.HTTPHEADER, lines)
            curl.setopt(pycurl.WRITEFUNCTION, lambda chunk: None)
            for number in numbers:
                curl.setopt(pycurl.URL, where[number % len(where)])
                await multi.add_handle(curl)
                assert curl.getinfo(pycurl.RESPONSE_CODE) == 304

        await asyncio.gather(*(fly() for _ in range(FLIGHTS)))


def used() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def bare_cost(where: list[str]) -> float:
    before = used()
    asyncio.run(bare(where, BARE))
    return (used() - before) / BARE


def scrapy_cost(port: int) -> float | None:
    """CPU seconds per poll of Scrapy, its start taken out by the difference of two runs; None if it does not run."""
    costs = []
    for polls in (500, 4_500):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        origin = f"http://127.0.1.1:{port}/"
        done = subprocess.run(
            [sys.executable, "-c", SPIDER, origin, str(polls), ETAG, str(FLIGHTS)], capture_output=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            return None
        costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (costs[1] - costs[0]) / 4_000


def apart(table: Table, where: list[str], rounds: int, more: list[str]) -> None:
    """What processes that poll take off the engine."""
    busiest: dict[int, list[float]] = {0: [], 1: [], 2: []}
    whole: dict[int, list[float]] = {0: [], 1: [], 2: []}
    sizes = []
    with fleet(where) as none, fleet(where, 1) as one, fleet(where, 2) as two:
        for _ in range(rounds):
            for pollers, folder in enumerate((none, one, two)):
                costs, _, size = run(folder, more)
                assert len(costs) == 1 + pollers
                busiest[pollers].append(max(costs))
                whole[pollers].append(sum(costs))
                sizes.append(size)
                print(f"{pollers} pollers: {', '.join(f'{cost * 1e6:.0f}' for cost in costs)} µs", flush=True)
    for pollers, name in enumerate(("unstale run, busiest process", "with 1 poller", "with 2 pollers")):
        cost = median(busiest[pollers])
        table.row("200 hosts", name, cost, median(whole[pollers]), cost / median(busiest[0]), rounds)
    table.fact(
        "polls per CPU second of the busiest process, 2 pollers against one process",
        f"{median(busiest[0]) / median(busiest[2]):.2f}",
        "-",
    )
    # The engine is the busiest from one poller on: what it takes for a poll is what a second one cannot take off.
    table.fact("the same against 1 poller", f"{median(busiest[1]) / median(busiest[2]):.2f}", "1.5 or more")
    table.fact("memory of all processes, MB, 2 pollers", f"{max(sizes):.0f}", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", type=int, nargs="*", default=[200, 1])
    parser.add_argument("--no-scrapy", action="store_true")
    parser.add_argument("--pollers", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--dry", action="store_true", help="write no table")
    options, more = parser.parse_known_args()
    table = Table(
        "run", f"`unstale run`, {SOURCES:,} sources over loopback, outcomes durable: processor seconds per poll"
    )
    with serving() as port:
        for hosts in options.hosts:
            where, ours, theirs, rates, sizes = addresses(port, hosts), [], [], [], []
            with fleet(where) as folder:  # as many hosts as that, or one that grants 64 at a time
                for _ in range(options.rounds):
                    theirs.append(bare_cost(where))
                    (mine,), rate, size = run(folder, more)
                    ours.append(mine)
                    rates.append(rate)
                    sizes.append(size)
                    print(f"{hosts} hosts: bare {theirs[-1] * 1e6:.0f}, ours {mine * 1e6:.0f} µs", flush=True)
            case = f"{hosts} host{'s' if hosts > 1 else ''}"
            for name, costs in (("bare libcurl loop", theirs), ("unstale run", ours)):
                table.row(case, name, median(costs), median(costs), median(costs) / median(theirs), options.rounds)
            table.fact(
                f"polls per CPU second against the bare loop, {case}",
                f"{median(theirs) / median(ours):.2f}",
                "0.6 or more",
            )
            table.fact(f"polls per second by the clock, {case}", f"{median(rates):,.0f}", "-")
            table.fact(f"memory, MB, {case}", f"{max(sizes):.0f}", "-")
            if hosts == options.hosts[0] and not options.no_scrapy and (crawled := scrapy_cost(port)) is not None:
                table.fact("times Scrapy, by CPU", f"{crawled / median(ours):.1f}", "25 or more")
        if options.pollers:
            apart(table, addresses(port, 200), options.rounds, more)
    if not options.dry:
        table.write()


if __name__ == "__main__":
    main()
