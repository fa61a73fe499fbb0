"""The HTTP fetcher against a loopback server that hangs, drips, lies, loops, leaks and explodes."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
import zstandard

from support.loopback import Loopback, Speech, answer, redirect
from support.patience import SOON
from support.tls import certificate, server_side
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.errors import TooLateError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

__all__ = ["certificate"]
T = TypeVar("T")
HERE = ["127.0.0.1/32"]
SECRET = "canary-5c1f"
OLD = "Wed, 01 May 2024 10:00:00 GMT"


def talk(speeches: dict[str, Speech], scene: Callable[[HttpFetcher, Loopback], Awaitable[T]], **options: object) -> T:
    async def play() -> T:
        fetcher = HttpFetcher(Gate(HERE), **options)  # type: ignore[arg-type]
        try:
            async with Loopback(speeches) as server:
                return await scene(fetcher, server)
        finally:
            await fetcher.close()

    return asyncio.run(play())


def once(speech: Speech, **request: object) -> Fetched:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> Fetched:
        return await fetcher.fetch(Request(f"{server.origin}/x?{SECRET}", **request))  # type: ignore[arg-type]

    return talk({f"/x?{SECRET}": speech}, scene)


def test_a_body_with_all_that_comes_with_it() -> None:
    speech = answer(b"news", content_type="text/html; charset=utf-8", etag='W/"7"', last_modified=OLD)
    got = once(speech)
    assert (got.answer, got.body, got.etag, got.last_modified) == (Answer.CHANGED, b"news", 'W/"7"', OLD)
    assert got.media_type == "text/html; charset=utf-8"
    assert got.changed_at == (1714557600.0,)
    assert got.address.endswith(f"/x?{SECRET}")
    assert got.received == len(speech)
    assert abs(got.polled_at - time.time()) < 5
    assert (got.reason, got.retry_after) == ("", None)


def test_what_is_late_is_not_asked_over_a_new_connection_nor_over_one_that_stands() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        request = Request(f"{server.origin}/", begin_by=time.time() - 1.0)
        for connections in (0, 1):
            with pytest.raises(TooLateError, match="was over before it was asked"):
                await fetcher.fetch(request)
            assert (len(server.asked), server.connections) == (connections, connections)
            heard: asyncio.Future[Fetched | Exception] = asyncio.get_running_loop().create_future()
            fetcher.begin(request, heard.set_result)
            assert isinstance(await heard, TooLateError)
            # The same handles ask again, and are no longer too late.
            if not connections:
                assert (await fetcher.fetch(Request(f"{server.origin}/"))).body == b"news"
        assert (await fetcher.fetch(Request(f"{server.origin}/", begin_by=time.time() + 3600.0))).body == b"news"
        assert (len(server.asked), server.connections) == (2, 2)

    talk({"/": answer(b"news")}, scene)


def test_an_empty_body_is_a_body() -> None:
    assert once(answer(b"")).body == b""
    assert once(b"HTTP/1.1 204 No Content\r\n\r\n").body == b""


def test_not_modified_answers_what_we_hold() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        got = await fetcher.fetch(Request(f"{server.origin}/", etag='"7"', last_modified=OLD))
        assert (got.answer, got.body, got.etag, got.last_modified) == (Answer.UNCHANGED, None, '"7"', OLD)
        assert (server.asked[0]["if-none-match"], server.asked[0]["if-modified-since"]) == ('"7"', OLD)

    talk({"/": b"HTTP/1.1 304 Not Modified\r\n\r\n"}, scene)


@pytest.mark.parametrize(
    "head",
    [
        b'HTTP/1.1 304 Not Modified\r\nETag: "8"\r\nDate: ' + OLD.encode() + b"\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: " + b"x" * 5000 + b"\r\nage: 60\r\ncache-control: max-age=90\r\n\r\n",
        b'HTTP/1.1 304 Not Modified\r\nRateLimit: "hour";r=0;t=30\r\nEtag:\r\n\r\n',
        b'HTTP/1.1 103 Early Hints\r\nETag: "9"\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n',
        b"HTTP/1.1 304 Not Modified\r\nLocation: /elsewhere\r\nContent-Length: 7\r\n\r\n",
        redirect("/there"),
        answer(b"news"),
    ],
    ids=["tag", "aged", "limited", "interim", "length", "redirect", "body"],
)
def test_what_is_not_awaited_finds_the_same(head: bytes) -> None:
    """Not modified takes a shorter way there, which no caller may notice; nor do other answers take it."""

    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        request = Request(f"{server.origin}/", etag='"7"', last_modified=OLD, since=900.0)
        for asked in (request, Request(request.address), replace(request, headers={"a": "b"})):
            heard: asyncio.Future[Fetched | Exception] = asyncio.get_running_loop().create_future()
            fetcher.begin(asked, heard.set_result)
            assert await heard == await fetcher.fetch(asked)

    talk({"/": head, "/there": b"HTTP/1.1 304 Not Modified\r\n\r\n"}, scene, now=lambda: 1000.0)


def test_not_modified_without_a_question_is_no_evidence() -> None:
    got = once(b"HTTP/1.1 304 Not Modified\r\n\r\n")
    assert (got.answer, got.body) == (Answer.FAILED, None)
    assert got.reason == "127.0.0.1: it answered 304 Not Modified"


@pytest.mark.parametrize("etag", ["x" * 5000, "a\x07b", "é"])
def test_odd_validators_are_neither_kept_nor_sent(etag: str) -> None:
    assert once(answer(b"a", etag=etag)).etag is None

    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        assert (await fetcher.fetch(Request(f"{server.origin}/", etag=f"{etag}\r\nx: y"))).answer is Answer.CHANGED
        assert not {"if-none-match", "x"} & set(server.asked[0])

    talk({"/": answer(b"a")}, scene)


@pytest.mark.parametrize("when", ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 01 Jan 2999 00:00:00 GMT", "yesterday"])
def test_impossible_times_of_change_teach_nothing(when: str) -> None:
    assert once(answer(b"a", last_modified=when)).changed_at == ()


def test_a_time_of_change_made_up_while_answering_teaches_nothing() -> None:
    assert once(answer(b"a", last_modified=OLD, date=OLD)).changed_at == ()


def test_headers_are_those_of_the_final_answer_before_its_body() -> None:
    hints = b'HTTP/1.1 103 Early: Hints\r\nETag: "early"\r\nContent-Type: a/b\r\n\r\n'
    final = b'HTTP/1.1 200 Fine: thanks\r\neTaG:"first"\r\nETag: "second"\r\nTransfer-Encoding: chunked\r\n\r\n'
    got = once(hints + final + b'1\r\na\r\n0\r\nETag: "trailer"\r\nLast-Modified: ' + OLD.encode() + b"\r\n\r\n")
    assert (got.body, got.etag, got.last_modified, got.media_type) == (b"a", '"first"', None, "")


@pytest.mark.parametrize("status", ["206 Partial Content", "404 Not Found", "500 Internal Server Error"])
def test_other_answers_are_failures(status: str) -> None:
    got = once(answer(b"secret body", status))
    assert (got.answer, got.body, got.reason) == (Answer.FAILED, None, f"127.0.0.1: it answered {status}")


def test_a_wait_the_source_asks_for() -> None:
    assert once(answer(status="503 Busy", retry_after="7")).retry_after == 7.0
    assert once(answer(status="429 Slow", date=OLD, retry_after="Wed, 01 May 2024 10:02:00 GMT")).retry_after == 120.0
    assert once(answer(status="429 Slow", retry_after="1e9")).retry_after is None
    assert once(answer(b"a", ratelimit_remaining="0", ratelimit_reset="30")).retry_after == 30.0
    assert once(answer(b"a", ratelimit_remaining="1", ratelimit_reset="30")).retry_after is None


# Sources that misbehave.


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


def drip(start: bytes) -> Speech:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.02)

    return speak


def endless(start: bytes, more: bytes) -> Speech:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(more)
            await writer.drain()

    return speak


def then_close(speech: bytes, *, abort: bool = False) -> Speech:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(speech)
        await writer.drain()
        if abort:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets
            writer.transport.abort()

    return speak


def deflated(size: int) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(size // 2**20)) + packer.flush()


BOMB = deflated(32 * 2**20)
#: a hundred million zeros in brotli
BROTLI = bytes.fromhex(
    "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ffcffff83"
    "7f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffe3ffff1ffc1300715800a07bffc7ffff3ff82700e2b0"
    "0040f7fe8fffff7ff04f00c4610180eefd1fffffffe09f0088c30200ddfbbffc07afc33f0110870500bad875"
)
OK = b"HTTP/1.1 200 OK\r\n"
SLOW = "no whole answer within 0.4 s"
MORE = "more than 1048576 bytes"
WICKED: dict[str, tuple[Speech, str]] = {
    "hang": (hang, SLOW),
    "drip a body": (drip(OK + b"content-length: 100000\r\n\r\n"), SLOW),
    "drip a header": (drip(OK + b"x: "), SLOW),
    "less than promised": (then_close(OK + b"content-length: 100\r\n\r\nshort"), "ended before its stated end"),
    "cut chunks": (then_close(OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhe"), "ended before|cut"),
    "two lengths": (answer(b"abc").replace(b"\r\n\r\n", b"\r\ncontent-length: 9\r\n\r\n"), "HTTP"),
    "negative length": (then_close(OK + b"content-length: -5\r\n\r\nabc"), "HTTP"),
    "reset": (then_close(b"", abort=True), "cut|without an answer"),
    "reset in the body": (then_close(OK + b"content-length: 100\r\n\r\nabc", abort=True), "cut|ended before"),
    "close at once": (then_close(b""), "without an answer"),
    "garbage": (then_close(b"\x00\xffSSH-2.0-x\r\n\r\n"), "HTTP"),
    "garbage status": (then_close(b"HTTP/1.1 banana\r\n\r\n"), "HTTP"),
    "status 0": (then_close(b"HTTP/1.1 000 x\r\n\r\n"), "HTTP"),
    "endless body": (endless(OK + b"\r\n", b"a" * 65536), MORE),
    "endless chunks": (endless(OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 9999), MORE),
    "endless headers": (endless(OK, b"x: " + b"a" * 8000 + b"\r\n"), "headers are too large"),
    "one endless header": (endless(OK + b"x: ", b"a" * 65536), "headers are too large"),
    "endless interim answers": (endless(b"", b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n" * 999), "too large|" + SLOW),
    "gzip bomb": (answer(BOMB, content_encoding="gzip"), MORE),
    "gzip bomb in gzip": (answer(gzip.compress(BOMB), content_encoding="gzip, gzip"), MORE),
    "brotli bomb": (answer(BROTLI, content_encoding="br"), MORE),
    "many encodings": (answer(b"a", content_encoding=", ".join(["gzip"] * 50)), "decoded"),
    "zstd bomb": (answer(zstandard.compress(bytes(2**26)), content_encoding="zstd"), MORE),
    "unknown encoding": (answer(b"a", content_encoding="compress"), "decoded"),
    "broken gzip": (answer(b"not gzip at all", content_encoding="gzip"), "decoded"),
    "long refusal": (endless(b"HTTP/1.1 404 Not Found\r\n\r\n", b"a" * 65536), "it answered 404 Not Found"),
}


@pytest.mark.parametrize("name", WICKED)
def test_wicked_sources_end_in_a_reason_in_time_and_within_bounds(name: str) -> None:
    speech, words = WICKED[name]
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    got = once(speech, seconds=0.4 if "0.4" in words else 20.0, limit=2**20, headers={"x-key": SECRET})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert (got.answer, got.body) == (Answer.FAILED, None)
    assert any(part in got.reason for part in words.split("|")), got.reason
    assert got.reason.startswith("127.0.0.1: ")
    assert SECRET not in got.reason
    assert time.monotonic() - begin < SOON
    assert grown < 32 * 2**20


def test_an_honest_compressed_body_is_whole() -> None:
    text = b"0123456789" * 20_000
    got = once(answer(gzip.compress(text), content_encoding="gzip"))
    assert got.body == text
    assert got.received < 5_000


def test_a_body_of_just_the_limit_is_whole() -> None:
    assert once(answer(b"a" * 70_000), limit=70_000).body == b"a" * 70_000
    assert once(answer(b"a" * 70_001), limit=70_000).answer is Answer.FAILED


def test_waiting_for_a_connection_counts() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        begin = time.monotonic()
        requests = [fetcher.fetch(Request(f"{server.origin}/{i}", seconds=0.4)) for i in range(5)]
        for got in await asyncio.gather(*requests):
            assert SLOW in got.reason
        assert time.monotonic() - begin < SOON
        assert server.connections < 5, "who only waited was never asked for"

    talk({f"/{i}": hang for i in range(5)}, scene, connections=1)


# Redirects.


def test_what_one_poll_sends_along_the_next_one_does_not() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> list[dict[str, str]]:
        await fetcher.fetch(Request(f"{server.origin}/a", etag='"7"', headers={"Authorization": SECRET}))
        await fetcher.fetch(Request(f"{server.origin}/b"))
        return server.asked

    first, second = talk({"/a": answer(b"a"), "/b": answer(b"b")}, scene)
    assert (first["authorization"], first["if-none-match"]) == (SECRET, '"7"')
    assert not {"authorization", "if-none-match"} & set(second)


def test_what_is_asked_by_post_is_not_asked_again_elsewhere_or_by_get() -> None:
    """Content is sent by POST, once more where a redirect within the site says so, and not with the next poll."""
    said = list[tuple[str, bytes]]()

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said.append((server.asked[-1]["content-type"], await reader.readexactly(7)))
        writer.write(answer(b"told"))
        await writer.drain()

    def moved(to: str, status: str) -> Speech:
        async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(7)
            writer.write(redirect(to, status))
            await writer.drain()

        return speech

    server: Loopback

    async def scene(fetcher: HttpFetcher, there: Loopback) -> list[Fetched]:
        nonlocal server
        server = there
        own = {"headers": {"Content-Type": "text/xml"}, "content": b"<call/>"}
        asked = [replace(Request(f"{there.origin}/{path}"), **own) for path in ("rpc", "moved", "found", "away")]  # type: ignore[arg-type]
        return [await fetcher.fetch(one) for one in (*asked, Request(f"{there.origin}/page"))]

    speeches: dict[str, Speech] = {
        "/rpc": heard,
        "/moved": moved("/rpc", "307 Temporary Redirect"),
        "/found": moved("/rpc", "302 Found"),
        "/away": moved("http://127.0.0.1:9/", "307 Temporary Redirect"),
        "/page": answer(b"page"),
    }
    first, again, found, away, page = talk(speeches, scene)
    assert (first.body, again.body, page.body) == (b"told", b"told", b"page")
    assert said == [("text/xml", b"<call/>")] * 2
    assert [one.reason for one in (found, away)] == [
        "127.0.0.1: it redirects what was asked by POST: give the address that it leads to"
    ] * 2
    assert server.asked[-1][""].startswith("GET /page ")
    assert "content-type" not in server.asked[-1]


def test_redirects_are_followed_and_the_last_address_is_told() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        got = await fetcher.fetch(Request(f"{server.origin}/a"))
        assert (got.body, got.address) == (b"here", f"{server.origin}/dir/c%20d")
        assert server.connections == 1

    talk({"/a": redirect("dir/b", "301 Moved"), "/dir/b": redirect("c d"), "/dir/c%20d": answer(b"here")}, scene)


def test_five_redirects_and_not_one_more() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        assert (await fetcher.fetch(Request(f"{server.origin}/1"))).body == b"end"
        got = await fetcher.fetch(Request(f"{server.origin}/0"))
        assert got.reason == "127.0.0.1: it redirects more than 5 times"

    hops: dict[str, Speech] = {f"/{i}": redirect(f"/{i + 1}") for i in range(6)}
    talk(hops | {"/6": answer(b"end")}, scene)


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("file:///etc/passwd", "must be http or https"),
        ("gopher://127.0.0.1:70/", "must be http or https"),
        ("data:text/html,a", "must be http or https"),
        ("//127.0.0.1\\@example.org/", "backslash"),
        (f"http://user:{SECRET}@127.0.0.1/", "holds credentials"),
        ("http://[::1/", "not a web address"),
        ("http://127.0.0.2:{port}/private", "127.0.0.2 is not public"),
        ("http://127.2:{port}/private", "127.0.0.2 is not public"),
        ("//[::ffff:127.0.0.2]:{port}/private", "127.0.0.2 is not public"),
        ("http://0x7f000002:{port}/private", "127.0.0.2 is not public"),
    ],
)
def test_redirects_that_are_not_followed(to: str, words: str) -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        async with Loopback({"/private": answer(b"keys")}, "127.0.0.2") as private:
            server.speeches["/"] = redirect(to.format(port=private.port))
            got = await fetcher.fetch(Request(f"{server.origin}/"))
            assert got.answer is Answer.FAILED
            assert words in got.reason
            assert SECRET not in got.reason
            assert private.connections == 0

    talk({}, scene)


def test_credentials_stay_at_their_origin() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        async with Loopback({"/b": redirect(f"{server.origin}/c")}) as other:
            server.speeches["/a"] = redirect(f"{other.origin}/b")
            headers = {"Authorization": SECRET, "X-Api-Key": SECRET, "Empty": ""}
            got = await fetcher.fetch(Request(f"{server.origin}/start", etag='"7"', headers=headers))
            assert got.body == b"end"
            first, second, back = server.asked
            for asked in (first, second):
                assert (asked["authorization"], asked["x-api-key"]) == (SECRET, SECRET)
            for asked in (*other.asked, back):
                assert SECRET not in str(asked)
                assert asked["if-none-match"] == '"7"'

    talk({"/start": redirect("/a"), "/c": answer(b"end")}, scene)


# The gate.


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "localhost", "0", "[::ffff:7f00:1]", "①②⑦.⓪.⓪.①"],
)
def test_no_spelling_of_loopback_is_dialled_unless_allowed(host: str) -> None:
    async def play() -> None:
        fetcher = HttpFetcher()
        async with Loopback({}) as server:
            got = await fetcher.fetch(Request(f"http://{host}:{server.port}/?{SECRET}"))
            assert "is not public, add it to allow_networks" in got.reason
            assert SECRET not in got.reason
            assert server.connections == 0
        await fetcher.close()

    asyncio.run(play())


def test_the_proxy_of_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert once(answer(b"direct")).body == b"direct"


def test_a_proxy_of_the_settings_is_used_but_private_numbers_are_not_asked_of_it() -> None:
    async def play() -> None:
        async with Loopback({"http://example.org/a": answer(b"by proxy")}) as proxy:
            fetcher = HttpFetcher(proxy=proxy.origin)
            assert (await fetcher.fetch(Request("http://example.org/a"))).body == b"by proxy"
            for host in ("10.0.0.1", "127.1", "[::1]"):
                assert "is not public" in (await fetcher.fetch(Request(f"http://{host}/a"))).reason
            await fetcher.close()
            assert len(proxy.asked) == 1

    asyncio.run(play())


# Secrets, and coming to an end.


@pytest.mark.parametrize("value", [f"{SECRET}\r\nx-evil: 1", f"{SECRET}\0", f"{SECRET}é"])
def test_a_header_that_could_be_two_is_not_sent(value: str) -> None:
    got = once(answer(b"a"), headers={"X-Key": value})
    assert got.reason == "header 'X-Key' must be printable ASCII without line breaks: check its name and value"


@pytest.mark.parametrize(
    "address", [f"ftp://h/{SECRET}", f"http://u:{SECRET}@h/", f"http://127.0.0.1:1/?{SECRET}", "x"]
)
def test_a_bad_address_fails_without_telling_secrets(address: str) -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> Fetched:
        return await fetcher.fetch(Request(address, headers={"x-key": SECRET}))

    got = talk({}, scene)
    assert got.answer is Answer.FAILED
    assert got.reason
    assert SECRET not in got.reason


def test_closing_ends_what_is_in_flight_and_leaves_nothing_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0

    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        flights = [asyncio.create_task(fetcher.fetch(Request(f"{server.origin}/hang"))) for _ in range(20)]
        await asyncio.gather(*(fetcher.fetch(Request(f"{server.origin}/")) for _ in range(20)))
        while server.connections < 21:
            await asyncio.sleep(0.01)
        await fetcher.close()
        for got in await asyncio.gather(*flights):
            assert got.reason == "127.0.0.1: the fetcher was closed before the answer came"
        assert (await fetcher.fetch(Request(f"{server.origin}/"))).reason == "the fetcher is closed"

    talk({"/hang": hang, "/": answer(b"a")}, scene)
    if before:
        assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_cancelled_poll_is_cancelled_and_the_fetcher_goes_on() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> None:
        flight = asyncio.create_task(fetcher.fetch(Request(f"{server.origin}/hang")))
        while not server.asked:
            await asyncio.sleep(0.01)
        flight.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flight
        assert (await fetcher.fetch(Request(f"{server.origin}/"))).body == b"a"

    talk({"/hang": hang, "/": answer(b"a")}, scene)


# TLS.


def _overserver_side(certificate: tuple[str, str], speech: bytes, ca_file: str, **request: object) -> Fetched:
    async def play() -> Fetched:
        fetcher = HttpFetcher(Gate(HERE), ca_file=ca_file)
        async with Loopback({"/": speech}, tls=server_side(certificate)) as server:
            got = await fetcher.fetch(Request(f"{server.origin}/", **request))  # type: ignore[arg-type]
            await fetcher.close()
            return got

    return asyncio.run(play())


def test_a_certificate_must_be_trusted(certificate: tuple[str, str]) -> None:
    assert _overserver_side(certificate, answer(b"a"), certificate[0]).body == b"a"
    assert _overserver_side(certificate, answer(b"a"), "").reason == "127.0.0.1: its certificate is not trusted"


def test_a_file_of_certificates_may_have_any_name(certificate: tuple[str, str], tmp_path: Path) -> None:
    named = tmp_path / "Zertifikät ß.pem"
    named.write_bytes(Path(certificate[0]).read_bytes())
    assert _overserver_side(certificate, answer(b"a"), str(named)).body == b"a"


def test_secure_to_insecure_is_not_followed_with_credentials(certificate: tuple[str, str]) -> None:
    down = redirect("http://127.0.0.1:1/")
    got = _overserver_side(certificate, down, certificate[0], headers={"x-key": SECRET})
    assert "redirects from https to http" in got.reason
    assert "could not be connected to" in _overserver_side(certificate, down, certificate[0]).reason


def test_http_2_where_the_source_speaks_it(certificate: tuple[str, str]) -> None:
    frames: list[bytes] = []

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            frames.append(await reader.readexactly(24))
            writer.write(bytes(3) + b"\x04\x00" + bytes(4))  # our settings: none
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3], "big"))
                if head[3] == 1:  # the request's headers: answer with status 200 (0x88 in HPACK), length 3
                    stream = head[5:]
                    writer.write(b"\x00\x00\x05\x01\x04" + stream + b"\x88\x0f\x0d\x013")
                    writer.write(b"\x00\x00\x03\x00\x01" + stream + b"two")
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def play() -> Fetched:
        server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=server_side(certificate, "h2"))
        fetcher = HttpFetcher(Gate(HERE), ca_file=certificate[0])
        got = await fetcher.fetch(Request(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", seconds=5))
        await fetcher.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.05)  # the server's side of the connection notices
        return got

    got = asyncio.run(play())
    assert (got.answer, got.body) == (Answer.CHANGED, b"two")
    assert frames == [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]


def test_one_exchange_in_a_second_has_libcurl_look_through_the_names_it_knows() -> None:
    async def scene(fetcher: HttpFetcher, server: Loopback) -> list[bool]:
        looked = []
        for path in ("gone", "a", "a", "a"):
            # Nobody listens where the first one goes: libcurl has not looked.
            origin = "http://127.0.0.1:1" if path == "gone" else server.origin
            await fetcher.fetch(Request(f"{origin}/{path}"))
            looked.append(fetcher._idle[-1] not in fetcher._blind)
        fetcher._names.looked(time.monotonic() - 2.0)
        await fetcher.fetch(Request(f"{server.origin}/a"))
        return [*looked, fetcher._idle[-1] not in fetcher._blind]

    assert talk({"/a": answer(b"news")}, scene) == [True, True, False, False, True]
