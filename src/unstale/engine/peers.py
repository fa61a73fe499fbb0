"""Replicas that help each other: now and then ask a random one what it holds, and take what is newer than ours.

Rules of this file:
1. What a peer says is weighed by the time at which its copy was equal to the source, never by when it reached us.
2. A body counts only with the SHA-256 that was announced for it. Who announces what is not so is left alone.
3. If both ends take, whoever is asked asks back, if it has the other among its own peers: it fetches by itself what it
   takes, so nobody can make it take anything, and what it asks back is not answered by a third question.
4. Peers share what they have within a bound of bytes per second; polls of sources do not pay for it.
5. Peers are named in the settings, or heard of from whoever is polled, which keeps a list of who polls (`heard`). Those
   heard of come and go with these lists: whom no list names any more is forgotten.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import numpy as np

from unstale.engine.budget import Bucket
from unstale.engine.clock import Jumps
from unstale.engine.peer_lists import PeerLists
from unstale.engine.peer_state import Peer
from unstale.engine.peer_terms import MOST, PeerTerms
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.logs import Tell, logged
from unstale.ports import Clock, Fetched, Peering, Store

News = Sequence[tuple[int, Fetched]]

#: seconds by which another machine's clock may be off, and by which what is asked for overlaps what was asked before:
#: a poll that began earlier may have ended later
SKEW, OVERLAP = 5.0, 60.0
#: portions of a digest read in one contact, and copies fetched at a time
PORTIONS, TOGETHER = 50, 8
#: times differ by what headers cut off
TICK = 0.002
#: seconds for which a peer that failed rests, doubled each time up to the second; and one that said what is not so
REST, REST_AT_MOST = 2.0, 600.0
BAN, BAN_AT_MOST = 3600.0, 86_400.0
#: doubtful things that a peer may say before it is taken for a liar: a source may go back to what it was
PATIENCE = 3


class Peers:
    """Asks peers and hands on what they have that is newer.

    `accept` takes news into the store and says how many it took; `tell(name, facts)` hears of events.
    """

    def __init__(
        self,
        config: PeerTerms,
        peering: Peering,
        executor: StoreExecutor[Store],
        accept: Callable[[News], Awaitable[int]],
        clock: Clock,
        *,
        rng: np.random.Generator | None = None,
        tell: Tell = lambda name, facts: None,
    ) -> None:
        self.config, self.peers = config, {address: Peer(address) for address in config.peers}
        self._peering, self._executor, self._accept, self._clock = peering, executor, accept, clock
        self._lists = PeerLists()
        self._tell = logged(tell)
        self._rng = rng or np.random.default_rng()
        # A body may be larger than a second's share: it is then owed.
        self._bucket = Bucket(config.share, 60.0 * config.share, clock.now())
        self._jumps = Jumps(clock)

    async def run(self, stop: asyncio.Event) -> None:
        """Contact random peers at random times until `stop` is set."""
        stopping = asyncio.ensure_future(stop.wait())
        contacts: set[asyncio.Task[Any]] = set()
        try:
            while not stop.is_set():
                pause = asyncio.ensure_future(self._clock.sleep(float(self._rng.exponential(1.0 / self.config.rate))))
                await asyncio.wait({pause, stopping}, return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
                if not stop.is_set() and len(contacts) <= len(self.peers):
                    task = asyncio.create_task(self.contact())
                    contacts.add(task)
                    task.add_done_callback(contacts.discard)
        finally:
            stopping.cancel()
            for task in contacts:
                task.cancel()
            await asyncio.gather(*contacts, return_exceptions=True)

    async def asked_by(self, address: str) -> int:
        """Ask a peer that has asked us, unless it rests or is none of ours; how much was taken."""
        peer, now = self.peers.get(address), self._time()
        if peer is None or peer.resting > now or self._bucket.level(now) <= 0.0:
            return 0
        return await self._ask(peer, None, "")

    def heard(self, source: str, replicas: Sequence[str]) -> None:
        """Whoever we polled names the others that poll this source, newest first."""
        for address in self._lists.heard(source, replicas):
            # Who lied is remembered.
            if address in self.peers and address not in self.config.peers and not self.peers[address].bans:
                del self.peers[address]
        for address in replicas:
            if address not in self.peers and len(self.peers) < MOST:
                self.peers[address] = Peer(address)

    async def contact(self) -> int:
        """Ask as many peers as the config say, none that rests, others for those who fail; how much was taken."""
        now = self._time()
        awake = [peer for peer in self.peers.values() if peer.resting <= now]
        if not awake or self._bucket.level(now) <= 0.0:
            return 0
        if self.config.choose == "recent":
            recent = self._lists.recent(self.config.asked)
            return await self._ask_each([peer for peer in awake if peer.address in recent], recent)
        order = [awake[i] for i in self._rng.permutation(len(awake)).tolist()]
        chosen, spare = order[: self.config.asked], order[self.config.asked :]
        taken = await self._ask_each(chosen)
        return taken + await self._ask_each(spare[: sum(peer.resting > now for peer in chosen)])

    def view(self) -> list[dict[str, Any]]:
        """How things stand with all peers, in plain JSON."""
        now = self._time()
        rows = [asdict(peer) for peer in self.peers.values()]
        return [{**row, "resting": max(row["resting"] - now, 0.0)} for row in rows]

    async def _ask_each(self, peers: Sequence[Peer], only: Mapping[str, set[str]] | None = None) -> int:
        """Ask these at once, each for all sources or for `only` some of them."""
        asked = [(peer, None if only is None else only[peer.address]) for peer in peers]
        return sum(await asyncio.gather(*(self._ask(peer, some, self.config.here) for peer, some in asked)))

    async def _ask(self, peer: Peer, only: set[str] | None, back: str) -> int:
        """Take what a peer has that is newer, of all sources or `only` of some; whom to ask in turn is told."""
        peer.contacts += 1
        begun, taken, after = self._time(), 0, 0
        for _ in range(PORTIONS):
            digest = await self._peering.digest(peer.address, peer.seen - OVERLAP, after, back if after == 0 else "")
            self._pay(peer, digest.received)
            if digest.reason:
                self._failed(peer, digest.reason, false=digest.false)
                return taken
            now = self._time()
            if abs(digest.now - now) > SKEW:
                self._failed(peer, f"its clock is {digest.now - now:+.0f} s off ours: set both by NTP")
                return taken
            if any(as_of > now + SKEW for _, as_of, _ in digest.rows):
                self._failed(peer, "its copies are from the future", false=True)
                return taken
            try:
                rows = digest.rows if only is None else [row for row in digest.rows if row[0] in only]
                found, whole = await self._compare(peer, rows)
                taken += await self._accept(found) if found else 0
            except StoreError as error:
                self._failed(peer, str(error))
                return taken
            if not whole:
                # Out of bytes, or it failed us: what is left is asked for again.
                return taken
            if digest.further is None:
                # Of sources that were passed over, what it holds is not known.
                peer.seen, peer.in_row = min(begun, now) if only is None else peer.seen, 0
                return taken
            after = digest.further
        return taken

    async def _compare(
        self, peer: Peer, rows: Sequence[tuple[str, float, bytes]]
    ) -> tuple[list[tuple[int, Fetched]], bool]:
        """What the peer has that is newer than ours, and whether that is all of it."""
        ours = await self._executor.do(lambda store: store.held([address for address, _, _ in rows]))
        found: list[tuple[int, Fetched]] = []
        wanted, doubtful = [], []
        for address, as_of, digest in rows:
            mine = ours.get(address)
            if mine is None or as_of <= mine.last + TICK:
                continue
            source = mine.source
            if mine.digests and digest == mine.digests[0]:
                peer.confirmed += 1
                found.append((source, Fetched(Answer.UNCHANGED, as_of)))
            elif digest in mine.digests:
                # An old copy under a new time: a source that went back to what it was, or a lie. The source knows.
                doubtful.append(source)
                self._doubt(peer, address)
            else:
                wanted.append((source, address, as_of, digest, mine.last))
        if doubtful:
            now = self._time()
            await self._executor.do(lambda store: store.set_due(doubtful, [now] * len(doubtful)))
        whole = True
        for i in range(0, len(wanted), TOGETHER):
            if self._bucket.level(self._time()) <= 0.0 or peer.resting > self._time():
                return found, False
            fetched = await asyncio.gather(*(self._bring(peer, *each[1:]) for each in wanted[i : i + TOGETHER]))
            news = [(each[0], one) for each, one in zip(wanted[i:], fetched, strict=False) if one is not None]
            whole = whole and len(news) == len(fetched)
            peer.taken += len(news)
            found += news
        return found, whole

    async def _bring(self, peer: Peer, address: str, as_of: float, digest: bytes, last: float) -> Fetched | None:
        """The peer's copy if it is what was announced; None if it is not, or newer by now and so announced anew."""
        fetched = await self._peering.copy(peer.address, address, last)
        self._pay(peer, fetched.received)
        if fetched.answer is Answer.FAILED or fetched.body is None:
            self._failed(peer, fetched.reason)
            return None
        same = sha256(fetched.body).digest() == digest
        if not same and abs(fetched.polled_at - as_of) <= TICK:
            self._failed(peer, f"its copy of {address} has another SHA-256 than it announced", false=True)
        # When the peer looks next says when it may know more, not when the source may.
        return replace(fetched, not_before=-math.inf) if same else None

    def _time(self) -> float:
        """What time it is. If the clock was set, who is left alone is so for as long as before."""
        if by := self._jumps.news():
            for peer in self.peers.values():
                peer.resting, peer.seen = peer.resting + by, peer.seen + by
        return self._clock.now()

    def _pay(self, peer: Peer, received: int) -> None:
        peer.received += received
        self._bucket.level(self._time())
        self._bucket.spend(received)

    def _doubt(self, peer: Peer, address: str) -> None:
        peer.doubts += 1
        if peer.doubts % PATIENCE == 0:
            self._failed(peer, f"it offers old copies as new ones, the last of {address}", false=True)

    def _failed(self, peer: Peer, reason: str, *, false: bool = False) -> None:
        now = self._time()
        peer.failed, peer.in_row, peer.reason = peer.failed + 1, peer.in_row + 1, reason
        rest = min(REST * 2.0 ** min(peer.in_row - 1, 60), REST_AT_MOST)
        if false:
            rest = min(BAN * 2.0 ** min(peer.bans, 60), BAN_AT_MOST)
            peer.bans += 1
        peer.resting = max(peer.resting, now + rest)
        self._tell("peer_dropped" if false else "peer_failed", {"peer": peer.address, "reason": reason, "for": rest})
