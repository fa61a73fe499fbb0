"""Bits that flip in a store of copies, and files that are cut: no wrong byte is served, and a scrub finds each."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from pathlib import Path

import apsw
import numpy as np

from unstale.adapters.sqlite_store import SqliteStore
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

SOURCES = 60


def body_of(source: int) -> bytes:
    """What a source holds: words, which are compressed, and noise, which is not."""
    rng = np.random.default_rng(source)
    return b"word %d " % source * int(rng.integers(10, 200)) + rng.bytes(int(rng.integers(100, 9000)))


@functools.cache
def whole() -> tuple[bytes, tuple[tuple[int, int], ...]]:
    """A store as a file, and where in it the bytes of copies lie that stand in one piece."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "store.db"
        store = SqliteStore(path)
        store.add([Listing(f"http://example.org/{n}") for n in range(SOURCES)], 0.0)
        claims = store.claim(1.0, SOURCES, lease=60.0, owner="me")
        entries = [Entry(c, Answer.CHANGED, 1.0, 2.0, body=Body(body_of(c.source))) for c in claims]
        assert all(store.record(entries))
        store.close()
        data = path.read_bytes()
        db = apsw.Connection(str(path))
        places = []
        for (frame,) in db.execute("SELECT body FROM contents"):
            # A body that is longer than a page stands in pieces, of which the first words are enough.
            at = data.find(frame[:64])
            if at >= 0:
                places.append((at, min(len(frame), 64)))
        db.close()
    return data, tuple(places)


def flips(first: int, count: int, folder: Path) -> Counter[str]:
    """Half of them in the bytes of copies, where each must be found; half anywhere in the file; every tenth cuts it."""
    found: Counter[str] = Counter()
    data, places = whole()
    path = folder / "flipped.db"
    for n in range(first, first + count):
        rng = np.random.default_rng([9, n])
        hurt = bytearray(data)
        inside = n % 2 == 0
        if n % 10 == 9:
            del hurt[int(rng.integers(1, len(hurt))) :]
            found["cut"] += 1
        else:
            at, length = places[int(rng.integers(len(places)))] if inside else (0, len(hurt))
            hurt[at + int(rng.integers(length))] ^= 1 << int(rng.integers(8))
        path.write_bytes(hurt)
        found["rounds"] += 1
        wrong, noticed = _read(path)
        found["wrong bytes served"] += wrong
        if inside and n % 10 != 9:
            scrubbed = _scrubbed(path)
            found["flips in copies"] += 1
            found["found by reading"] += noticed
            found["found by scrub"] += scrubbed
            # Of a packed copy some bits say nothing: it is unpacked to the very bytes that were stored.
            found["without effect"] += int(not wrong and not noticed and not scrubbed)
    path.unlink(missing_ok=True)
    return found


def _read(path: Path) -> tuple[int, bool]:
    """Copies that were served with other bytes than were stored, and whether anything was refused."""
    wrong, refused = 0, False
    try:
        store = SqliteStore(path, create=False)
    except StoreError:
        return 0, True
    try:
        for source in range(1, SOURCES + 1):
            try:
                copy = store.copy(source)
                wrong += int(copy is not None and copy.body.data != body_of(copy.source))
            except StoreError:
                refused = True
    finally:
        store.close()
    return wrong, refused


def _scrubbed(path: Path) -> bool:
    """Whether a scrub finds something."""
    try:
        store = SqliteStore(path, create=False)
        try:
            return bool(store.damaged())
        finally:
            store.close()
    except StoreError:
        return True
