"""Replicas that lie in every way that a seed can think of, beside an honest one: nothing that is not so is taken."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.replica_peering import read_digest
from unstale.engine.peer_terms import PeerTerms
from unstale.engine.peers import PORTIONS, Peers
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Digest, Entry, Fetched, Listing

START = 1_700_000_000.0
#: times that somebody is asked
CONTACTS = 25
LIAR, HONEST = "http://liar", "http://honest"
SOURCES = [f"https://a.example/{i}" for i in range(4)]
#: what a liar announces, and what it then brings
DIGESTS = (
    "as it is", "of the future", "of long ago", "another hash", "an old copy", "no source of ours", "twice",
    "a clock that is off", "without end", "no time", "nothing", "many", "itself", "noise",
)  # fmt: skip
BODIES = ("other bytes", "nothing", "a failure", "another time", "huge", "an error page", "what it said", "never")


def _hash(data: bytes) -> bytes:
    return sha256(data).digest()


class Peering:
    """What the honest one and the liar say; `kinds` are how this one lies."""

    def __init__(self, rng: np.random.Generator, kinds: tuple[str, str]) -> None:
        self.rng, self.kinds, self.now = rng, kinds, START
        self.true = {address: b"true %d" % k for k, address in enumerate(SOURCES)}
        self.asked: Counter[str] = Counter()

    async def digest(self, peer: str, since: float, after: int, back: str = "") -> Digest:
        """What it announces."""
        self.asked[peer] += 1
        as_of = self.now - 1.0
        if peer == HONEST:
            return Digest(tuple((one, as_of, _hash(data)) for one, data in self.true.items()), self.now, None, 100)
        kind, off, further = self.kinds[0], 0.0, None
        rows = [(one, as_of, _hash(b"false")) for one in SOURCES]
        if kind == "of the future":
            rows = [(one, self.now + 10.0 ** self.rng.uniform(1, 9), digest) for one, _, digest in rows]
        elif kind == "of long ago":
            rows = [(one, 0.0, digest) for one, _, digest in rows]
        elif kind == "an old copy":
            rows = [(one, as_of, _hash(b"old")) for one in SOURCES]
        elif kind == "no source of ours":
            rows = [(f"https://b.example/{k}", as_of, _hash(b"false")) for k in range(50)]
        elif kind == "twice":
            rows = [*rows, *((one, at + 0.5, _hash(b"other")) for one, at, _ in rows)]
        elif kind == "a clock that is off":
            off = float(self.rng.choice([-1.0, 1.0]) * 10.0 ** self.rng.uniform(1, 9))
        elif kind == "without end":
            further = after + 1
        elif kind == "nothing":
            rows = []
        elif kind == "many":
            rows = rows * 50
        elif kind in ("noise", "no time"):
            try:
                said = self.rng.bytes(200) if kind == "noise" else b'{"now": 1}\n{"source": "a", "as_of": NaN}'
                rows = list(read_digest(said).rows)
            except ValueError as error:
                return Digest((), self.now, None, 200, str(error), True)
        return Digest(tuple(rows), self.now + off, further, 100)

    async def copy(self, peer: str, source: str, since: float) -> Fetched:
        """What it brings."""
        if peer == HONEST:
            return Fetched(Answer.CHANGED, self.now - 1.0, body=self.true[source], received=10, via="honest")
        kind = self.kinds[1]
        if kind in ("a failure", "never", "nothing"):
            return Fetched(Answer.FAILED, self.now, reason="it does not answer", received=0)
        at = self.now + 5.0 if kind == "another time" else self.now - 1.0
        body = b"x" * 100_000 if kind == "huge" else b"false" if kind == "what it said" else b"wrong"
        return Fetched(Answer.CHANGED, at, body=body, received=len(body), via="liar")


async def _one(seed: int) -> Counter[str]:
    kinds = (DIGESTS[seed % len(DIGESTS)], BODIES[seed // len(DIGESTS) % len(BODIES)])
    rng = np.random.default_rng([24, seed])
    peering, store, found = Peering(rng, kinds), MemoryStore(), Counter[str]()
    store.add([Listing(address) for address in SOURCES], START - 1000.0)
    for data, at in ((b"old", START - 500.0), (b"ours", START - 300.0)):
        claims = store.claim(START, 10, lease=60.0, owner="t")
        store.record([Entry(one, Answer.CHANGED, at, START - 1.0, body=Body(data)) for one in claims])

    class Clock:
        def now(self) -> float:
            return peering.now

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(0)

    async def accept(news: Sequence[tuple[int, Fetched]]) -> int:
        for source, fetched in news:
            honest = peering.true[SOURCES[source - 1]]
            # A hash binds the bytes to what was announced: a lie is what was never announced, or is no copy at all.
            body = fetched.body
            found["bogus"] += body is not None and body != honest and not _announced(body, kinds)
            found["of the future"] += fetched.polled_at > peering.now + 5.0
            found["honest copies"] += body == honest
            found["copies as announced"] += body is not None and body != honest
        return len(news)

    executor = StoreExecutor(lambda: store, threads=False)
    peers = Peers(PeerTerms((LIAR, HONEST), 1.0, asked=1), peering, executor, accept, Clock(), rng=rng)
    for _ in range(CONTACTS):
        await peers.contact()
        peering.now += 30.0
    found["honest ones left alone"] += not peering.asked[HONEST]
    found["asked without end"] += peering.asked[LIAR] > CONTACTS * PORTIONS
    found["rounds"] += 1
    return found


def _announced(body: bytes, kinds: tuple[str, str]) -> bool:
    return body == b"false" and kinds[1] == "what it said"


def liars(first: int, count: int, folder: Path) -> Counter[str]:
    """So many liars, each beside an honest replica."""
    found = Counter[str]()
    with tempfile.TemporaryDirectory(dir=folder):
        for seed in range(first, first + count):
            found.update(asyncio.run(_one(seed)))
    return found
