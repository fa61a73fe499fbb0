"""The front answers byte by byte what the application behind it answers, over real connections."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.asgi import Kept
from unstale.server import spooling
from unstale.server.app import App, replica
from unstale.server.dashboard import Door
from unstale.server.front import Front
from unstale.server.serving import new_loop, serve
from unstale.server.sessions import Sessions

TOKEN = "0123456789abcdef0123456789abcdef"
TEXT = b"the quick brown fox jumps over the lazy dog, again and again and again. " * 30

#: what is asked for, with ETAG in the place of the copy's
ASKED = [
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/1 HTTP/1.1\r\nhost: LOCALHOST:80\r\nAccept-Encoding: zstd\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nAccept-Encoding: zstd\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: a\r\nCookie: a=1\r\nCookie: b=2\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: ETAG\r\n",
    b'GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "a", W/ETAG\r\n',
    b'GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: "a"\r\nIf-None-Match: ETAG\r\n',
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \xe4\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-Match: \xe4\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nIf-Match: ETAG\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-9\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=90000-\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nCache-Control: max-age=1\r\n",
    b"GET /copies/1?max_age=1h HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/1? HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/1/_meta HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/%31 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET http://localhost/copies/1 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET http://localhost/copies/1 HTTP/1.0\r\n",
    b"GET /copies/1 HTTP/1.0\r\n",
    b"GET /copies/1 HTTP/1.1\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: evil.example\r\n",
    b"GET /copies/1 HTTP/1.1\r\nHost: \xe4\r\n",
    b"HEAD /copies/1 HTTP/1.1\r\nHost: localhost\r\n",
    b"POST /copies/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab",
    b"GET /copies/2 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/3 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/01 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copies/ HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /copy?source=https://a.example/0 HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n",
    b"GET /nothing/here HTTP/1.1\r\nHost: localhost\r\nCookie: unstale=a\r\n",
    b"POST /dashboard/login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Length: 3\r\n\r\n{}!",
    b"POST /api/v1/sources HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n",
]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db", sources=2)
    yield kept
    kept.close()


def door(kept: Kept, **more: object) -> tuple[App, Door]:
    app = replica(kept.shelf, clock=kept.clock, token=TOKEN, names=["localhost"], **more)  # type: ignore[arg-type]
    return app, Door(app, Sessions(TOKEN, {}, clock=kept.clock), TOKEN, home="reader")


def answer(port: int, request: bytes) -> bytes:
    """All bytes of an answer; dates that the server gives to refusals are taken out."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        before, _, body = request.partition(b"\r\n\r\n")
        connection.sendall(before.rstrip(b"\r\n") + b"\r\nConnection: close\r\n\r\n" + body + b"\r\n")
        data = b""
        while piece := connection.recv(65536):
            data += piece
    return data if b"replica-status" in data else re.sub(rb"date: [^\r]*\r\n", b"", data)


def both(kept: Kept, requests: list[bytes], **more: object) -> list[tuple[bytes, bytes]]:
    """What the application answers by itself, and what the front answers."""

    async def play() -> list[tuple[bytes, bytes]]:
        stop, ports, servers = asyncio.Event(), asyncio.Queue[int](), []
        behind, (app, door_behind) = door(kept, **more)[1], door(kept, **more)
        found = []
        for one in (behind, Front(door_behind, app.copies, app.guard)):
            servers.append(
                asyncio.create_task(serve(one, "127.0.0.1", 0, token=TOKEN, stop=stop, ready=ports.put_nowait))
            )
            found.append(await ports.get())
        try:
            # The second time out of memory.
            return [
                (await asyncio.to_thread(answer, found[0], one), await asyncio.to_thread(answer, found[1], one))
                for one in requests * 2
            ]
        finally:
            stop.set()
            await asyncio.gather(*servers)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(play())


def test_the_front_answers_what_the_application_does(kept: Kept) -> None:
    kept.poll(TEXT, last_modified="Sat, 15 Nov 2025 19:00:00 GMT")
    kept.now += 60
    kept.poll()
    kept.now += 12.5
    (first, _), *_ = both(kept, ASKED[:1])
    tag = re.search(rb'etag: ("[^"]*")', first)
    assert tag is not None
    pairs = both(kept, [one.replace(b"ETAG", tag[1]) for one in ASKED])
    for request, (behind, before) in zip(ASKED * 2, pairs, strict=True):
        assert before == behind, request
    statuses = {int(behind[9:12]) for behind, _ in pairs}
    assert statuses >= {200, 206, 304, 400, 401, 404, 405, 412, 416, 421}


@pytest.mark.parametrize("files", [256, 0], ids=["out of files", "out of memory"])
def test_large_copies_are_sent_as_they_are(kept: Kept, files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "FILES", files)
    data = random.Random(1).randbytes(3 * 2**20)
    kept.poll(data)
    begin, first = b"GET /copies/1 HTTP/1.1\r\nHost: localhost\r\n", (100_000, 2_500_000)
    asked = [
        (begin, 200, data),
        (begin + b"Range: bytes=%d-%d\r\n" % (first[0], first[1] - 1), 206, data[first[0] : first[1]]),
        (begin + b"Range: bytes=-70000\r\n", 206, data[-70_000:]),
        (begin + b"Range: bytes=5-5\r\n", 206, data[5:6]),
        # Of much in several pieces all is sent, as if nobody had asked for pieces.
        (begin + b"Range: bytes=0-999999,1000001-2000000\r\n", 200, data),
        (begin.replace(b"GET", b"HEAD"), 200, b""),
        (b"GET /copies/1?version=1 HTTP/1.1\r\nHost: localhost\r\n", 200, data),
    ]
    for (_, status, body), pair in zip(asked * 2, both(kept, [one for one, _, _ in asked]), strict=True):
        for answered in pair:
            head, _, sent = answered.partition(b"\r\n\r\n")
            assert (int(head[9:12]), sent) == (status, body)
        assert pair[0] == pair[1]
        length = len(data) if not body else len(body)
        assert b"content-length: %d" % length in pair[0]


def test_a_closed_replica_stays_closed(kept: Kept) -> None:
    kept.poll(TEXT)
    (behind, before), *_ = both(kept, [ASKED[0]], closed=True)
    # The door lets those on this machine in; without it nobody is.
    assert before == behind
    app = replica(kept.shelf, clock=kept.clock, token=TOKEN, closed=True)
    assert not app.guard.lets("localhost")


def test_reading_is_counted_either_way(kept: Kept) -> None:
    kept.poll(TEXT)
    app, _ = door(kept)

    async def read() -> None:
        assert await app.copies.plain(1, "", None) is not None
        assert await app.copies.plain(3, "", None) is None

    asyncio.run(read())
    assert app.copies.take() == {1: 1}
    assert app.copies.served == {200: 1}
