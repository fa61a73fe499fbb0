"""Those who are told: how fast a backlog drains, what a kill tells again, and a receiver that is down for a month."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from unstale.adapters import sqlite_outbox
from unstale.adapters.addresses import Gate
from unstale.adapters.sqlite_store import SqliteStore
from unstale.adapters.webhook import Webhook
from unstale.engine.deliveries import Deliveries
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Event, Listing

SOURCES, MONTH = 1000, 30 * 86400.0
TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"


class _Wall:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Receiver(asyncio.Protocol):
    """The least that can be called a receiver; it writes down number, source and version of what it takes."""

    log = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            length = int(lengths[0].split(b":")[1]) if lengths else 0
            if not end or len(rest) < length:
                return
            event = json.loads(rest[:length])
            with Path(self.log).open("a") as log:
                log.write(f"{event['number']} {event['source']} {event['version']}\n")
            self._buffer = rest[length:]
            self._transport.write(TAKEN)


def _serve(ready: Connection, log: str) -> None:
    async def play() -> None:
        _Receiver.log = log
        server = await asyncio.get_running_loop().create_server(_Receiver, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(play())


@contextmanager
def _receiving(log: Path) -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(theirs, str(log)), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        process.terminate()
        process.join()


def _heard(log: Path) -> list[tuple[int, int, int]]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(a), int(b), int(c)) for a, b, c in (line.split() for line in lines)]


def _out_of_order(heard: Sequence[tuple[int, int, int]]) -> int:
    """Versions that were first told after a later one of the same source."""
    newest: dict[int, int] = {}
    wrong = 0
    for _, source, version in dict.fromkeys(heard):
        wrong += int(version < newest.get(source, 0))
        newest[source] = max(newest.get(source, 0), version)
    return wrong


def _change(store: SqliteStore, now: float, count: int) -> None:
    claims = store.claim(now, count, lease=1e9, owner="me")
    store.record([Entry(c, Answer.CHANGED, now, now + 1.0, body=Body(b"%d" % c.token)) for c in claims])


def draining(first: int, count: int, folder: Path) -> Counter[str]:
    """A backlog to a receiver that takes what it gets: events per second, none missing, none out of order."""
    log = folder / "drained.txt"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place, _receiving(log) as address:
        path, hook = Path(place) / "store.db", Webhook(address, Gate(["127.0.0.0/8"]), secret="x" * 32)
        store = SqliteStore(path)
        store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
        store.subscribe([hook.name])
        for n in range(-(-count // SOURCES)):
            _change(store, n + 1.0, SOURCES)
        events = store.counters()["events"]
        store.close()

        async def drain() -> float:
            executor, stop = StoreExecutor(lambda: SqliteStore(path)), asyncio.Event()
            deliveries = Deliveries(executor, [hook], _Wall())
            stop.set()
            begun = time.perf_counter()
            await deliveries.run(stop, grace=600.0)
            took = time.perf_counter() - begun
            executor.close()
            return took

        took = asyncio.run(drain())
    heard = _heard(log)
    return Counter(
        {
            "rounds": events,
            "told a second": round(events / took),
            "missing": events - len({number for number, _, _ in heard}),
            "told twice": len(heard) - len(set(heard)),
            "out of order": _out_of_order(heard),
        }
    )


def killed(first: int, count: int, folder: Path) -> Counter[str]:
    """Whoever tells is killed again and again: what was told twice for it, and that nothing is missing."""
    from support import delivery_victim

    log, lines = folder / "told.txt", folder / "told.jsonl"
    for file in (log, lines):
        file.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place, _receiving(log) as address:
        path = Path(place) / "store.db"
        store = SqliteStore(path)
        store.add([Listing(f"s{n}") for n in range(20)], 0.0)
        store.close()
        rng = np.random.default_rng([3, first])
        program = [sys.executable, str(delivery_victim.__file__), str(path), str(lines), address]
        with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdin is not None
            assert parent.stdout is not None
            for n in range(count + 1):
                print("live" if n < count else "drain", file=parent.stdin, flush=True)
                victim = int(parent.stdout.readline())
                if n < count:
                    time.sleep(float(rng.uniform(0.05, 0.4)))
                    os.kill(victim, signal.SIGKILL)
                parent.stdout.readline()
            parent.stdin.close()
        store = SqliteStore(path)
        events = store.counters().get("events", 0)
        store.close()
    heard = _heard(log)
    return Counter(
        {
            "rounds": count,
            "events": events,
            "posts": len(heard),
            "missing": events - len({number for number, _, _ in heard}),
            "out of order": _out_of_order(heard),
        }
    )


def month(first: int, count: int, folder: Path) -> Counter[str]:
    """A receiver is down for a virtual month of so many changes, more than are kept; then it takes them."""
    found: Counter[str] = Counter()
    most, before = count * 5 // 6, sqlite_outbox.MOST_EVENTS
    sqlite_outbox.MOST_EVENTS = most  # type: ignore[attr-defined]
    try:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "store.db"
            store = SqliteStore(path)
            store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
            heard = asyncio.run(_month(store, count, found))
            found["kept at most"] = most
            events, dropped = store.counters()["events"], store.counters().get("untold", 0)
            # What was being told when it was dropped is told all the same.
            found["missing"] = max(events - dropped - len(set(heard)), 0)
            found["dropped and counted"] = dropped
            found["out of order"] = _out_of_order(heard)
            found["megabytes of the store"] = round(path.stat().st_size / 1e6)
            store.close()
    finally:
        sqlite_outbox.MOST_EVENTS = before  # type: ignore[attr-defined]
    return found


async def _month(store: SqliteStore, count: int, found: Counter[str]) -> list[tuple[int, int, int]]:
    heard: list[tuple[int, int, int]] = []
    made = 0

    class Ear:
        name, batch, width, up = "ear", 1, 8, False

        async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
            if not self.up:
                found["attempts while it was down"] += 1
                return 0, "down"
            heard.extend((event.number, event.source, event.version) for event in events)
            return len(events), ""

        async def close(self) -> None:
            """Nothing."""

    class Calendar:
        time = 0.0

        def now(self) -> float:
            return self.time

        async def sleep(self, seconds: float) -> None:
            nonlocal made
            self.time += seconds
            while made < count and made < count * self.time / MONTH:
                _change(store, float(made + 1), SOURCES)
                made += SOURCES
            ear.up = self.time >= MONTH
            await asyncio.sleep(0)

    ear, calendar, stop = Ear(), Calendar(), asyncio.Event()
    deliveries = Deliveries(StoreExecutor(lambda: store, threads=False), [ear], calendar, np.random.default_rng(1))
    _change(store, 0.0, SOURCES)
    running = asyncio.create_task(deliveries.run(stop))
    while not ear.up or store.events("ear", 1):
        await asyncio.sleep(0.01)
    stop.set()
    await running
    found["rounds"] = made + SOURCES
    found["virtual days"] = round(calendar.time / 86400.0)
    return heard
