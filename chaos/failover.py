"""Failover: the PostgreSQL server dies, and a replica that was a little behind it takes over.

Rules of this file:
1. One store, whose address names both servers, lives through it: it is never told that there was a failover.
2. What was acknowledged after the replica's last word is lost, as with every asynchronous replica: that is counted, and
   nothing else may be missing. Its sources are polled again, for they are due as the replica knows them.
3. A claim made at the old server is none at the new one: what comes of it is taken only if it is the same claim, and
   its number is not given to another poll.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np
from store_faults import SOURCES, body_of

from support.postgres import PATIENCE, Postgres, postgres, programs, run
from unstale.adapters.postgres_store import PostgresStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Entry, Listing

#: outcomes that are acknowledged before the replica falls behind, and at most after: more than a sequence logs ahead
BEFORE, AFTER = 40, 80


def failover(first: int, count: int, folder: Path) -> Counter[str]:
    """So many of them, one after the other; who took over is the server that dies next."""
    found: Counter[str] = Counter()
    with postgres() as server:
        other = Postgres(server.folder.parent / f"{server.folder.name}b")
        both = quote(f"{server.folder},{other.folder}", safe=",")
        dsn = f"postgresql://postgres@/postgres?host={both}&target_session_attrs=read-write"
        living = server
        try:
            store = PostgresStore(dsn, patience=60.0, own_time=False)
            store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
            for n in range(first, first + count):
                dying, living = living, other if living is server else server
                with _replica(dying, living):
                    found.update(_round(store, dying, living, np.random.default_rng([4, n])))
            store.close()
        finally:
            if living is not server:
                living.stop()
                # The one that the context ends is stopped already: it is made once more, to be ended.
                with suppress(AssertionError):
                    server.start()
            shutil.rmtree(other.folder, ignore_errors=True)
    return found


@contextmanager
def _replica(source: Postgres, at: Postgres) -> Iterator[None]:
    """A running replica of a server, in the other's folder."""
    at.folder.mkdir(exist_ok=True)
    if not (at.folder / "programs").exists() and (source.folder / "programs").exists():
        (at.folder / "programs").symlink_to(source.folder / "programs")
    if os.geteuid() == 0:
        shutil.chown(at.folder, "nobody")
    data = at.folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    words = ("-h", str(source.folder), "-U", "postgres", "-D", str(data), "-R", "-X", "stream", "-c", "fast", "-N")
    run(programs() / "pg_basebackup", *words)
    at.start()
    _until(source, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", 1)
    yield


def _round(store: PostgresStore, dying: Postgres, living: Postgres, rng: np.random.Generator) -> Counter[str]:
    said = poll(store, BEFORE, rng)
    with dying.connect() as link:
        here = link.execute("SELECT pg_current_wal_lsn()::text").fetchone()
        assert here is not None
    _until(living, f"SELECT (pg_last_wal_replay_lsn() >= '{here[0]}')::int", 1)
    living.run("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
    _until(dying, "SELECT count(*) FROM pg_stat_replication", 0)
    tail = poll(store, int(rng.integers(0, AFTER)), rng)
    held = store.claim(_now(), 4, lease=1e9, owner="me")
    dying.crash()
    begun = time.monotonic()
    run(programs() / "pg_ctl", "-w", "-t", str(PATIENCE), "-D", str(living.folder / "data"), "promote")
    late = store.record(_entries(held))
    seconds = time.monotonic() - begun
    # Whoever worked there is gone: its claims are given back, as at every start.
    store.give_back("me")
    again = poll(store, 3 * SOURCES, rng)
    with living.connect() as link:
        there = dict(link.execute("SELECT token, source FROM unstale.observations").fetchall())
    known, lost = {**said, **again}, {t: s for t, s in tail.items() if there.get(t) != s}
    falsely = [c for c, taken in zip(held, late, strict=True) if taken and there.get(c.token) != c.source]
    return Counter(
        {
            "rounds": 1,
            "acknowledged": len(said) + len(tail) + len(again),
            "of the lost tail": len(lost),
            "lost beside the tail": sum(there.get(token) != source for token, source in known.items()),
            "not polled again": len(set(lost.values()) - set(again.values())),
            "numbers given twice": len(set(again) & (set(tail) | {claim.token for claim in held})),
            "false words": len(falsely),
            "corrupt": len(store.verify()),
            "over 10 s": int(seconds > 10.0),
        }
    )


def poll(store: PostgresStore, wanted: int, rng: np.random.Generator) -> dict[int, int]:
    """Outcomes that the store has acknowledged, at least so many: sources by token."""
    said: dict[int, int] = {}
    while len(said) < wanted:
        claims = store.claim(_now(), int(rng.integers(1, 6)), lease=1e9, owner="me")
        for claim, taken in zip(claims, store.record(_entries(claims)), strict=True):
            if taken:
                said[claim.token] = claim.source
    return said


def _entries(claims: Sequence[Claim]) -> list[Entry]:
    now = _now()
    return [Entry(claim, Answer.CHANGED, now, now, body=Body(body_of(claim.token))) for claim in claims]


def _now() -> float:
    return time.time()


def _until(server: Postgres, question: str, answer: int) -> None:
    deadline = time.monotonic() + PATIENCE
    with server.connect() as link:
        while (row := link.execute(question.encode()).fetchone()) is None or row[0] != answer:
            if time.monotonic() > deadline:
                raise TimeoutError(question)
            time.sleep(0.02)
