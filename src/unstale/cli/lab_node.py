"""One replica of `unstale lab`, a process of its own: the real store, fetcher and server, and a poller without a brain.

Theory speaks of polls at a fixed rate and random times; the engine would choose better ones. So this poller draws its
times, unless the engine's brain shall choose them (`lab_brain`), and everything else is what `unstale run` and
`unstale serve` are made of. It is told what to do by lines of JSON on its standard input, says where it serves, notes
which version it serves from when on, and ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.introduced_fetcher import IntroducedFetcher
from unstale.adapters.replica_fetcher import ReplicaFetcher
from unstale.adapters.replica_peering import ReplicaPeering
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.claim_now import claim_now
from unstale.engine.clock import SystemClock
from unstale.engine.judge import judge
from unstale.engine.peer_terms import PeerTerms
from unstale.engine.peers import Peers
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Fetched, Fetcher, Listing, Request, Store
from unstale.server.app import replica
from unstale.server.digests import digest_route
from unstale.server.serving import serve

#: seconds for which a claim lasts, longer than any poll here; and that a poll may take
LEASE, SECONDS = 60.0, 5.0
#: seconds that nothing is waited for less
BEAT = 0.002
#: bytes per second that peers may send: as if there were no bound, which theory has not
SHARE = 1e9
_VERSION = re.compile(rb"version (\d+)")


class Poller:
    """Polls every source of a store at `rate`, and notes what is served from when on.

    Each is polled at random times, or, if `even`, at equal intervals from a random time on.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        fetcher: Fetcher,
        rate: float,
        rng: np.random.Generator,
        notes: TextIO,
        *,
        even: bool = False,
    ) -> None:
        self._even = even
        self._executor, self._fetcher, self._rate, self._rng, self._notes = executor, fetcher, rate, rng, notes
        self._due: dict[int, float] = {}
        self._done: list[tuple[Claim, Fetched, float]] = []
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.polls = self.failed = 0
        #: seconds from when polls were due until what they found was served, added up: theory knows of none
        self.late = 0.0

    async def begin(self, listings: Sequence[Listing]) -> None:
        """Add the sources; the first poll of each comes at random, as all later ones do."""
        now = time.time()
        ids = await self._executor.do(lambda store: store.add(listings, now))
        phases = self._rng.random(len(ids)) / self._rate
        self._due = {
            source: now + (float(phase) if self._even else self._gap())
            for source, phase in zip(ids, phases, strict=True)
        }
        await self._executor.do(lambda store: store.set_due(ids, list(self._due.values())))

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set."""
        recorder = asyncio.create_task(self._record_forever())
        while not (stop.is_set() or recorder.done()):
            for claim in await self._claims():
                task = asyncio.create_task(self._poll(claim))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        for task in (recorder, *self._tasks):
            task.cancel()
        await asyncio.gather(recorder, *self._tasks, return_exceptions=True)

    async def _claims(self) -> list[Claim]:
        """What is due, or nothing after a while."""
        now = time.time()
        wait = min(self._due.values(), default=now + 0.1) - now
        if wait > 0:
            await asyncio.sleep(min(max(wait, BEAT), 0.1))
            return []
        claims = await self._executor.do(partial(_claim, now))
        for claim in claims:
            # From the time it was due, not from when it was done: delays must not slow the polls down.
            self._due[claim.source] = claim.due + self._gap()
        if not claims:
            await asyncio.sleep(BEAT)
        return claims

    def _due_after(self, claim: Claim, fetched: Fetched) -> float:
        """When a source is due again that was polled."""
        return self._due[claim.source]

    async def accept(self, news: Sequence[tuple[int, Fetched]]) -> int:
        """Take what a peer brought; of how many sources."""
        by_source, now = dict(news), time.time()
        claims = await self._executor.do(lambda store: claim_now(store, list(by_source), now, lease=LEASE, owner="lab"))
        newer = [(c, due) for c, due in claims if by_source[c.source].polled_at > c.last]
        if older := [(c, due) for c, due in claims if by_source[c.source].polled_at <= c.last]:
            await self._executor.do(lambda store: self._give_back(store, older))
        if newer:
            told = [(claim, by_source[claim.source], due) for claim, due in newer]
            await self._record([(claim, fetched, self._due_told(claim, fetched, due)) for claim, fetched, due in told])
        return len(newer)

    def _due_told(self, claim: Claim, fetched: Fetched, due: float) -> float:
        """When a source is due again of which a peer told."""
        return due

    def _give_back(self, store: Store, claims: Sequence[tuple[Claim, float]]) -> None:
        store.set_due([claim.source for claim, _ in claims], [due for _, due in claims])
        store.give_back("lab", [claim for claim, _ in claims])

    async def _poll(self, claim: Claim) -> None:
        request = Request(
            claim.address, claim.etag, claim.last_modified, options=claim.options, seconds=SECONDS, since=claim.last
        )
        fetched = await self._fetcher.fetch(request)
        self.polls += 1
        self.failed += fetched.answer is Answer.FAILED
        self._done.append((claim, fetched, self._due_after(claim, fetched)))
        self._ready.set()

    async def _record_forever(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            batch, self._done = self._done, []
            await self._record(batch)
            now = time.time()
            self.late += sum(now - claim.due for claim, *_ in batch)

    async def _record(self, batch: Sequence[tuple[Claim, Fetched, float]]) -> None:
        judged = [(claim, fetched, due, *judge(claim, fetched, None)) for claim, fetched, due in batch]
        entries = [
            Entry(claim, answer, fetched.polled_at, due, received=fetched.received, reason=fetched.reason, body=body)
            for claim, fetched, due, answer, body in judged
        ]
        held = await self._executor.do(lambda store: store.record(entries))
        now = time.time()
        for entry, mine in zip(entries, held, strict=True):
            found = _VERSION.search(entry.body.data) if entry.body is not None and mine else None
            if found:
                self._notes.write(json.dumps([entry.claim.address, now, int(found[1])]) + "\n")

    def _gap(self) -> float:
        if self._even:
            return 1.0 / self._rate
        return float(self._rng.exponential(1.0 / self._rate))


def _claim(now: float, store: Store) -> list[Claim]:
    return store.claim(now, 100, lease=LEASE, owner="lab")


async def node(told: dict[str, Any], lines: asyncio.Queue[dict[str, Any] | None]) -> None:
    """Serve at once; poll once told whom; end when nothing more is told."""
    stop, name = asyncio.Event(), str(told["name"])
    executor = StoreExecutor(lambda: SqliteStore(told["store"]))
    shelf = SqliteReplica(told["store"])
    called: asyncio.Queue[str] = asyncio.Queue()
    app = replica(shelf, name=name, more=[digest_route(shelf, time.time, name, called.put_nowait)])
    server = asyncio.create_task(serve(app, "127.0.0.1", 0, token=None, stop=stop, ready=lambda port: _say(port=port)))
    gate = Gate(["127.0.0.0/8"])
    web = HttpFetcher(gate)
    rng = np.random.default_rng(told["seed"])
    tasks: list[asyncio.Task[Any]] = []
    try:
        first = asyncio.ensure_future(lines.get())
        await asyncio.wait({server, first}, return_when=asyncio.FIRST_COMPLETED)
        begun = first.result() if first.done() else None
        if begun is None:
            return
        upstream, here, peers = begun["upstream"], begun["here"], None
        kind, options = ("replica", {"upstream": upstream}) if upstream else ("http", {})

        def heard(source: str, replicas: Sequence[str]) -> None:
            if peers is not None:
                peers.heard(source, replicas)

        if begun["listed"]:
            web = own = IntroducedFetcher(gate, here=here, heard=heard)
        with Path(told["notes"]).open("w", encoding="utf-8") as notes:
            fetcher = ReplicaFetcher(web, name=name) if upstream else web
            kind_of = _brain() if told["brain"] else Poller
            poller = kind_of(executor, fetcher, told["sync_rate"], rng, notes, even=told["even"])
            if begun["peers"] or begun["listed"]:
                back = here if told["both"] else ""
                config = PeerTerms(tuple(begun["peers"]), told["peer_rate"], told["asked"], SHARE, back, told["choose"])
                peers = Peers(config, ReplicaPeering(web, name=name), executor, poller.accept, SystemClock(), rng=rng)
                tasks.append(asyncio.create_task(peers.run(stop)))
                tasks.append(asyncio.create_task(_in_turn(peers, called, stop)))
            await poller.begin([Listing(address, kind, options=options) for address in begun["sources"]])
            tasks.append(asyncio.create_task(poller.run(stop)))
            await lines.get()
            stop.set()
            if begun["listed"]:
                await own.leave(Request(begun["sources"][0], seconds=SECONDS))
            await asyncio.gather(*tasks)
        _say(polls=poller.polls, failed=poller.failed, late=poller.late, peers=peers.view() if peers else [])
    finally:
        stop.set()
        await asyncio.gather(server, *tasks, return_exceptions=True)
        await web.close()
        shelf.close()
        executor.close()


async def _in_turn(peers: Peers, called: asyncio.Queue[str], stop: asyncio.Event) -> None:
    """Ask whoever has asked us, until `stop` is set."""
    stopping = asyncio.ensure_future(stop.wait())
    while not stop.is_set():
        caller = asyncio.ensure_future(called.get())
        await asyncio.wait({caller, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if caller.done():
            await peers.asked_by(caller.result())
        caller.cancel()


def _brain() -> type[Poller]:
    # loaded here: it is made of this file
    from unstale.cli.lab_brain import BrainPoller

    return BrainPoller


def _say(**facts: Any) -> None:
    click.echo(json.dumps(facts))


def main() -> None:
    """Run one replica: its first line of input says who it is."""
    told = json.loads(sys.stdin.readline())

    async def run() -> None:
        loop, lines = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any] | None]()

        def listen() -> None:
            with contextlib.suppress(RuntimeError):
                for line in sys.stdin:
                    loop.call_soon_threadsafe(lines.put_nowait, json.loads(line))
                loop.call_soon_threadsafe(lines.put_nowait, None)

        threading.Thread(target=listen, daemon=True).start()
        await node(told, lines)

    asyncio.run(run())


if __name__ == "__main__":
    main()
