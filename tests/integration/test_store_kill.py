"""kill -9 at any instant: what was acknowledged is there, once; what was not is there whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import numpy as np

from support import store_victim
from support.store_victim import LIMITS, WORD
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

ROUNDS, SOURCES = 100, 40


def _word(pipe: IO[bytes]) -> tuple[bytes, int]:
    kind, number = WORD.unpack(pipe.read(WORD.size))
    return kind, number


def _kill_one(parent: subprocess.Popen[bytes], seed: int, words: int, after: float) -> tuple[set[int], set[int]]:
    """Let a victim say so many words and live for so many seconds more, busy as the machine may be.

    The tokens it had claimed, and those the store had acknowledged.
    """
    assert parent.stdin is not None
    assert parent.stdout is not None
    parent.stdin.write(b"%d\n" % seed)
    parent.stdin.flush()
    told: dict[bytes, list[int]] = {b"p": [], b"b": [], b"c": [], b"r": []}
    while not (told[b"p"] and told[b"b"] and len(told[b"c"]) + len(told[b"r"]) >= words):
        kind, number = _word(parent.stdout)
        told[kind].append(number)
    time.sleep(after)
    os.kill(told[b"p"][0], signal.SIGKILL)
    while (word := _word(parent.stdout))[0] != b"e":
        told[word[0]].append(word[1])
    assert word[1] == signal.SIGKILL
    return set(told[b"c"]), set(told[b"r"])


def test_nothing_acknowledged_is_lost_or_applied_twice(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path, **LIMITS)
    ids = store.add([Listing(f"s{n}") for n in range(SOURCES)], 0.0)
    store.close()
    program = [sys.executable, str(Path(store_victim.__file__)), str(path)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        _kill_many(parent, path, ids)
        assert parent.stdin is not None
        parent.stdin.close()


def _kill_many(parent: subprocess.Popen[bytes], path: Path, ids: list[int]) -> None:
    rng = np.random.default_rng(7)
    acknowledged: set[int] = set()
    unknown = last_seen = 0
    for n in range(ROUNDS):
        claimed, recorded = _kill_one(parent, n, int(rng.integers(0, 80)), float(rng.uniform(0.0, 0.01)))
        store = SqliteStore(path, **LIMITS)
        db = store._db
        assert db is not None
        new = {t for (t,) in db.execute("SELECT token FROM observations WHERE token > ?", (last_seen,))}
        # Acknowledged is recorded; recorded is acknowledged, or was in the one call that the kill interrupted.
        assert recorded <= new
        assert new <= claimed
        assert len(new - recorded) <= 8
        unknown += len(new - recorded)
        acknowledged |= new
        tally = store.counters()
        last_seen = tally.get("claimed", 0)
        held = db.execute("SELECT count(*) FROM leases").get
        assert last_seen == tally.get("recorded", 0) + tally.get("given_back", 0) + held
        assert tally.get("recorded", 0) == len(acknowledged) == tally.get("changed", 0) + tally.get("unchanged", 0)
        # Every source is waiting or claimed, and its belief has counted each of its outcomes once.
        with store._at_once() as now:
            places = now.execute("SELECT source FROM sched UNION ALL SELECT source FROM leases ORDER BY 1").fetchall()
        assert [source for (source,) in places] == ids
        fleet = store.fleet(1)
        assert fleet.beliefs.sum() == len(acknowledged)
        for source in ids:
            row = db.execute("SELECT latest, belief FROM checkpoints WHERE source = ?", (source,)).fetchone()
            latest, counted = (row[0], np.frombuffer(row[1])[0]) if row else (0, 0.0)
            after = [o for o in store.observations(source, 100_000) if o.token > latest]
            assert counted + len(after) == fleet.beliefs[ids.index(source), 0]
            changes = [o.token for o in after if o.answer.value == "changed"]
            if changes:
                copy = store.copy(source)
                assert copy is not None
                assert copy.body.data == b"%d " % (changes[0] // 4) * 50
        # Places that were kept agree with the states, of which there are few more than sources.
        newest = dict(db.execute("SELECT source, max(id) FROM states GROUP BY source"))
        assert {source: db.places.of(source) for source in ids} == newest
        assert db.execute("SELECT count(*) FROM states").get < 1.8 * SOURCES + 40
        if n % 20 == 0:
            assert store.verify() == []
        store.close()
    assert len(acknowledged) > 10 * ROUNDS
    # The kills did fall between commit and acknowledgement too, so the promise was put to the test.
    assert unknown > 0
