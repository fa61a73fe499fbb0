"""Serving 2 kB copies to wrk over loopback: our replica beside the bare server, and while an engine writes."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from harness import Table
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH, kept
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing
from unstale.server.app import replica
from unstale.server.serving import serve

SOURCES, SIZE = 1000, 2048
#: what the fake engine does: polls a second, of which so many change something, recorded so often
POLLS, CHANGED, EVERY = 500, 0.1, 0.05
SCRIPT = f"""math.randomseed(7)
request = function() return wrk.format("GET", "/copies/" .. math.random(1, {SOURCES})) end
"""


def fill(path: Path) -> None:
    """Every source polled once, with a learner that believes in a change an hour."""
    rng, now = np.random.default_rng(1), time.time()
    words = [b"%x" % word for word in rng.integers(0, 2**32, 500)]
    learner = Learner(0, 60.0)
    learner.shared.prior[:] = 1.0, 3600.0
    store = SqliteStore(path)
    store.add([Listing(f"https://a.example/{i}") for i in range(SOURCES)], now)
    entries = [
        Entry(
            claim,
            Answer.CHANGED,
            now,
            now + float(rng.uniform(1.0, 2.0 * SOURCES / POLLS)),
            bytes(8 * WIDTH),
            body=Body(b" ".join(words[i] for i in rng.integers(0, 500, SIZE // 5))[:SIZE], "text/plain"),
        )
        for claim in store.claim(now, SOURCES, lease=60.0, owner="bench")
    ]
    store.record(entries, settings={"learner": kept(learner)})
    store.close()


def write(path: Path, ready: Connection) -> None:
    """An engine's writing and nothing else: claim what is due, record it, at 500 polls a second."""
    rng, store = np.random.default_rng(2), SqliteStore(path)
    ready.send(0)
    begin, done = time.perf_counter(), 0
    while not ready.poll():
        wanted = int((time.perf_counter() - begin) * POLLS) - done
        now = time.time()
        entries = []
        for claim in store.claim(now, wanted, lease=60.0, owner="bench"):
            new = rng.random() < CHANGED
            body = Body(rng.bytes(SIZE), "text/plain") if new else None
            due = now + float(rng.uniform(0.5, 1.5)) * SOURCES / POLLS
            entries.append(
                Entry(claim, Answer.CHANGED if new else Answer.UNCHANGED, now, due, bytes(8 * WIDTH), body=body)
            )
        store.record(entries)
        done += len(entries)
        time.sleep(EVERY)
    ready.send(done / (time.perf_counter() - begin))
    store.close()


async def constant(scope: Any, receive: Any, send: Any) -> None:
    """The bare server: the same bytes for everybody."""
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % SIZE)]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": b"a" * SIZE})


def run(path: Path | None, ready: Connection) -> None:
    """Our application, or the bare one, on the same server with the same settings."""
    app = constant if path is None else replica(SqliteReplica(path))
    asyncio.run(serve(app, "127.0.0.1", 0, token=None, stop=asyncio.Event(), ready=ready.send))


@contextmanager
def process(target: Callable[..., None], *given: object) -> Iterator[tuple[Connection, Any]]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    child = spawn.Process(target=target, args=(*given, theirs), daemon=True)
    child.start()
    try:
        yield ours, ours.recv()
    finally:
        child.terminate()
        child.join()


def wrk(port: int, script: Path, connections: int, seconds: int) -> tuple[float, float]:
    """Requests per second, and the 99th percentile of the wait in milliseconds."""
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        str(script),
        f"http://127.0.0.1:{port}",
    ]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in said, said
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    rate = re.search(r"Requests/sec:\s+([\d.]+)", said)[1]  # type: ignore[index]
    return float(rate), float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        print("wrk is not installed: nothing measured (apt-get install wrk)")
        return
    table = Table("serve", f"{SOURCES:,} copies of {SIZE} bytes over loopback, wrk on the same machine")
    with tempfile.TemporaryDirectory() as folder:
        path, script = Path(folder) / "s.db", Path(folder) / "ask.lua"
        script.write_text(SCRIPT)
        fill(path)
        with process(run, path) as (_, ours), process(run, None) as (_, bare):
            rates: dict[str, list[float]] = {"replica": [], "bare": []}
            for _ in range(options.rounds):
                rates["bare"].append(wrk(bare, script, 64, options.seconds)[0])
                rates["replica"].append(wrk(ours, script, 64, options.seconds)[0])
            ratios = [mine / theirs for mine, theirs in zip(rates["replica"], rates["bare"], strict=True)]
            for name, each in rates.items():
                table.fact(f"requests per second, {name}", f"{statistics.median(each):,.0f}", "-")
            table.fact("rate against the bare server", f"{statistics.median(ratios):.2f}", "0.5 or more")
            with process(write, path) as (writer, _):
                waits = [wrk(ours, script, 200, options.seconds) for _ in range(options.rounds)]
                writer.send(0)
                polls = writer.recv()
            alone = [wrk(bare, script, 200, options.seconds)[1] for _ in range(options.rounds)]
            table.fact("polls per second recorded meanwhile", f"{polls:,.0f}", f"{POLLS}")
            table.fact("requests per second meanwhile", f"{statistics.median(r for r, _ in waits):,.0f}", "-")
            table.fact("99th percentile at 200 connections, ms", f"{statistics.median(w for _, w in waits):.1f}", "20")
            table.fact("the same of the bare server without an engine, ms", f"{statistics.median(alone):.1f}", "-")
    table.write()


if __name__ == "__main__":
    main()
