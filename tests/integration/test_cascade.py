"""Replicas of replicas, with real engines and servers: the time at the root travels unchanged, nothing goes back."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import numpy as np

from support.loopback import Loopback, answer
from support.replicas import Running, running
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.replica_client import ReplicaClient
from unstale.adapters.replica_fetcher import ReplicaFetcher
from unstale.adapters.replica_status import read_status
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing, Request


def _copies(one: Running) -> int:
    return sum(bool(mine.digests) for mine in one.held().values())


def test_three_in_a_row_follow_all_sources_and_keep_the_time_of_the_first_look(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Origin(Site.of(5, 0.2, seed=1)) as origin:
            listings = [Listing(origin.address + path) for path in origin.site.paths]
            async with AsyncExitStack() as stack:
                one = await stack.enter_async_context(running(tmp_path, "one", listings))
                await one.until(lambda: _copies(one) == 5)
                two = await stack.enter_async_context(running(tmp_path, "two", upstream=one.address))
                await two.until(lambda: _copies(two) == 5)
                three = await stack.enter_async_context(
                    running(tmp_path, "three", upstream=two.address, select="*/s/[0-2]")
                )
                await three.until(lambda: _copies(three) == 3)
                assert sorted(three.held()) == sorted(listing.address for listing in listings[:3])
                looks = {
                    address: [poll.polled_at for poll in one.shelf.observations(mine.source)]
                    for address, mine in one.held().items()
                }
                web = HttpFetcher(Gate(["127.0.0.0/8"]))
                for address, mine in three.held().items():
                    source, as_of = mine.source, mine.last
                    # To the millisecond, one of the moments at which the first replica looked at the source itself.
                    assert min(abs(as_of - look) for look in looks[address]) < 0.002
                    reply = await web.look(Request(f"{three.address}/copies/{source}"))
                    status = read_status(reply.headers)
                    assert status is not None
                    assert status.via == ("one", "two", "three")
                    assert "hops=3" in reply.headers["replica-status"]
                    copy = three.shelf.copy(source)
                    assert copy is not None
                    # What is believed is believed by who looks at the source itself, wherever it is asked.
                    assert copy.body.via == f"one;gap={status.gap}, two"
                    assert ";by=one, gap=" in reply.headers["replica-status"]
                    assert reply.body == copy.body.data
                # Who is on the way already does not take the copy back.
                circle = ReplicaFetcher(web, name="one")
                back = await circle.fetch(Request(listings[0].address, options={"upstream": three.address}))
                assert "in a circle" in back.reason
                await web.close()

    asyncio.run(scene())


def test_an_upstream_that_goes_back_in_time_is_refused_and_the_copy_stays(tmp_path: Path) -> None:
    source, path = "https://example.org/a", "/copy?source=https%3A%2F%2Fexample.org%2Fa"

    async def scene() -> None:
        async with Loopback({}) as server:
            now = time.time()

            def says(as_of: float, body: bytes) -> bytes:
                return answer(
                    body,
                    replica_status=f"as-of=@{int(as_of)}, version=1, hops=1",
                    cache_status="up; hit",
                    etag=f'"{body.decode()}"',
                )

            server.speeches[path] = says(now - 10, b"new")
            listing = Listing(source, "replica", options={"upstream": server.origin}, shortest=0.5, longest=1.0)
            async with running(tmp_path, "down", [listing]) as down:
                await down.until(lambda: bool(down.held()[source].digests))
                server.speeches[path] = says(now - 100, b"old")
                await down.until(lambda: any("older than ours" in str(facts.get("reason")) for _, facts in down.events))
                copy = down.shelf.copy(1)
                assert copy is not None
                assert (copy.body.data, down.held()[source].last) == (b"new", int(now - 10))

    asyncio.run(scene())


def test_readers_get_the_freshest_of_real_replicas(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Origin(Site.of(1, 2.0, seed=1)) as origin, AsyncExitStack() as stack:
            address = origin.address + "/s/0"
            quick = await stack.enter_async_context(
                running(tmp_path, "quick", [Listing(address, longest=0.2)], budget=10.0)
            )
            slow = await stack.enter_async_context(running(tmp_path, "slow", [Listing(address, shortest=3600.0)]))
            await slow.until(lambda: _copies(slow) == 1)
            await quick.until(lambda: quick.held()[address].last > slow.held()[address].last + 2.0)
            for seed in range(4):
                client = ReplicaClient([slow.address, quick.address], k=2, rng=np.random.default_rng(seed))
                found = await client.get(address)
                assert found.reading.replica == quick.address
                assert found.told == (slow.address,)
                assert sha256(found.body).hexdigest()[:32] == found.reading.etag.strip('"')
                assert abs(found.reading.as_of - quick.held()[address].last) < 2.0
            alone = await ReplicaClient([slow.address, "http://127.0.0.1:1"], k=2).get(address)
            assert alone.reading.replica == slow.address
            assert [bool(one.reason) for one in alone.answers].count(True) == 1

    asyncio.run(scene())


#: bounds, as headers and as parameters, and how old in seconds a copy may be that meets them
WISHES = {
    "?max_age=1s": ({}, 1.0),
    "?max_staleness=PT1S": ({}, 1.0),
    "?no_cache": ({}, 0.0),
    "?min_as_of={soon}": ({}, 0.0),
    "?": ({"Cache-Control": "max-age=1"}, 1.0),
    "?&": ({"Cache-Control": "no-cache"}, 0.0),
}


def test_bounds_hold_at_every_stage_by_the_true_time_at_the_origin(tmp_path: Path) -> None:
    """What the origin saw decides: a copy that meets a bound was looked at there no longer ago than the bound says."""
    looks: list[float] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        looks.append(time.time())
        writer.write(answer(b"news", connection="close"))
        await writer.drain()

    async def scene() -> dict[str, list[tuple[int, float]]]:
        found: dict[str, list[tuple[int, float]]] = {}
        async with Loopback({"/a": speak}) as origin, AsyncExitStack() as stack:
            listing = Listing(f"{origin.origin}/a", shortest=3600.0)
            one = await stack.enter_async_context(running(tmp_path, "one", [listing], ask=True))
            await one.until(lambda: _copies(one) == 1)
            two = await stack.enter_async_context(running(tmp_path, "two", upstream=one.address, ask=True))
            await two.until(lambda: _copies(two) == 1)
            three = await stack.enter_async_context(running(tmp_path, "three", upstream=two.address, ask=True))
            await three.until(lambda: _copies(three) == 1)
            web = HttpFetcher(Gate(["127.0.0.0/8"]))
            await asyncio.sleep(2.5)
            # The last stages first: only asking the first one has the source looked at.
            for stage in (three, two, one):
                (mine,) = stage.held().values()
                for query, (headers, bound) in WISHES.items():
                    begun = time.time()
                    where = f"{stage.address}/copies/{mine.source}{query.format(soon=int(begun))}"
                    reply = await web.look(Request(where, headers=headers))
                    age = begun - max(looks)
                    found.setdefault(stage.address, []).append((reply.status, age))
                    assert reply.status in (200, 504)
                    if reply.status == 200:
                        assert age <= bound + 1.0, (query, stage.address)
                        status = read_status(reply.headers)
                        assert status is not None
                        assert abs(status.as_of - max(looks)) < 1.0
                    else:
                        assert age > bound, (query, stage.address)
            await web.close()
            return found

    first, second, third = reversed(asyncio.run(scene()).values())
    assert {status for status, _ in first} == {200}, "the first stage asks the source itself"
    assert {status for status, _ in second + third} == {504}, "what others hold is older than was asked for"
