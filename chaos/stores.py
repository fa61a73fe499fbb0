"""Stores against each other and against who dies, sleeps or comes too late.

Rules of this file:
1. Steps are calls in any order, drawn anew from the seed: the store in memory is the model, and SQLite and PostgreSQL
   must answer as it does at every step.
2. A server is killed with all its processes while outcomes are written: what it had acknowledged is there afterwards.
3. Who slept past a lease finds that another has polled: nothing of it is applied twice, at either store.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
from failover import poll
from store_faults import SOURCES
from store_walk import Walk

from support.postgres import Postgres, postgres
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Listing

#: steps of one life of the stores, and of how many lives one has PostgreSQL beside the others: it is slow
STEPS, SHARED = 250, 40
LEASE = 30.0


def steps(first: int, count: int, folder: Path) -> Counter[str]:
    """So many steps of all stores beside each other; a difference ends the life in which it shows."""
    found: Counter[str] = Counter({"differences": 0})
    # Files in memory: what a disk does to them is asked elsewhere.
    memory = Path("/dev/shm")
    with (
        postgres() as server,
        tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else folder) as place,
    ):
        for begin in range(first, first + count, STEPS):
            with_server = begin // STEPS % SHARED == 0
            walk = Walk(begin, Path(place), server.address() if with_server else "")
            try:
                for _ in range(min(STEPS, first + count - begin)):
                    walk.step()
                    found.update({"rounds": 1, "beside PostgreSQL": int(with_server)})
                walk.end()
            except AssertionError as error:
                found["differences"] += 1
                found[f"difference in the life of {begin}: {str(error)[:1200]}"] += 1
    return found


def crashes(first: int, count: int, folder: Path) -> Counter[str]:
    """The whole server dies by kill -9 at any moment of writing, so many times, and is begun again."""
    found: Counter[str] = Counter()
    with postgres() as server:
        store = PostgresStore(server.address(), patience=60.0, own_time=False)
        store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
        for n in range(first, first + count):
            rng = np.random.default_rng([3, n])
            said: dict[int, int] = {}
            enough = threading.Event()

            def work(said: dict[int, int] = said, enough: threading.Event = enough, rng: object = rng) -> None:
                while not enough.is_set():
                    said.update(poll(store, 1, rng))

            thread = threading.Thread(target=work)
            thread.start()
            time.sleep(float(rng.uniform(0.0, 0.3)))
            kill_all(server)
            server.start()
            enough.set()
            thread.join()
            with server.connect() as link:
                there = dict(link.execute("SELECT token, source FROM unstale.observations").fetchall())
            lost = sum(there.get(token) != source for token, source in said.items())
            found.update(rounds=1, acknowledged=len(said), lost=lost, corrupt=len(store.verify()))
        store.close()
    return found


def kill_all(server: Postgres) -> None:
    """The server and its processes, without a word to any of them: all that live in the folder of its data."""
    data = server.folder / "data"
    while processes := [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cwd") if _is(path, data)]:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
    # Where nobody asks how a process has ended its number stays taken, which the next server would believe in.
    for lock in (data / "postmaster.pid", *server.folder.glob(".s.PGSQL.*.lock")):
        lock.unlink(missing_ok=True)


def _is(link: Path, folder: Path) -> bool:
    try:
        return link.readlink() == folder
    except OSError:
        return False


def sleepers(first: int, count: int, folder: Path) -> Counter[str]:
    """Two that claim of one store, of which one sleeps past its lease and then records: so many times at each store."""
    found: Counter[str] = Counter()
    with postgres() as server:
        stores = {
            "sqlite": SqliteStore(folder / f"sleepers-{first}.db"),
            "postgres": PostgresStore(server.address(), schema=f"sleepers{first}", own_time=False),
        }
        for store in stores.values():
            store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
            now = 0.0
            for n in range(first, first + count):
                rng = np.random.default_rng([10, n])
                slept = store.claim(now, int(rng.integers(1, SOURCES)), lease=LEASE, owner="sleeper")
                now += float(rng.uniform(0.5, 1.5)) * LEASE
                others = store.claim(now, SOURCES, lease=LEASE, owner="other")
                both = [*zip(slept, store.record(_answered(slept, now)), strict=True)] if rng.random() < 0.5 else []
                both += zip(others, store.record(_answered(others, now)), strict=True)
                if len(both) == len(others):
                    both += zip(slept, store.record(_answered(slept, now)), strict=True)
                taken = Counter(claim.source for claim, kept in both if kept)
                tally = store.counters()
                ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
                found["rounds"] += 1
                found["polls that came too late"] += sum(not kept for _, kept in both)
                found["applied twice"] += sum(times > 1 for times in taken.values())
                found["miscounted"] += int(tally.get("claimed", 0) != ended)
                now += 1.0
            found["corrupt"] += len(store.verify())
            store.close()
    return found


def _answered(claims: list[Claim], now: float) -> list[Entry]:
    return [Entry(claim, Answer.UNCHANGED, now, now) for claim in claims]
