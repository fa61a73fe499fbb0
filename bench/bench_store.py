"""The embedded store with a million sources: starting, claiming and recording, against a bare loop of inserts."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import apsw
import numpy as np

from harness import Table, peak_memory
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

#: floats of a learner's row; outcomes that share one sync; the share of polls that find a change
WIDTH, BATCH, CHANGED = 15, 500, 0.3
#: due times are spread over a day
SPREAD = 86400.0
BODY = 2000


def build(path: Path, sources: int) -> float:
    """A store of sources that have been polled: each has a belief, and is due at some time of a day; seconds."""
    begin = time.perf_counter()
    store = SqliteStore(path)
    rng = np.random.default_rng(1)
    for first in range(0, sources, 100_000):
        numbers = range(first, min(first + 100_000, sources))
        ids = store.add([Listing(f"https://host-{n % 9973}.example/{n:x}", host=f"{n % 9973}") for n in numbers], 0.0)
        store.set_due(ids, rng.uniform(0.0, SPREAD, len(ids)).tolist())
    took = time.perf_counter() - begin
    with connect(path) as db:
        db.execute("UPDATE beliefs SET belief = zeroblob(?), last = 0.0, found = 0.0", (8 * WIDTH,))
    store.close()
    return took


def start(path: Path) -> None:
    """What a fresh process needs until its first claim, and its memory then; printed for the parent."""
    begin = time.perf_counter()
    store = SqliteStore(path)
    fleet = store.fleet(WIDTH)
    claims = store.claim(SPREAD, BATCH, lease=60.0, owner="bench")
    took = time.perf_counter() - begin
    assert len(claims) == BATCH
    store.give_back("bench")
    print(took, peak_memory() / 2**20, len(fleet.source))


def polling(store: SqliteStore, polls: int) -> Callable[[], None]:
    """Claim and record so many polls, 30 % of them with a new body of 2 kB."""
    rng = np.random.default_rng(2)
    words = [f"{n:05d} ".encode() for n in range(1000)]
    # Bodies are made beforehand and told apart by a number: making text is not the store's work.
    texts = [b"".join(words[i] for i in rng.integers(0, 1000, BODY // 6)) for _ in range(100)]
    belief, serial = bytes(8 * WIDTH), count()
    clock = [SPREAD]

    def run() -> None:
        for _ in range(polls // BATCH):
            clock[0] += 1.0
            now = clock[0]
            entries = []
            changed, waits = rng.random(BATCH) < CHANGED, rng.uniform(1.0, SPREAD, BATCH)
            for claim, new, wait in zip(
                store.claim(now, BATCH, lease=60.0, owner="bench"), changed, waits, strict=True
            ):
                number = next(serial)
                body = Body(b"%d %s" % (number, texts[number % 100]), "text/html", '"etag"') if new else None
                answer = Answer.CHANGED if new else Answer.UNCHANGED
                entries.append(Entry(claim, answer, now, now + float(wait), belief, received=BODY, body=body))
            assert all(store.record(entries))

    return run


def inserting(path: Path, polls: int) -> Callable[[], None]:
    """The floor: the same rows of observations and nothing else, as durable, in transactions of the same size."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute(
        "CREATE TABLE observations(token INTEGER PRIMARY KEY, source INTEGER, polled_at REAL, answer INTEGER, "
        "elapsed REAL, modified REAL, bytes INTEGER, reason TEXT, previous INTEGER)"
    )
    tokens = count(1)

    def run() -> None:
        for first in range(0, polls, BATCH):
            db.execute("BEGIN IMMEDIATE")
            rows = ((next(tokens), n, 1.0, 0, 1.0, None, BODY, None, 0) for n in range(first, first + BATCH))
            db.executemany("INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            db.execute("COMMIT")

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=1_000_000)
    parser.add_argument("--polls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.start:
        start(options.start)
        return
    table = Table("store", f"{options.sources:,} sources in the embedded store, {BATCH} outcomes to a transaction")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        table.fact("sources added per second", f"{options.sources / build(path, options.sources):,.0f}", "-")
        table.fact("bytes on disk per source", f"{path.stat().st_size / options.sources:.0f}", "-")
        done = subprocess.run(
            [sys.executable, __file__, "--start", str(path)], check=True, capture_output=True, text=True
        )
        seconds, memory, _ = done.stdout.split()
        table.fact("seconds from opening to the first claim, fleet in columns", f"{float(seconds):.2f}", "5")
        table.fact("memory then, MB", f"{float(memory):.0f}", "600")
        store = SqliteStore(path)
        ours = polling(store, options.polls)
        medians = table.measure(
            f"{options.polls:,} polls",
            {"bare inserts": inserting(Path(folder) / "bare.db", options.polls), "claim and record": ours},
            reference="bare inserts",
            rounds=options.rounds,
        )
        table.fact("polls per second, durable", f"{options.polls / medians['claim and record']:,.0f}", "5,000 or more")
        table.fact("memory of the polling process, MB", f"{peak_memory() / 2**20:.0f}", "600")
        store.close()
    table.write()


if __name__ == "__main__":
    main()
