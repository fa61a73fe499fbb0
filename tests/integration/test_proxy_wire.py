"""The proxy on its own wire, with bytes written by hand: doors, names, interim answers, tunnels, broken requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from support.loopback import Loopback, Speech, answer
from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.dialling import dialler
from unstale.adapters.http_upstream import HttpUpstream
from unstale.server.proxy.app import Proxy
from unstale.server.proxy.door import Door
from unstale.server.proxy.wire import HEAD_SIZE, serve

T = TypeVar("T")
TOKEN = "0123456789abcdef0123456789abcdef"
NEAR = Gate(["127.0.0.0/8"])


def fronted(speeches: dict[str, Speech], scene: Callable[[int, Loopback], Awaitable[T]], door: Door | None = None) -> T:
    async def play() -> T:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with Loopback(speeches) as origin:
            origins = {"*": origin.origin, "127.0.0.1": origin.origin}
            proxy = Proxy(HttpUpstream(NEAR, seconds=SOON), origins, name="edge", door=door, dial=dialler(NEAR))
            serving = asyncio.create_task(serve(proxy, "127.0.0.1", 0, stop=stop, ready=port.set_result))
            try:
                return await scene(await port, origin)
            finally:
                stop.set()
                await serving
                await proxy.close()

    return asyncio.run(play())


async def said(port: int, *pieces: bytes, seconds: float = 5.0) -> bytes:
    """All that comes back until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)
    try:
        return await asyncio.wait_for(reader.read(), seconds)
    finally:
        writer.close()


def get(path: str = "/x", host: str = "a", *lines: str, end: bool = True) -> bytes:
    every = [f"GET {path} HTTP/1.1", f"Host: {host}", *lines, *(["Connection: close"] if end else [])]
    return "\r\n".join([*every, "", ""]).encode()


NEWS = answer(b"news")


def once(request: bytes, speech: Speech = NEWS, door: Door | None = None) -> tuple[bytes, Loopback]:
    async def scene(port: int, origin: Loopback) -> tuple[bytes, Loopback]:
        return await said(port, request), origin

    return fronted({"/x": speech}, scene, door)


# The door.

CLOSED = Door(TOKEN, closed=True)


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([], b"401"),
        (["Authorization: Bearer wrong"], b"401"),
        ([f"Authorization: Basic {TOKEN}"], b"401"),
        ([f"Authorization: Bearer {TOKEN}"], b"200"),
        ([f"Proxy-Authorization: Bearer {TOKEN}"], b"200"),
        ([f"Proxy-Authorization: Bearer {TOKEN}", "Authorization: Bearer theirs"], b"200"),
    ],
)
def test_beyond_this_machine_the_token_is_needed_and_goes_no_further(lines: list[str], status: bytes) -> None:
    got, origin = once(get("/x", "a", *lines), door=CLOSED)
    assert got.split()[1] == status
    assert len(origin.asked) == (status == b"200")
    for asked in origin.asked:
        assert TOKEN not in str(asked)
        assert asked.get("authorization") == ("Bearer theirs" if "theirs" in str(lines) else None)
    if status == b"401":
        assert b'www-authenticate: Bearer realm="unstale"' in got


def test_clients_that_know_of_the_proxy_hear_407() -> None:
    got, origin = once(get("http://127.0.0.1/x"), door=CLOSED)
    assert got.split()[1] == b"407"
    assert b"proxy-authenticate: Bearer" in got
    assert not origin.asked
    got, _ = once(b"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: 127.0.0.1:443\r\nConnection: close\r\n\r\n", door=CLOSED)
    assert got.split()[1] == b"407"


@pytest.mark.parametrize(("host", "status"), [("localhost:80", b"200"), ("evil.example", b"421"), ("", b"421")])
def test_on_this_machine_it_goes_by_its_names(host: str, status: bytes) -> None:
    got, _ = once(get("/x", host), door=Door(names=frozenset({"localhost"})))
    assert got.split()[1] == status


# Requests.

BROKEN = {
    "no Host": (b"GET /x HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
    "two Hosts": (get("/x", "a", "Host: b"), b"400"),
    "a length and chunks": (
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"400",
    ),
    "two lengths": (b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", b"400"),
    "a space before the colon": (b"GET /x HTTP/1.1\r\nHost : a\r\n\r\n", b"400"),
    "bare line feeds": (b"GET /x HTTP/1.1\nHost: a\n\n", b"400"),
    "a folded line": (b"GET /x HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", b"400"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    "an unknown coding": (b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: abc\r\n\r\n", b"400"),
    "an unknown method": (b"FOO /x HTTP/1.1\r\nHost: a\r\n\r\n", b"501"),
    "a path without a slash": (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
    "a large head": (b"GET /x HTTP/1.1\r\nHost: a\r\nX: " + b"a" * HEAD_SIZE, b"431"),
    "TLS": (bytes.fromhex("16030100a5010000a10303") + bytes(200), b"501"),
    "TRACE": (b"TRACE /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", b"501"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_understood_goes_to_no_origin(name: str) -> None:
    request, status = BROKEN[name]
    got, origin = once(request)
    assert got.split()[1] == status
    assert not origin.asked


def test_nothing_is_added_to_an_answer_but_what_a_proxy_says() -> None:
    got, _ = once(get(), answer(b"news", server="theirs", date="Wed, 01 May 2024 10:00:00 GMT"))
    head, _, body = got.partition(b"\r\n\r\n")
    names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
    assert sorted(names) == [b"cache-status", b"connection", b"content-length", b"date", b"server", b"via"]
    assert b"server: theirs" in head
    assert body == b"news"


def test_paths_are_asked_and_kept_as_they_were_written() -> None:
    async def scene(port: int, origin: Loopback) -> list[bytes]:
        got = [await said(port, get(path)) for path in ("/a/../b", "/a/../b", "/b")]
        assert [asked[""] for asked in origin.asked] == ["GET /a/../b HTTP/1.1", "GET /b HTTP/1.1"]
        return got

    speeches: dict[str, Speech] = {
        "/a/../b": answer(b"one", cache_control="max-age=60"),
        "/b": answer(b"two", cache_control="max-age=60"),
    }
    assert [got[-3:] for got in fronted(speeches, scene)] == [b"one", b"one", b"two"]


def test_several_requests_on_one_connection_in_their_order() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2)
        writer.write(answer(b"slow"))
        await writer.drain()

    async def scene(port: int, origin: Loopback) -> bytes:
        return await said(port, get("/slow", end=False) + get("/x", end=False), get("/x"))

    got = fronted({"/slow": slow, "/x": answer(b"news")}, scene)
    assert got.count(b"HTTP/1.1 200 OK") == 3
    assert got.index(b"slow") < got.index(b"news")


def test_bodies_in_chunks_go_up_and_come_down() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = await reader.readexactly(6)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n" + body + b"\r\n0\r\n\r\n")
        await writer.drain()

    head = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    got, _ = once(head + b"3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", echo)
    assert got.endswith(b"6\r\nabcdef\r\n0\r\n\r\n")


def test_an_answer_that_breaks_off_is_not_ended() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
        await writer.drain()

    async def scene(port: int, origin: Loopback) -> bytes:
        try:
            return await said(port, get())
        except ConnectionError:
            return b""

    assert not fronted({"/x": cut}, scene).endswith(b"0\r\n\r\n")


# Interim answers.

EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"


def test_interim_answers_are_passed_on_and_not_kept() -> None:
    async def scene(port: int, origin: Loopback) -> list[bytes]:
        return [await said(port, get()) for _ in range(2)]

    first, second = fronted({"/x": EARLY + answer(b"news", cache_control="max-age=60")}, scene)
    assert first.startswith(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert second.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"link" not in second
    assert b"hit" in second


def test_clients_of_http_1_0_get_no_interim_answers() -> None:
    got, _ = once(b"GET /x HTTP/1.0\r\n\r\n", EARLY + answer(b"news"))
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")


# Tunnels.


def test_a_tunnel_passes_bytes_that_nobody_reads() -> None:
    async def scene(port: int, origin: Loopback) -> tuple[bytes, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        there = f"127.0.0.1:{origin.port}"
        writer.write(f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\n\r\n".encode() + get("/x", "inside"))
        established = await reader.readuntil(b"\r\n\r\n")
        inside = await reader.readuntil(b"news")
        writer.close()
        assert origin.asked[0]["host"] == "inside"
        return established, inside

    established, inside = fronted({"/x": answer(b"news")}, scene)
    assert established == b"HTTP/1.1 200 Connection Established\r\n\r\n"
    assert b"via" not in inside


@pytest.mark.parametrize("there", ["b.example:443", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1"])
def test_tunnels_lead_only_to_hosts_that_are_served(there: str) -> None:
    got, origin = once(f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\nConnection: close\r\n\r\n".encode())
    assert got.split()[1] in (b"400", b"403")
    assert not origin.asked


# Trailers.

TRAILED = b"HTTP/1.1 200 OK\r\nCache-Control: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
TRAILED += b"4\r\nnews\r\n0\r\nX-Sum: 7\r\nTE: x\r\n\r\n"


@pytest.mark.parametrize("control", [b"no-store", b"max-age=60"])
def test_trailers_go_to_clients_that_take_them(control: bytes) -> None:
    got, origin = once(get("/x", "a", "TE: trailers"), TRAILED % control)
    assert got.endswith(b"\r\n\r\n4\r\nnews\r\n0\r\nx-sum: 7\r\n\r\n")
    assert (origin.asked[0]["te"], origin.asked[0]["connection"]) == ("trailers", "te")
    got, origin = once(get(), TRAILED % control)
    assert b"x-sum" not in got
    assert b"news" in got
    assert "te" not in origin.asked[0]


def test_trailers_are_not_kept() -> None:
    async def scene(port: int, origin: Loopback) -> tuple[bytes, int]:
        await said(port, get("/x", "a", "TE: trailers"))
        return await said(port, get("/x", "a", "TE: trailers")), len(origin.asked)

    got, asked = fronted({"/x": TRAILED % b"max-age=60"}, scene)
    assert asked == 1
    assert got.endswith(b"\r\n\r\nnews")


def test_an_unknown_transfer_coding_is_passed_through_and_kept() -> None:
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: made-up\r\n\r\nnews")
        await writer.drain()

    async def scene(port: int, origin: Loopback) -> tuple[bytes, bytes]:
        return await said(port, get()), await said(port, get())

    first, second = fronted({"/x": odd}, scene)
    assert b"edge; hit" in second
    for got in (first, second):
        assert got.endswith(b"\r\n\r\nnews")
        assert b"made-up" not in got
