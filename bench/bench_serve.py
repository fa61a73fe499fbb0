"""Serving 2 kB copies to wrk over loopback: `unstale serve` as a user starts it, beside a bare server.

What is compared is processor time per answer, for wrk shares the machine. The bare server is the same one with the
smallest application there is, which sends the same bytes to everybody. Candidates take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np

from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH, kept
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing
from unstale.server.encodings import etag
from unstale.server.serving import serve

SOURCES, SIZE = 1000, 2048
#: what the fake engine does: polls a second, of which so many change something, claimed and recorded as often as
#: `unstale run` does while more are coming
POLLS, CHANGED, EVERY = 500, 0.1, 0.2
#: what a browser sends along, six fields and a cookie
BROWSER = """
wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
wrk.headers["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
wrk.headers["Accept-Language"] = "de,en-US;q=0.7,en;q=0.3"
wrk.headers["Accept-Encoding"] = "identity"
wrk.headers["Sec-Fetch-Mode"] = "navigate"
wrk.headers["DNT"] = "1"
wrk.headers["Cookie"] = "unstale=0123456789abcdef0123456789abcdef; theme=dark; seen=2026-11-01"
"""
#: what is asked for: any copy, the same with If-None-Match, a page of the list
ANY = f"""math.randomseed(7)
request = function() return wrk.format("GET", "/copies/" .. math.random(1, {SOURCES})) end
"""
AGAIN = f"""math.randomseed(7)
request = function()
  local i = math.random(1, {SOURCES})
  wrk.headers["If-None-Match"] = TAGS[i]
  return wrk.format("GET", "/copies/" .. i)
end
"""
PAGE = 60
LIST = f"""math.randomseed(7)
request = function()
  return wrk.format("GET", "/api/v1/sources?limit={PAGE}&after=" .. math.random(0, {SOURCES - PAGE}))
end
"""


class Load(NamedTuple):
    """What a run of wrk saw: answers, how many a second, processor seconds of the server, 99th percentile in ms."""

    answers: int
    rate: float
    cpu: float
    p99: float


def fill(path: Path) -> str:
    """Every source polled once, with a learner that believes in a change an hour; their ETags, as a table of Lua's."""
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
    tags = {e.claim.source: etag(sha256(e.body.data).digest(), "identity") for e in entries if e.body is not None}
    return "TAGS = {" + ", ".join(f"[{source}] = '{tag}'" for source, tag in tags.items()) + "}\n"


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
    """The bare server: the same bytes for everybody, or none for who has them."""
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % SIZE)]
    held = any(name == b"if-none-match" for name, _ in scope["headers"])
    await send({"type": "http.response.start", "status": 304 if held else 200, "headers": fields[: 1 - held]})
    await send({"type": "http.response.body", "body": b"" if held else b"a" * SIZE})


def run(ready: Connection) -> None:
    """The bare application, on the same server with the same settings."""

    def told(port: int) -> None:
        ready.send((port, os.getpid()))

    asyncio.run(serve(constant, "127.0.0.1", 0, token=None, stop=asyncio.Event(), ready=told))


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


@contextmanager
def unstale_serve(path: Path) -> Iterator[tuple[int, int]]:
    """`unstale serve` as a user starts it: its port, and its process."""
    command = [sys.executable, "-m", "unstale", "serve", "--store", str(path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=path.parent) as child:
        assert child.stdout is not None
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", child.stdout.readline())[1]  # type: ignore[index]
        try:
            yield int(port), child.pid
        finally:
            child.send_signal(signal.SIGTERM)
            assert child.wait(20) == 0, "it did not end as it should"


def used(pid: int) -> float:
    """Processor seconds of a process so far, user and system."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def wrk(place: tuple[int, int], script: Path, connections: int, seconds: int) -> Load:
    """Load on a server for some seconds."""
    port, pid = place
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    before = used(pid)
    said = subprocess.run([*command, f"http://127.0.0.1:{port}"], check=True, capture_output=True, text=True).stdout
    cpu = used(pid) - before
    assert "Non-2xx" not in said, said
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", said).groups()  # type: ignore[union-attr]
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]
    answers = int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]
    return Load(answers, rate, cpu, float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit])


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
        path = Path(folder) / "s.db"
        tags = fill(path)
        scripts = {"200, Host only": ANY, "304": tags + AGAIN, "200, six fields and a cookie": BROWSER + ANY}

        def script(text: str) -> Path:
            file = Path(folder) / "ask.lua"
            file.write_text(text)
            return file

        with unstale_serve(path) as ours, process(run) as (_, bare):

            def compare(case: str, text: str) -> list[tuple[Load, Load]]:
                """Both in turn, and the ratio of their processor time."""
                pairs = []
                for _ in range(options.rounds):
                    theirs = wrk(bare, script(text), 64, options.seconds)
                    pairs.append((wrk(ours, script(text), 64, options.seconds), theirs))
                each = {}
                for name, loads in (("bare server", [p[1] for p in pairs]), ("unstale serve", [p[0] for p in pairs])):
                    # Of all rounds together: on a busy machine some have few answers.
                    answers = max(sum(load.answers for load in loads), 1)
                    each[name] = sum(load.cpu for load in loads) / answers
                    wall = options.rounds * options.seconds / answers
                    table.row(case, name, wall, each[name], each[name] / each["bare server"], options.rounds)
                    print(f"{case}, {name}: {each[name] * 1e6:.1f} µs of processor time, {1.0 / wall:,.0f} a second")
                ratio = each["bare server"] / each["unstale serve"]
                table.fact(f"answers per CPU second against the bare server, {case}", f"{ratio:.2f}", "0.8 or more")
                return pairs

            # What needs compiling is compiled, which goes on when nobody waits any more; copies are in memory.
            with urlopen(f"http://127.0.0.1:{ours[0]}/api/v1/sources?limit={PAGE}", timeout=300) as page:
                page.read()
            wrk(ours, script(ANY), 8, options.seconds)
            for case, text in scripts.items():
                compare(case, text)
            with process(write, path) as (writer, _):
                for case in ("304", "200, six fields and a cookie"):
                    # What is polled changes its ETag meanwhile: some of the 304 become 200.
                    pairs = compare(f"{case}, while an engine writes", scripts[case])
                    waits = statistics.median(mine.p99 / theirs.p99 for mine, theirs in pairs)
                    table.fact(f"99th percentile against the bare server's, {case}", f"{waits:.2f}", "2 or less")
                writer.send(0)
                table.fact("polls per second recorded meanwhile", f"{writer.recv():,.0f}", f"{POLLS}")
            pages = [wrk(ours, script(LIST), 8, options.seconds) for _ in range(options.rounds)]
            each = sum(page.answers for page in pages) / sum(page.cpu for page in pages)
            table.fact(f"pages of {PAGE} sources per CPU second", f"{each:,.0f}", "1,000 or more")
    table.write()


if __name__ == "__main__":
    main()
