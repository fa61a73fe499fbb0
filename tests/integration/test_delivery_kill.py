"""kill -9 at any instant: every recorded change is told to everyone at least once, those of a source in order."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from support import delivery_victim
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

ROUNDS = 30

#: number, source and version of an event
Told = tuple[int, int, int]


def told(text: bytes | str) -> Told:
    """What an event says of itself; through Apprise, in the title of the message."""
    event = json.loads(text)
    if "message" in event:
        number, source, version = map(int, re.findall(r"[0-9]+", event["title"]))
        return number, source, version
    return event["number"], event["source"], event["version"]


@contextmanager
def receiving(scheme: str = "http", refuses: float = 0.1) -> Iterator[tuple[str, list[Told]]]:
    """A receiver of webhooks that refuses one in ten: where it listens, and the events it took."""
    taken: list[Told] = []
    rng = np.random.default_rng(3)

    class Hook(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            refuse = rng.random() < refuses
            if not refuse:
                taken.append(told(body))
            self.send_response(503 if refuse else 204)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (ConnectionError, ValueError):
                # The victim was killed in the middle of a request.
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}/", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def lived(path: Path, log: Path, hook: str, rounds: int) -> None:
    """Kill so many victims at any instant, and let others tell what is left."""
    store = SqliteStore(path)
    store.add([Listing(f"s{n}") for n in range(20)], 0.0)
    store.close()
    rng = np.random.default_rng(11)
    program = [sys.executable, str(Path(delivery_victim.__file__)), str(path), str(log), hook]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for _ in range(rounds):
            parent.stdin.write("live\n")
            parent.stdin.flush()
            victim = int(parent.stdout.readline())
            time.sleep(float(rng.uniform(0.02, 0.3)))
            os.kill(victim, signal.SIGKILL)
            assert int(parent.stdout.readline()) == signal.SIGKILL
        for _ in range(1000):
            # A victim that drains gives up when it is refused, as an engine that stops does.
            parent.stdin.write("drain\n")
            parent.stdin.flush()
            parent.stdout.readline()
            assert int(parent.stdout.readline()) == 0
            if not _left(path):
                break
        parent.stdin.close()


def in_order(numbers: list[int]) -> list[int]:
    """The numbers as each was first told; between two new ones, only what had been told before."""
    first: list[int] = []
    for number in numbers:
        if not first or number > first[-1]:
            first.append(number)
    return first


def test_every_change_is_told_at_least_once_and_in_order(tmp_path: Path) -> None:
    path, log = tmp_path / "store.db", tmp_path / "changes.jsonl"
    with receiving() as (hook, taken):
        lived(path, log, hook, ROUNDS)
    store = SqliteStore(path)
    events = store.counters()["events"]
    assert events > ROUNDS
    versions = sum(max(store.versions(source), default=0) for source in range(1, 21))
    assert events == versions == store.counters()["changed"]
    logged = [told(line) for line in log.read_bytes().decode().split("\n")[:-1]]
    assert in_order([number for number, _, _ in logged]) == list(range(1, events + 1))
    for heard in (logged, taken):
        assert {number for number, _, _ in heard} == set(range(1, events + 1))
        for source in range(1, 21):
            newest = max(store.versions(source), default=0)
            assert in_order([version for _, one, version in heard if one == source]) == list(range(1, newest + 1))
    # The kills did fall between telling and recording it.
    assert len(logged) + len(taken) > 2 * events
    store.close()


def test_through_apprise_too(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    path = tmp_path / "store.db"
    with receiving("json", 0.02) as (hook, taken):
        lived(path, tmp_path / "none", hook, 8)
    store = SqliteStore(path)
    events = store.counters()["events"]
    # Lives are short, and on a busy machine some end before they have polled.
    assert events > 2
    assert in_order([number for number, _, _ in taken]) == list(range(1, events + 1))
    for source in range(1, 21):
        # On a busy machine the lives were too short to poll everybody.
        newest = max(store.versions(source), default=0)
        assert in_order([version for _, one, version in taken if one == source]) == list(range(1, newest + 1))
    store.close()


def _left(path: Path) -> int:
    store = SqliteStore(path)
    assert store._db is not None
    left: int = store._db.execute("SELECT count(*) FROM events").get
    store.close()
    return left
