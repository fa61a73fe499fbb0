"""A process that polls for ever and is killed: it tells through a pipe what the store has acknowledged.

Run as a program it is the victims' parent, which has imported everything: each line of its input begets one.
"""

from __future__ import annotations

import os
import struct
import sys

import numpy as np

from unstale.adapters import sqlite_states
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry

#: a word of the pipe: p(rocess id), b(egun), c(laimed token), r(ecorded token), e(nd: how the process ended)
WORD = struct.Struct("<cq")
#: the test reads the store with the same limits
LIMITS = {"horizon": 60.0, "versions": 2}


def main(path: str) -> None:
    """Beget a victim for each line, tell its process id, and how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(path, int(line))
        tell(b"p", child)
        tell(b"e", os.waitpid(child, 0)[1])


def live(path: str, seed: int) -> None:
    """Claim, look and record until killed. A source's belief counts its outcomes, its copy names the newest change."""
    rng = np.random.default_rng(seed)
    # Old states go, and places are kept, in nearly every call, as in a large fleet.
    sqlite_states.SPARE, sqlite_states.RATE = 3, 1 / 3
    store = SqliteStore(path, **LIMITS)
    store.give_back("victim")
    fleet = store.fleet(1)
    counts = dict(zip(fleet.source.tolist(), fleet.beliefs[:, 0].tolist(), strict=True))
    now = float(store.counters().get("claimed", 0))
    tell(b"b", 0)
    while True:
        now += 1.0
        claims = store.claim(now, int(rng.integers(1, 9)), lease=1e9, owner="victim")
        entries = []
        for claim in claims:
            tell(b"c", claim.token)
            counts[claim.source] += 1.0
            changed = bool(rng.random() < 0.5)
            # Neighbouring tokens bring equal bodies, so that versions share contents.
            body = Body(b"%d " % (claim.token // 4) * 50) if changed else None
            entries.append(
                Entry(
                    claim,
                    Answer.CHANGED if changed else Answer.UNCHANGED,
                    now,
                    now + float(rng.integers(1, 20)),
                    np.array([counts[claim.source]]).tobytes(),
                    body=body,
                )
            )
        assert all(store.record(entries, settings={"now": str(now).encode()}))
        for claim in claims:
            tell(b"r", claim.token)


def tell(kind: bytes, number: int) -> None:
    """One word, whole or not at all: a pipe takes so few bytes at once."""
    os.write(1, WORD.pack(kind, number))


if __name__ == "__main__":
    main(sys.argv[1])
