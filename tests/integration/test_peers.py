"""Peers with real engines and servers: what one finds the others have soon, and a liar is found out."""

from __future__ import annotations

import asyncio
import json
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from support.loopback import Loopback, answer
from support.replicas import running
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing


def test_what_one_peer_finds_reaches_one_that_cannot_poll(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Origin(Site.of(10, 0.5, seed=1)) as origin:
            listings = [Listing(origin.address + path) for path in origin.site.paths]
            # A budget of a poll in a quarter of an hour: all news comes from the peer.
            async with (
                running(tmp_path, "rich", listings, budget=40.0) as rich,
                running(tmp_path, "poor", listings, budget=0.001, peers=(rich.address,), rate=5.0, share=2**20) as poor,
            ):
                begun = time.time()
                await poor.until(
                    lambda: sum(bool(h.digests) and h.last > begun + 5 for h in poor.held().values()) == 10, 60
                )
                view = poor.application.engine.peers()[0]
                assert view["taken"] >= 10
                assert view["bans"] == 0
                # Equal bytes at the same time, though only one of them asked the source.
                for address, mine in poor.held().items():
                    as_of, there = mine.last, rich.held()[address]
                    looks = rich.shelf.observations(there.source)
                    assert there.last >= as_of - 0.002
                    assert min(abs(look.polled_at - as_of) for look in looks) < 0.002
                    copy = poor.shelf.copy(mine.source)
                    assert copy is not None
                    assert sha256(copy.body.data).digest() == mine.digests[0]
                assert poor.application.engine.bucket.spent == 0.0, "peers' copies do not cost the budget"
                counters = poor.shelf.counters()
                held = counters["claimed"] - counters["recorded"] - counters.get("given_back", 0)
                assert held - counters.get("expired", 0) - counters.get("ended", 0) <= 10
                assert counters.get("dropped", 0) == 0

    asyncio.run(scene())


def test_a_liar_is_dropped_and_reported(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Origin(Site.of(1, 0.0, seed=1)) as origin, Loopback({}) as liar:
            address = origin.address + "/s/0"

            async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                as_of = time.time()
                row = {"source": address, "as_of": as_of, "version": 9, "sha256": "00" * 32}
                head = {"replica": "liar", "now": time.time(), "next": None}
                writer.write(answer(f"{json.dumps(head)}\n{json.dumps(row)}\n".encode(), connection="close"))
                status = f"as-of=@{int(as_of)};ms={int(1000 * (as_of % 1))}"
                liar.speeches[liar_copy] = answer(b"forged", replica_status=status, cache_status="liar")
                await writer.drain()

            liar_copy = f"/copy?source={quote(address, safe='')}"
            liar.speeches["/digest?since=0.000&after=0"] = lie
            async with running(tmp_path, "honest", [Listing(address)], peers=(liar.origin,), rate=5.0) as honest:
                await honest.until(lambda: any(name == "peer_dropped" for name, _ in honest.events))
                (facts,) = [facts for name, facts in honest.events if name == "peer_dropped"]
                assert facts["peer"] == liar.origin
                assert "has another SHA-256 than it announced" in facts["reason"]
                # Whether its own first poll or the liar comes first is a matter of luck.
                await honest.until(lambda: honest.shelf.copy(1) is not None)
                copy = honest.shelf.copy(1)
                assert copy is not None
                assert b"Source 0" in copy.body.data
                assert honest.application.engine.peers()[0]["bans"] == 1

    asyncio.run(scene())
