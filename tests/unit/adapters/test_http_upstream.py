"""Asking origins for a proxy: heads as they were sent, bodies no faster than they are taken, nothing added."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from support.loopback import Loopback, Speech, answer, redirect
from support.patience import SOON
from support.tls import certificate, server_side
from unstale.adapters.addresses import Gate
from unstale.adapters.http_upstream import HttpUpstream
from unstale.errors import InputError

__all__ = ["certificate"]
T = TypeVar("T")


def talk(
    speech: Speech,
    scene: Callable[[HttpUpstream, Loopback], Awaitable[T]],
    networks: str = "127.0.0.0/8",
    seconds: float = SOON,
) -> T:
    async def play() -> T:
        upstream = HttpUpstream(Gate([networks]), seconds=seconds)
        try:
            async with Loopback({"/x": speech}) as server:
                return await scene(upstream, server)
        finally:
            await upstream.close()

    return asyncio.run(play())


async def whole(
    upstream: HttpUpstream,
    server: Loopback,
    method: str = "GET",
    body: bytes | None = None,
    lines: list[tuple[str, str]] | None = None,
) -> tuple[int, list[tuple[str, str]], bytes]:
    answered = await upstream.ask(method, f"{server.origin}/x", lines or [], body)
    return answered.status, answered.lines, b"".join([chunk async for chunk in answered.body])


def test_lines_come_as_they_were_sent() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n"
    head = b"HTTP/1.1 299 Odd\r\nA: 1\r\na:2 \r\nB:\r\nF: x\r\n y\r\nE: \xfc\r\nContent-Length: 3\r\n\r\n"
    speech = early + head + b"abc"
    status, lines, body = talk(speech, whole)
    assert (status, body) == (299, b"abc")
    assert lines == [("a", "1"), ("a", "2"), ("b", ""), ("f", "x y"), ("e", "ü"), ("content-length", "3")]


def test_nothing_is_added_but_host_and_length() -> None:
    async def scene(upstream: HttpUpstream, server: Loopback) -> list[dict[str, str]]:
        await whole(upstream, server)
        await whole(upstream, server, lines=[("accept", "text/html"), ("empty", ""), ("x", "ü")])
        await whole(upstream, server, "HEAD")
        await whole(upstream, server, "PURGE")
        await whole(upstream, server, "PUT")
        return server.asked

    asked = talk(answer(b""), scene)
    host = {"host": asked[0]["host"]}
    assert asked == [
        {"": "GET /x HTTP/1.1"} | host,
        {"": "GET /x HTTP/1.1", "accept": "text/html", "empty": "", "x": "ü"} | host,
        {"": "HEAD /x HTTP/1.1"} | host,
        {"": "PURGE /x HTTP/1.1"} | host,
        {"": "PUT /x HTTP/1.1", "content-length": "0"} | host,
    ]


def test_bodies_go_up() -> None:
    got: list[bytes] = []

    async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readexactly(200_000))
        writer.write(answer(b"done"))
        await writer.drain()

    async def scene(upstream: HttpUpstream, server: Loopback) -> dict[str, str]:
        assert (await whole(upstream, server, "POST", bytes(200_000)))[2] == b"done"
        return server.asked[0]

    asked = talk(speech, scene)
    assert got == [bytes(200_000)]
    assert set(asked) == {"", "host", "content-length"}


def test_redirects_and_encodings_are_left_alone() -> None:
    assert talk(redirect("http://127.0.0.1:1/"), whole)[0] == 302
    assert talk(answer(b"not gzip", content_encoding="gzip"), whole)[2] == b"not gzip"


def test_a_slow_client_makes_the_origin_wait() -> None:
    sent = 0

    async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
        for _ in range(500):
            writer.write(bytes(100_000))
            await writer.drain()
            sent += 100_000

    async def scene(upstream: HttpUpstream, server: Loopback) -> tuple[int, int]:
        answered = await upstream.ask("GET", f"{server.origin}/x", [])
        await asyncio.sleep(0.3)
        ahead = sent
        return ahead, sum([len(chunk) async for chunk in answered.body])

    ahead, size = talk(speech, scene)
    assert size == 50_000_000
    assert ahead < 20_000_000


def test_giving_up_ends_the_exchange() -> None:
    ended = asyncio.Event()

    async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        await reader.read()
        ended.set()

    async def scene(upstream: HttpUpstream, server: Loopback) -> None:
        answered = await upstream.ask("GET", f"{server.origin}/x", [])
        await answered.close()
        await asyncio.wait_for(ended.wait(), SOON)

    talk(speech, scene)


@pytest.mark.parametrize(
    ("speech", "kind", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", ConnectionError, "broke off"),
        (b"nonsense\r\n\r\n", ConnectionError, "broke off"),
    ],
)
def test_broken_answers(speech: bytes, kind: type[OSError], reason: str) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(speech)
        await writer.drain()

    with pytest.raises(kind, match=f"127.0.0.1: .*{reason}"):
        talk(broken, whole)


def test_silence_is_a_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with pytest.raises(TimeoutError, match="in time"):
        talk(silent, whole, seconds=1.0)


def test_the_gate_stands_before_every_origin() -> None:
    with pytest.raises(ConnectionError, match="allow_networks"):
        talk(answer(b"secret"), whole, networks="10.0.0.0/8")


def test_only_web_addresses_are_asked() -> None:
    async def scene(upstream: HttpUpstream, server: Loopback) -> None:
        await upstream.ask("GET", "file:///etc/hostname", [])

    with pytest.raises(InputError, match="must be http or https"):
        talk(b"", scene)


def test_a_connection_is_used_again_and_asked_anew_if_it_was_closed() -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"first"))
        await reader.readuntil(b"\r\n\r\n")  # The second request meets a connection that is being closed.

    async def scene(upstream: HttpUpstream, server: Loopback) -> tuple[list[bytes], int]:
        kept = [(await whole(upstream, server))[2] for _ in range(3)]
        assert server.connections == 1
        server.speeches["/x"] = twice
        return kept + [(await whole(upstream, server))[2] for _ in range(2)], server.connections

    assert talk(answer(b"kept"), scene) == ([b"kept"] * 3 + [b"first"] * 2, 2)


def test_what_must_not_be_asked_twice_goes_over_a_new_connection() -> None:
    async def scene(upstream: HttpUpstream, server: Loopback) -> int:
        for method in ("GET", "POST", "PATCH", "GET"):
            await whole(upstream, server, method)
        return server.connections

    assert talk(answer(b""), scene) == 3


def test_trailers_come_behind_the_body() -> None:
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnews\r\n0\r\nX-Sum: 7\r\n\r\n"

    async def scene(upstream: HttpUpstream, server: Loopback) -> tuple[bytes, list[tuple[str, str]]]:
        answered = await upstream.ask("GET", f"{server.origin}/x", [])
        return b"".join([chunk async for chunk in answered.body]), list(answered.trailers)

    assert talk(said, scene) == (b"news", [("x-sum", "7")])


def test_no_more_connections_than_allowed() -> None:
    at_once = most = 0

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        writer.write(answer(b"news"))
        await writer.drain()

    async def play() -> list[bytes]:
        upstream = HttpUpstream(Gate(["127.0.0.0/8"]), seconds=SOON, connections=3)
        async with Loopback({"/x": slow}) as server:
            found = await asyncio.gather(*[whole(upstream, server) for _ in range(20)])
            await upstream.close()
        return [body for *_, body in found]

    assert asyncio.run(play()) == [b"news"] * 20
    assert most <= 3


def test_one_connection_serves_several_origins_in_turn() -> None:
    async def play() -> list[bytes]:
        upstream = HttpUpstream(Gate(["127.0.0.0/8"]), seconds=SOON, connections=1)
        async with Loopback({"/x": answer(b"a")}) as a, Loopback({"/x": answer(b"b")}) as b:
            found = [(await whole(upstream, one))[2] for one in (a, a, b, b, a, b)]
            await upstream.close()
        return found

    assert asyncio.run(play()) == [b"a", b"a", b"b", b"b", b"a", b"b"]


def test_a_line_break_does_not_get_into_a_request() -> None:
    with pytest.raises(InputError, match="line break"):
        talk(b"", lambda upstream, server: whole(upstream, server, lines=[("x", "a\r\nhost: b")]))


# https


def over_tls(certificate: tuple[str, str], speech: Speech, ca_file: str) -> bytes:
    async def play() -> bytes:
        upstream = HttpUpstream(Gate(["127.0.0.0/8"]), seconds=SOON, ca_file=ca_file)
        try:
            async with Loopback({"/x": speech}, tls=server_side(certificate, "http/1.1")) as server:
                return (await whole(upstream, server))[2]
        finally:
            await upstream.close()

    return asyncio.run(play())


CLOSED = b"HTTP/1.1 200 OK\r\n\r\nnews"


async def parting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(CLOSED)
    await writer.drain()


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection below TLS, as somebody in between could."""
    writer.write(CLOSED)
    await writer.drain()
    below = writer.get_extra_info("socket")
    below.shutdown(socket.SHUT_WR)
    await reader.read()


def test_over_tls_an_end_is_said(certificate: tuple[str, str]) -> None:
    assert over_tls(certificate, parting, certificate[0]) == b"news"
    with pytest.raises(ConnectionError, match="broke off"):
        over_tls(certificate, cut, certificate[0])


def test_certificates_are_looked_at(certificate: tuple[str, str]) -> None:
    with pytest.raises(ConnectionError, match="certificate is not trusted"):
        over_tls(certificate, answer(b"news"), "")
