"""The store on a disk that forgets, tears and refuses: power cuts, every Nth operation failing, no room left."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import apsw
import numpy as np
from disk import Disk, PowerCut, installed

from unstale.adapters.sqlite_store import SqliteStore
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

#: sources of the store, and rounds of polls that one life has
SOURCES, POLLS = 12, 12
#: operations that a life has at most, and the step in which they are gone through, so that some tell of all
EVERY, STRIDE = 1_000, 389
#: power cuts within one life
CUTS = 25


def body_of(token: int) -> bytes:
    """What the poll with this token brings: more than a page of SQLite, and not to be compressed away."""
    return np.random.default_rng(token).bytes(6000)


def live(path: Path, disk: Disk, seed: int) -> None:
    """Open the store, add, poll, tell, read; every outcome that the store has acknowledged is said to the disk."""
    rng = np.random.default_rng(seed)
    store = SqliteStore(path)
    try:
        if not store.counters().get("added"):
            store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
        store.give_back("me")
        store.subscribe(["ear"])
        now = float(store.counters().get("claimed", 0))
        for _ in range(POLLS):
            now += 1.0
            claims = store.claim(now, int(rng.integers(1, 6)), lease=1e9, owner="me")
            entries = [Entry(c, Answer.CHANGED, now, now + 1.0, body=Body(body_of(c.token))) for c in claims]
            for claim, kept in zip(claims, store.record(entries), strict=True):
                assert kept
                disk.said(claim.token)
            events = store.events("ear", 4)
            if events:
                store.told("ear", events[-1].number)
        store.copy(1)
    finally:
        store.close()


def judge(path: Path, said: set[int]) -> Counter[str]:
    """How a store stands that was left by a fault: lost, torn or corrupt, by what it had acknowledged."""
    found: Counter[str] = Counter()
    try:
        store = SqliteStore(path, create=False)
    except StoreError:
        # A store of which nothing was acknowledged may not be there.
        return Counter(lost=len(said))
    try:
        db = store._db
        assert db is not None
        recorded = {token for (token,) in db.execute("SELECT token FROM observations")}
        found["acknowledged"] = len(said)
        found["lost"] = len(said - recorded)
        found["corrupt"] = len(store.verify())
        tally = store.counters()
        held = db.execute("SELECT count(*) FROM leases").get
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        found["miscounted"] = int(tally.get("claimed", 0) != ended + held) + int(
            tally.get("recorded", 0) != len(recorded)
        )
        for source in range(1, SOURCES + 1):
            seen = store.observations(source, 1)
            if seen:
                copy = store.copy(source)
                found["torn"] += int(copy is None or copy.body.data != body_of(seen[0].token))
    except StoreError:
        found["corrupt"] += 1
    finally:
        store.close()
    return found


def power_cuts(first: int, count: int, folder: Path) -> Counter[str]:
    """Lives whose power is cut at random operations; each cut is judged on an image of what the disk may hold."""
    found: Counter[str] = Counter()
    for seed in range(first, first + count, CUTS):
        rng = np.random.default_rng([5, seed])
        with tempfile.TemporaryDirectory(dir=folder) as place:
            disk, path = Disk(), Path(place) / "store.db"
            # Made before: a new store is made under another name and linked, which no journal of writes shows.
            SqliteStore(path).close()
            base = path.read_bytes()
            with installed(disk):
                live(path, disk, seed)
            cut = PowerCut()
            cut.has("store.db", base)
            moments = np.sort(rng.integers(0, len(disk.journal), min(CUTS, first + count - seed)))
            played = 0
            for moment in moments:
                for operation in disk.journal[played : int(moment)]:
                    cut.play(operation)
                played = int(moment)
                image = Path(place) / "image"
                image.mkdir()
                found["harmed writes"] += cut.image(image, rng)
                found["rounds"] += 1
                found.update(judge(image / "store.db", cut.said))
                shutil.rmtree(image)
    return found


def failing(first: int, count: int, folder: Path) -> Counter[str]:
    """In each life another operation fails, once or from then on, with an error or for want of room; all of them, and
    some that no life comes to, in `EVERY` rounds."""
    found: Counter[str] = Counter()
    ways = [(False, apsw.IOError), (True, apsw.IOError), (False, apsw.FullError), (True, apsw.FullError)]
    for n in (1 + STRIDE * k % EVERY for k in range(first, first + count)):
        for for_ever, error in ways:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                path = Path(place) / "store.db"
                disk = Disk(fail_at=n, for_ever=for_ever, error=error)
                with installed(disk):
                    try:
                        live(path, disk, 7)
                    except StoreError:
                        found["refused in one sentence"] += 1
                    except Exception as fault:
                        found["crashes"] += 1
                        found[f"crash: {type(fault).__name__}: {fault}"[:100]] += 1
                found["rounds"] += 1
                if not disk.failed:
                    found["clean runs"] += 1
                said = {one.offset for one in disk.journal if one.kind == "said"}
                if said or path.exists():
                    found.update(judge(path, said))
                    # It heals: the same life goes on where there is a disk again.
                    again = Disk()
                    live(path, again, 8)
                    found["healed"] += 1
    return found
