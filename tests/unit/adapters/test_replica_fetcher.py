"""Through a replica we learn what the source was when that replica looked, and nothing older than we know."""

from __future__ import annotations

import asyncio
import math
from email.utils import formatdate

import pytest

from support.loopback import Loopback, answer
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.replica_fetcher import LATEST, ReplicaFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

NOW = 1_763_236_800.5
SOURCE = "https://example.org/news?a=1"
PATH = "/copy?source=https%3A%2F%2Fexample.org%2Fnews%3Fa%3D1"


def speech(as_of: float, *, via: str = "up; hit", due: float = 60.0, body: bytes = b"news", **more: str) -> bytes:
    status = f"as-of=@{int(as_of)};ms={int(1000 * (as_of % 1))}, checked=@{int(as_of)}, version=4, hops=1"
    return answer(
        body, replica_status=status, cache_status=via, expires=formatdate(NOW + due, usegmt=True), etag='"x"', **more
    )


def fetched(said: bytes, **given: object) -> tuple[Fetched, list[dict[str, str]]]:
    async def scene() -> tuple[Fetched, list[dict[str, str]]]:
        async with Loopback({PATH: said}) as server:
            fetcher = ReplicaFetcher(HttpFetcher(Gate(["127.0.0.0/8"])), name="me", now=lambda: NOW)
            try:
                request = Request(SOURCE, options={"upstream": server.origin}, **given)  # type: ignore[arg-type]
                return await fetcher.fetch(request), server.asked
            finally:
                await fetcher.close()

    return asyncio.run(scene())


def test_a_copy_is_as_old_as_the_first_look_at_its_source() -> None:
    found, _ = fetched(speech(NOW - 30.25, via="root; hit, up; hit; ttl=3"))
    assert (found.answer, found.body) == (Answer.CHANGED, b"news")
    assert found.polled_at == pytest.approx(NOW - 30.25, abs=1e-6)
    assert (found.via, found.changed_at) == ("root, up", ())


def test_an_unchanged_copy_carries_the_new_time_too() -> None:
    found, asked = fetched(speech(NOW - 2.0).replace(b"200 OK", b"304 Not Modified"), etag='"x"', since=NOW - 50)
    assert asked[0]["if-none-match"] == '"x"'
    assert (found.answer, found.body) == (Answer.UNCHANGED, None)
    assert found.polled_at == pytest.approx(NOW - 2.0, abs=1e-6)


@pytest.mark.parametrize(
    ("due", "age", "wait"),
    [(60.0, 1.0, 60.5), (-100.0, 1.0, 1.0), (-100.0, 300.0, 30.0), (1e6, 1.0, LATEST)],
    ids=["after its next look", "soon if it is late", "later if it is long late", "never for ever"],
)
def test_we_ask_again_when_it_can_know_more(due: float, age: float, wait: float) -> None:
    found, _ = fetched(speech(NOW - age, due=due))
    assert found.not_before - NOW == pytest.approx(wait, abs=1e-3)


@pytest.mark.parametrize(
    ("said", "since", "why"),
    [
        (speech(NOW - 100), NOW - 50, "its copy is 50 s older than ours"),
        (speech(NOW + 60), -math.inf, "from the future"),
        (speech(NOW - 1, via="me; hit, up; hit"), -math.inf, "in a circle"),
        (answer(b"news"), -math.inf, "no Replica-Status"),
        (answer(b"", "503 Service Unavailable"), -math.inf, "it answered 503"),
    ],
    ids=["older", "future", "circle", "no replica", "no copy yet"],
)
def test_what_is_refused_is_a_failure_now(said: bytes, since: float, why: str) -> None:
    found, _ = fetched(said, since=since)
    assert (found.answer, found.polled_at, found.body) == (Answer.FAILED, NOW, None)
    assert why in found.reason
    assert found.reason.startswith("127.0.0.1: ")


def test_a_copy_s_own_address_is_asked_as_it_is() -> None:
    async def scene() -> tuple[Fetched, Fetched]:
        async with Loopback({"/copies/7": speech(NOW - 1)}) as server:
            fetcher = ReplicaFetcher(HttpFetcher(Gate(["127.0.0.0/8"])), now=lambda: NOW)
            good = await fetcher.fetch(Request(f"{server.origin}/copies/7"))
            bad = await fetcher.fetch(Request(SOURCE, options={"upstream": "ftp://up"}))
            await fetcher.close()
            return good, bad

    good, bad = asyncio.run(scene())
    assert good.answer is Answer.CHANGED
    assert (bad.answer, "must be http or https" in bad.reason) == (Answer.FAILED, True)


def test_the_gate_judges_replicas_too() -> None:
    async def scene() -> Fetched:
        async with Loopback({PATH: speech(NOW - 1)}) as server:
            fetcher = ReplicaFetcher(HttpFetcher(Gate()), now=lambda: NOW)
            try:
                return await fetcher.fetch(Request(SOURCE, options={"upstream": server.origin}))
            finally:
                await fetcher.close()

    assert "is not public" in asyncio.run(scene()).reason
