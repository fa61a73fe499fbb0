"""kill -9 at any instant: of a process that polls, adds, backs up, restores or brings a store up to this version.

A victim is a fork of this process, which has imported everything: most of its life is work and not its start.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np
from disk import Disk
from store_faults import SOURCES, judge, live

from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.adapters.sqlite_tables import MIGRATIONS
from unstale.errors import StoreError
from unstale.ports import Listing

#: sources that one call adds, all or none, and those of the store that is backed up and brought up
MANY = 300


def killed(work: Callable[[int], None], after: float) -> tuple[bool, list[int]]:
    """Run work in a fork and kill it after so many seconds, if it still lives; whether it did, and what it said.

    Work says numbers by writing lines to the handle that it gets.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            work(writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    ended = os.waitpid(child, 0)[1]
    with os.fdopen(reading, "rb") as pipe:
        said = [int(line) for line in pipe.read().split(b"\n")[:-1]]
    if os.WIFEXITED(ended) and os.WEXITSTATUS(ended):
        raise RuntimeError("a victim failed by itself")
    return os.WIFSIGNALED(ended), said


class _Telling(Disk):
    """A disk that passes on what the store acknowledged."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle

    def said(self, number: int) -> None:
        os.write(self._handle, b"%d\n" % number)


def polling(first: int, count: int, folder: Path) -> Counter[str]:
    """A store that lives through kills of whoever polls; the time from a start to its first acknowledged outcome."""
    found: Counter[str] = Counter()
    path, said = folder / "polled.db", set[int]()
    for n in range(first, first + count):
        rng = np.random.default_rng([1, n])

        def work(handle: int, seed: int = n) -> None:
            while True:
                live(path, _Telling(handle), seed)

        hit, words = killed(work, float(rng.uniform(0.0, 0.12)))
        found["rounds"] += hit
        said |= set(words)
        if path.exists() and (n % 10 == 9 or n == first + count - 1):
            found.update(judge(path, said))
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    # Judged again and again, each is counted once.
    found["acknowledged"] = len(said)
    return found


def commands(first: int, count: int, folder: Path) -> Counter[str]:
    """Adding, backing up and bringing up, each killed: whole or not at all."""
    found: Counter[str] = Counter()
    for n in range(first, first + count):
        rng = np.random.default_rng([2, n])
        with tempfile.TemporaryDirectory(dir=folder) as place:
            _KINDS[n % len(_KINDS)](Path(place), float(rng.uniform(0.0, 0.06)), found)
    return found


def _adding(place: Path, after: float, found: Counter[str]) -> None:
    path = place / "store.db"

    def work(handle: int) -> None:
        store = SqliteStore(path)
        for batch in range(1000):
            store.add([Listing(f"http://example.org/{batch}/{i}") for i in range(MANY)], 0.0)
            os.write(handle, b"%d\n" % batch)

    hit, said = killed(work, after)
    found["rounds"] += hit
    found["adds"] += hit
    if said or path.exists():
        store = SqliteStore(path)
        there = store.counters().get("added", 0)
        found["lost"] += int(there < MANY * len(said))
        found["halves"] += int(there % MANY != 0)
        found["corrupt"] += len(store.verify())
        store.close()


def _backing_up(place: Path, after: float, found: Counter[str]) -> None:
    path, target = place / "store.db", place / "backup.db"
    live(path, Disk(), 3)

    def work(handle: int) -> None:
        replica = SqliteReplica(path)
        for n in range(1000):
            replica.backup(target if n == 0 else place / f"backup{n}.db")

    hit, _ = killed(work, after)
    found["rounds"] += hit
    found["backups"] += hit
    for file in place.glob("backup*.db"):
        made = SqliteReplica(file)
        found["corrupt"] += len(made.verify())
        found["lost"] += int(made.counters().get("added", 0) != SOURCES)
        made.close()
    found["corrupt"] += len(SqliteStore(path).verify())


def _bringing_up(place: Path, after: float, found: Counter[str]) -> None:
    path = place / "store.db"
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL")
    made = SqliteStore(place / "new.db")
    identity = made._db.pragma("application_id") if made._db is not None else 0
    made.close()
    db.execute(MIGRATIONS[0])
    db.execute("INSERT INTO settings(name, value) VALUES ('kept', x'07')")
    db.pragma("application_id", identity)
    db.pragma("user_version", 1)
    db.close()

    def work(handle: int) -> None:
        SqliteStore(path).close()
        os.write(handle, b"1\n")
        time.sleep(9.0)

    # Bringing up a small store takes a few milliseconds.
    hit, _ = killed(work, after / 4)
    found["rounds"] += hit
    found["migrations"] += hit
    db = apsw.Connection(str(path))
    found["stopped on the way"] += int(db.pragma("user_version") < len(MIGRATIONS))
    db.close()
    try:
        store = SqliteStore(path)
    except StoreError:
        found["corrupt"] += 1
        return
    found["lost"] += int(store.setting("kept") != b"\x07")
    found["corrupt"] += len(store.verify())
    store.close()


_KINDS = (_adding, _backing_up, _bringing_up)
