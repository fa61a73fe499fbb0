"""`unstale worker` as an operator runs it, by the origin's log: what is spent, and how close polls of a host come.

The world: 400 sources at 100 hosts of loopback, a poll a second at each at most, a budget of 20 polls a second. With
`--faults` workers are stopped beyond what anybody waits for, resumed, killed and begotten again meanwhile. With
`--pace` so many workers poll 20,000 sources without pauses for a budget that they cannot spend: how many outcomes they
record in a second, by the clock and by the processor time of workers and server together.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import ClassVar

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench_postgres import server
from harness import Table
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.ports import Listing

SOURCES, HOSTS, BUDGET, SPACING = 400, 100, 20.0, 1.0
#: sources that are polled as fast as workers can, and that many a second may be
FAST = 20_000
#: seconds after the first round until all run at their pace, and that are measured
WARM, MEASURED = 10.0, 60.0
#: seconds after which a first round that does not end is given up
PATIENCE = 300.0
#: polls over which spending is told, the worst such stretch too
STRETCH = 1000
COMMAND = [sys.executable, "-m", "unstale"]

Log = list[tuple[float, str, str]]


class Origin(asyncio.Protocol):
    """Answers at once and notes when a request was whole, which host it was for, and its path."""

    log: ClassVar[Log] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._text = transport, b""

    def data_received(self, data: bytes) -> None:
        self._text += data
        while b"\r\n\r\n" in self._text:
            head, _, self._text = self._text.partition(b"\r\n\r\n")
            first, *lines = head.decode("ascii").split("\r\n")
            host = next(line.partition(":")[2] for line in lines if line.lower().startswith("host:"))
            path, now = first.split()[1], time.time()
            self.log.append((now, host.strip().partition(":")[0], path))
            # Each changes at a pace of its own, from twice a minute to once in ten minutes.
            number = int(path[1:])
            body = b"%d" % (now / (30.0 * 20.0 ** (number * 0.618 % 1.0)) + 0.382 * number)
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def serve(pipe: Connection) -> None:
    """Tell the port; then the log each time it is asked for, until the other end is closed."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        origin = await loop.create_server(Origin, [f"127.0.1.{n + 1}" for n in range(HOSTS)], pipe.recv(), backlog=256)
        pipe.send(None)
        over = asyncio.Event()

        def asked() -> None:
            try:
                pipe.recv()
                pipe.send(Origin.log)
            except (EOFError, OSError):
                over.set()

        loop.add_reader(pipe.fileno(), asked)
        await over.wait()
        origin.close()

    asyncio.run(play())


@contextmanager
def origin(port: int) -> Iterator[Connection]:
    """A pipe to a running origin."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    ours.send(port)
    ours.recv()
    try:
        yield ours
    finally:
        ours.close()
        process.join()


def settings(folder: Path, dsn: str, budget: float = BUDGET, spacing: float = SPACING) -> None:
    hosts = "".join(f'[hosts."127.0.1.{n + 1}"]\nspacing = "{spacing}s"\n' for n in range(HOSTS))
    text = f'store = "{dsn}"\nbudget = "{budget}/s"\n[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n{hosts}'
    (folder / "unstale.toml").write_text(text, "utf-8")


def begin(folder: Path, said: ExitStack) -> subprocess.Popen[bytes]:
    file = said.enter_context((folder / f"said-{time.monotonic_ns()}").open("w"))
    return subprocess.Popen([*COMMAND, "worker", "--config", "unstale.toml"], cwd=folder, stdout=file, stderr=file)


def disturb(folder: Path, workers: list[subprocess.Popen[bytes]], seconds: float, said: ExitStack) -> int:
    """Stop, resume and kill workers for so long; how often."""
    rng, faults = np.random.default_rng(1), 0
    stopped: dict[subprocess.Popen[bytes], float] = {}
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(float(rng.uniform(0.2, 0.8)))
        for worker in [worker for worker, until in stopped.items() if time.monotonic() > until]:
            del stopped[worker]
            worker.send_signal(signal.SIGCONT)
        worker = workers[int(rng.integers(len(workers)))]
        if worker in stopped:
            continue
        faults += 1
        if rng.random() < 0.8:
            worker.send_signal(signal.SIGSTOP)
            stopped[worker] = time.monotonic() + float(rng.uniform(0.1, 3.0))
        else:
            worker.kill()
            worker.wait()
            workers[workers.index(worker)] = begin(folder, said)
    for worker in stopped:
        worker.send_signal(signal.SIGCONT)
    return faults


def gaps(log: Log) -> NDArray[np.float64]:
    """Seconds between one request to a host and the next, of all hosts."""
    by_host: dict[str, list[float]] = {}
    for at, host, _ in log:
        by_host.setdefault(host, []).append(at)
    return np.concatenate([np.diff(np.sort(times)) for times in by_host.values()])


def live(dsn: str, port: int, count: int, seconds: Sequence[float], *, faults: bool) -> tuple[Log, dict[str, int], int]:
    """What the origin saw of so many workers while it was measured, the store's counters and the faults."""
    empty(dsn)
    store = PostgresCrew(dsn)
    store.add([Listing(f"http://127.0.1.{n % HOSTS + 1}:{port}/{n}") for n in range(SOURCES)], time.time())
    warm, measured = seconds
    with tempfile.TemporaryDirectory() as name, origin(port) as pipe, ExitStack() as said:
        folder, harmed = Path(name), 0
        settings(folder, dsn)
        workers = [begin(folder, said) for _ in range(count)]
        try:
            ends = time.monotonic() + PATIENCE
            while store.counters().get("recorded", 0) < SOURCES:
                assert time.monotonic() < ends, "not all were polled once"
                time.sleep(0.5)
            time.sleep(warm)
            before, first = time.time(), store.counters()
            if faults:
                harmed = disturb(folder, workers, measured, said)
            else:
                time.sleep(measured)
            after, last = time.time(), store.counters()
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)
        pipe.send(None)
        log: Log = [line for line in pipe.recv() if before <= line[0] < after]
        for text in sorted(folder.glob("said-*")):
            with suppress(OSError):
                if "Traceback" in (words := text.read_text()):
                    print(words[-2000:])
    store.close()
    return log, {name: last[name] - first.get(name, 0) for name in last}, harmed


def outcomes(dsn: str, port: int, count: int, seconds: Sequence[float]) -> tuple[float, float]:
    """Outcomes recorded per second by the clock, and per second of the processor: workers' and server's."""
    empty(dsn)
    store = PostgresCrew(dsn)
    store.add([Listing(f"http://127.0.1.{n % HOSTS + 1}:{port}/{n}") for n in range(FAST)], time.time())
    warm, measured = seconds
    with tempfile.TemporaryDirectory() as name, origin(port), ExitStack() as said:
        folder = Path(name)
        text = f'store = "{dsn}"\nbudget = "{FAST}/s"\nfirst_round = "{60 * FAST}/min"\n'
        (folder / "unstale.toml").write_text(
            f'{text}[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n', "utf-8"
        )
        workers = [begin(folder, said) for _ in range(count)]
        try:
            ends = time.monotonic() + PATIENCE
            while store.counters().get("recorded", 0) < FAST:
                assert time.monotonic() < ends, "not all were polled once"
                time.sleep(0.5)
            time.sleep(warm)
            began, first, used = time.monotonic(), store.counters()["recorded"], processor(dsn, workers)
            time.sleep(measured)
            made, busy = store.counters()["recorded"] - first, processor(dsn, workers) - used
            took = time.monotonic() - began
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)
        for text_of in sorted(folder.glob("said-*")):
            if "Traceback" in (words := text_of.read_text()):
                print(words[-2000:])
    store.close()
    return made / took, made / busy


def processor(dsn: str, workers: Sequence[subprocess.Popen[bytes]]) -> float:
    """Seconds of the processor that workers and the sessions of their server have used."""
    with psycopg.connect(dsn) as db:
        pids = [row[0] for row in db.execute("SELECT pid FROM pg_stat_activity").fetchall()]
    total = 0
    for pid in [*pids, *(worker.pid for worker in workers)]:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
    return total / os.sysconf("SC_CLK_TCK")


def empty(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS unstale CASCADE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--faults", type=int, nargs="*", default=[4])
    parser.add_argument("--pace", type=int, nargs="*", default=[8])
    parser.add_argument("--seconds", type=float, nargs=2, default=[WARM, MEASURED])
    options = parser.parse_args()
    table = Table("workers", f"{SOURCES} sources at {HOSTS} hosts, {SPACING:g} s apart, {BUDGET:g} polls a second")
    port = 20_000 + os.getpid() % 10_000
    with server() as dsn:
        for faults, count in [*((False, n) for n in options.workers), *((True, n) for n in options.faults)]:
            log, done, harmed = live(dsn, port, count, options.seconds, faults=faults)
            times = np.sort([line[0] for line in log])
            stretch = min(STRETCH, len(times) // 2)
            paces = stretch / (times[stretch:] - times[:-stretch]) if stretch else np.zeros(1)
            apart = gaps(log)
            case = f"{count} workers" + (f", {harmed} stops and kills" if faults else "")
            pace = len(log) / options.seconds[1]
            table.fact(
                f"{case}: polls per second",
                f"{pace:.2f}; over any {stretch} polls {paces.min():.2f} to {paces.max():.2f}",
                "20",
            )
            table.fact(f"{case}: closest at one host", f"{apart.min():.3f} s", "0.95 s")
            table.fact(
                f"{case}: claimed, given back, sources polled",
                f"{done.get('claimed', 0)}, {done.get('given_back', 0)}, {len({line[1:] for line in log})}",
                "-",
            )
        for count in options.pace:
            by_clock, by_processor = outcomes(dsn, port, count, options.seconds)
            table.fact(f"{count} workers, no pauses: outcomes per second", f"{by_clock:.0f}", "-")
            table.fact(f"{count} workers, no pauses: outcomes per processor second", f"{by_processor:.0f}", "-")
    table.write()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
