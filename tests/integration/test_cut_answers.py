"""An end that was not seen is a failure: no cut answer becomes a copy, in poller, proxy and replica."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from urllib.parse import quote

import pytest

from support.cuts import CUTS, NEWS, PACKED, WHOLE
from support.loopback import Loopback, Speech
from support.patience import SOON
from support.tls import certificate, server_side
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.http_upstream import HttpUpstream
from unstale.adapters.replica_client import ReplicaClient
from unstale.adapters.replica_fetcher import ReplicaFetcher
from unstale.adapters.replica_peering import ReplicaPeering
from unstale.errors import ReplicaError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request
from unstale.server.proxy.cache import Cache
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.origin import Asked

__all__ = ["certificate"]
HERE = Gate(["127.0.0.1/32"])
SOURCE = "https://a.example/"


def spoken(said: bytes, *, reset: bool = False) -> Speech:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        if reset:
            await asyncio.sleep(0.05)  # let what was said arrive, a reset overtakes it
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    return speak


def numbered(answers: Iterable[bytes], path: str = "/{}") -> dict[str, Speech]:
    return {path.format(i): spoken(said) for i, said in enumerate(answers)}


def each(names: Iterable[str], one: Callable[[int], Awaitable[str]]) -> Awaitable[dict[str, str]]:
    """What became of each, 32 at a time; empty if nothing did."""
    gate = asyncio.Semaphore(32)

    async def within(i: int) -> str:
        async with gate:
            return await one(i)

    async def all_of_them() -> dict[str, str]:
        found = await asyncio.gather(*(within(i) for i, _ in enumerate(names)))
        return {name: what for name, what in zip(names, found, strict=True) if what}

    return all_of_them()


def test_there_are_enough_ways() -> None:
    assert len(CUTS) > 700


# The poller.


def polled(answers: Mapping[str, bytes]) -> dict[str, str]:
    """Those of which the poller makes a copy, and what that is."""

    async def play() -> dict[str, str]:
        fetcher = HttpFetcher(HERE)
        async with Loopback(numbered(answers.values())) as server:

            async def one(i: int) -> str:
                got = await fetcher.fetch(Request(f"{server.origin}/{i}", seconds=20.0))
                assert got.answer is not Answer.FAILED or got.reason.startswith("127.0.0.1: ")
                return "" if got.answer is Answer.FAILED else "whole" if got.body == NEWS else "other"

            found = await each(answers, one)
        await fetcher.close()
        return found

    return asyncio.run(play())


def test_what_is_whole_is_polled_whole() -> None:
    assert polled(WHOLE) == dict.fromkeys(WHOLE, "whole")


def test_no_cut_answer_is_polled() -> None:
    assert polled(CUTS) == {}


def test_a_poll_that_is_reset_is_none() -> None:
    async def play() -> list[Fetched]:
        fetcher = HttpFetcher(HERE)
        said = WHOLE["closed"], WHOLE["gzip, closed"][:-9], WHOLE["sized"][:-9]
        speeches = {f"/{i}": spoken(one, reset=True) for i, one in enumerate(said)}
        async with Loopback(speeches) as server:
            found = [await fetcher.fetch(Request(f"{server.origin}{path}", seconds=SOON)) for path in speeches]
        await fetcher.close()
        return found

    assert {got.answer for got in asyncio.run(play())} == {Answer.FAILED}


# HTTP/2: frames by hand, for no library writes wrong ones.


def frame(kind: int, flags: int, stream: bytes, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream + payload


def second(certificate: tuple[str, str], parts: Callable[[bytes], list[bytes]], *, close: bool = False) -> Fetched:
    """What a poll makes of these frames."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(24)
            writer.write(frame(4, 0, bytes(4), b""))
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3], "big"))
                if head[3] == 1:
                    for part in parts(head[5:]):
                        writer.write(part)
                    await writer.drain()
                    if close:
                        return
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def play() -> Fetched:
        server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=server_side(certificate, "h2"))
        fetcher = HttpFetcher(HERE, ca_file=certificate[0])
        got = await fetcher.fetch(Request(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", seconds=2.0))
        await fetcher.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.05)  # the server's side of the connection notices
        return got

    return asyncio.run(play())


OK = b"\x88"  # status 200 in HPACK
LONG = OK + b"\x0f\x0d\x03100"  # and a length of 100
GZIP = OK + b"\x0f\x0b\x04gzip"
SECOND: dict[str, tuple[Callable[[bytes], list[bytes]], bool]] = {
    "reset before the body": (lambda s: [frame(1, 4, s, OK), frame(3, 0, s, (2).to_bytes(4, "big"))], False),
    "reset within the body": (
        lambda s: [frame(1, 4, s, OK), frame(0, 0, s, b"half"), frame(3, 0, s, (2).to_bytes(4, "big"))],
        False,
    ),
    "reset without an error, a length stated": (
        lambda s: [frame(1, 4, s, LONG), frame(0, 0, s, b"half"), frame(3, 0, s, bytes(4))],
        False,
    ),
    "reset without an error within a coding": (
        lambda s: [frame(1, 4, s, GZIP), frame(0, 0, s, PACKED["gzip"][:-9]), frame(3, 0, s, bytes(4))],
        False,
    ),
    "reset without an error, nothing stated": (
        lambda s: [frame(1, 4, s, OK), frame(0, 0, s, b"half"), frame(3, 0, s, bytes(4))],
        False,
    ),
    "reset without an error before the body": (lambda s: [frame(1, 4, s, OK), frame(3, 0, s, bytes(4))], False),
    "gone away": (
        lambda s: [frame(1, 4, s, OK), frame(0, 0, s, b"half"), frame(7, 0, bytes(4), bytes(8))],
        True,
    ),
    "closed within the body": (lambda s: [frame(1, 4, s, OK), frame(0, 0, s, b"half")], True),
    "closed within the head": (lambda s: [frame(1, 0, s, OK)], True),
    "closed before the body": (lambda s: [frame(1, 4, s, OK)], True),
    "fewer bytes than stated": (lambda s: [frame(1, 4, s, LONG), frame(0, 1, s, b"short")], False),
    "no bytes of those stated": (lambda s: [frame(1, 5, s, LONG)], False),
    "a coding that is cut": (lambda s: [frame(1, 4, s, GZIP), frame(0, 1, s, PACKED["gzip"][:-9])], False),
    "a coding without a byte": (lambda s: [frame(1, 5, s, GZIP)], False),
}


@pytest.mark.parametrize("name", SECOND)
def test_no_cut_answer_in_http_2_is_polled(name: str, certificate: tuple[str, str]) -> None:
    parts, close = SECOND[name]
    got = second(certificate, parts, close=close)
    assert (got.answer, got.body) == (Answer.FAILED, None)


def test_an_answer_in_http_2_is_whole_by_its_length(certificate: tuple[str, str]) -> None:
    said = OK + b"\x0f\x0d\x0210"
    got = second(certificate, lambda s: [frame(1, 4, s, said), frame(0, 0, s, b"half"), frame(0, 1, s, b" whole")])
    assert (got.answer, got.body, got.requests) == (Answer.CHANGED, b"half whole", 1)


def test_what_nothing_proves_to_be_whole_is_asked_for_over_http_1(certificate: tuple[str, str]) -> None:
    """libcurl does not tell a last frame from a reset without an error."""
    spoke: list[str] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            if (await reader.readexactly(3)) == b"PRI":
                await reader.readexactly(21)
                writer.write(frame(4, 0, bytes(4), b""))
                while True:
                    head = await reader.readexactly(9)
                    await reader.readexactly(int.from_bytes(head[:3], "big"))
                    if head[3] == 1:
                        spoke.append("2")
                        writer.write(frame(1, 4, head[5:], OK) + frame(0, 1, head[5:], b"half whole"))
            while await reader.readuntil(b"\r\n\r\n"):
                spoke.append("1.1")
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf whole\r\n0\r\n\r\n")
        writer.close()

    async def play() -> list[Fetched]:
        server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=server_side(certificate, "h2", "http/1.1"))
        fetcher = HttpFetcher(HERE, ca_file=certificate[0])
        at = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        found = [await fetcher.fetch(Request(at, seconds=SOON)) for _ in range(2)]
        await fetcher.close()
        server.close()
        await server.wait_closed()
        return found

    assert [(got.body, got.requests) for got in asyncio.run(play())] == [(b"half whole", 2), (b"half whole", 1)]
    assert spoke == ["2", "1.1", "1.1"]


# The proxy.


def proxied(answers: Mapping[str, bytes]) -> dict[str, str]:
    """Those that the proxy keeps."""

    async def play() -> dict[str, str]:
        cache = Cache(HttpUpstream(HERE, seconds=5.0))
        async with Loopback(numbered(answers.values())) as server:

            async def one(i: int) -> str:
                address = f"{server.origin}/{i}"
                try:
                    served = await cache.answer(Asked("GET", address, Fields(), {}))
                    assert served is not None
                    if not isinstance(served.body, bytes):
                        async for _ in served.body:
                            pass
                except OSError:
                    pass
                renewed = await cache.renew(address)
                kept = address in cache.stock or renewed.answer is not Answer.FAILED
                return "kept" if kept else ""

            found = await each(answers, one)
        await cache.close()
        return found

    return asyncio.run(play())


def test_what_is_whole_is_kept_by_the_proxy() -> None:
    assert proxied(WHOLE) == dict.fromkeys(WHOLE, "kept")


def test_no_cut_answer_is_kept_by_the_proxy() -> None:
    assert proxied(CUTS) == {}


# The replica: the same answers from another replica.


def told(said: bytes) -> bytes:
    """The same answer from a replica that knows as of when it is."""
    now = time.time()
    status = b"Replica-Status: as-of=@%d, version=3, hops=1\r\nCache-Status: up; hit\r\n" % now
    head, end, rest = said.partition(b"\r\n")
    return head + end + status + rest if end else said


def replicated(answers: Mapping[str, bytes]) -> dict[str, str]:
    """Those that a replica takes from another one."""
    path = "/{}/copy?source=" + quote(SOURCE, safe="")

    async def play() -> dict[str, str]:
        web = HttpFetcher(HERE)
        fetcher, peering = ReplicaFetcher(web, name="me"), ReplicaPeering(web, name="me")
        async with Loopback(numbered([told(said) for said in answers.values()], path)) as server:

            async def one(i: int) -> str:
                where = f"{server.origin}/{i}"
                got = await fetcher.fetch(Request(SOURCE, options={"upstream": where}, seconds=20.0))
                from_peer = await peering.copy(where, SOURCE, 0.0)
                taken = [found for found in (got, from_peer) if found.answer is not Answer.FAILED]
                return "" if not taken else "whole" if [found.body for found in taken] == [NEWS] * 2 else "other"

            found = await each(answers, one)
        await web.close()
        return found

    return asyncio.run(play())


def test_what_is_whole_is_taken_from_a_replica() -> None:
    assert replicated(WHOLE) == dict.fromkeys(WHOLE, "whole")


def test_no_cut_answer_is_taken_from_a_replica() -> None:
    assert replicated(CUTS) == {}


def asked_for(answers: Mapping[str, bytes]) -> dict[str, str]:
    """Those that a client of replicas gets."""
    path = "/{}/copy?source=" + quote(SOURCE, safe="")

    async def play() -> dict[str, str]:
        async with Loopback(numbered([told(said) for said in answers.values()], path)) as server:

            async def one(i: int) -> str:
                try:
                    got = await ReplicaClient([f"{server.origin}/{i}"], k=1).get(SOURCE)
                except ReplicaError:
                    return ""
                return "whole" if got.body == NEWS else "other"

            return await each(answers, one)

    return asyncio.run(play())


def test_what_is_whole_is_read_from_replicas() -> None:
    assert asked_for(WHOLE) == dict.fromkeys(WHOLE, "whole")


def test_no_cut_answer_is_read_from_replicas() -> None:
    assert asked_for(CUTS) == {}
