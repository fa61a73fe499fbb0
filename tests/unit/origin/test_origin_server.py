"""The origin as its clients meet it: curl, the HTTP fetcher, and somebody who types requests by hand."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest

from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.origin import log as logs
from unstale.origin.log import RequestLog
from unstale.origin.measure import measured_freshness
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Fetched, Request


def still(**options: object) -> Site:
    return Site.of(3, 0.0, **options)  # type: ignore[arg-type]


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin(still()).in_thread() as serving:
        yield serving


def curl(*args: str) -> str:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    done = subprocess.run(["curl", "-sS", "--max-time", "10", "--noproxy", "*", *args], capture_output=True, check=True)
    return done.stdout.decode()


def headers(text: str) -> dict[str, str]:
    return {name.lower(): value for name, value in re.findall(r"^([\w-]+): (.*?)\r$", text, re.MULTILINE)}


def spoken(origin: Origin, *parts: bytes) -> bytes:
    """What comes back for these bytes, sent one part after the other, until the origin closes."""
    with socket.create_connection(("127.0.0.1", int(origin.address.rpartition(":")[2])), timeout=SOON) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            client.sendall(part)
        heard = b""
        while more := client.recv(65536):
            heard += more
        return heard


# With curl.


def test_curl_gets_a_source_then_304(origin: Origin) -> None:
    first = curl("-i", f"{origin.address}/s/1")
    assert first.startswith("HTTP/1.1 200 OK\r\n")
    got = headers(first)
    assert got["content-length"] == "2000"
    assert len(first.split("\r\n\r\n", 1)[1]) == 2000
    again = curl("-i", "-H", f"If-None-Match: {got['etag']}", f"{origin.address}/s/1")
    assert again.startswith("HTTP/1.1 304 Not Modified\r\n")
    assert headers(again)["etag"] == got["etag"]
    assert again.endswith("\r\n\r\n")
    for other, status in (
        (f'"x", W/{got["etag"]}', "304"),
        ("*", "304"),
        ('"x"', "200"),
        (got["etag"].replace(".1.0", ".2.0"), "200"),
    ):
        answer = curl("-o", "/dev/null", "-w", "%{http_code}", "-H", f"If-None-Match: {other}", f"{origin.address}/s/1")
        assert answer == status, other


def test_curl_s_head_is_the_answer_without_its_body(origin: Origin) -> None:
    head, whole = curl("-I", f"{origin.address}/s/0"), curl("-i", f"{origin.address}/s/0")
    for name in ("etag", "content-length", "content-type"):
        assert headers(head)[name] == headers(whole)[name]
    assert head.endswith("\r\n\r\n")


def test_curl_keeps_its_connection(origin: Origin) -> None:
    used = curl("-o", "/dev/null", "-w", "%{num_connects} ", *[f"{origin.address}/s/0", "-o", "/dev/null"] * 3)
    assert used.split() == ["1", "0", "0"]


def test_query_and_unknown_paths(origin: Origin) -> None:
    assert curl("-o", "/dev/null", "-w", "%{http_code}", f"{origin.address}/s/0?x=1") == "200"
    assert curl("-o", "/dev/null", "-w", "%{http_code}", f"{origin.address}/s/3") == "404"
    assert curl("-o", "/dev/null", "-w", "%{http_code}", "-d", "x", f"{origin.address}/s/0") == "405"


def test_lists_call_the_origin_as_the_client_does(origin: Origin) -> None:
    port = origin.address.rpartition(":")[2]
    assert curl(f"http://localhost:{port}/list.txt").split()[0] == f"http://localhost:{port}/s/0"
    assert curl("-H", "Host: <b>", f"{origin.address}/list.txt").split()[0] == f"{origin.address}/s/0"


def test_last_modified_is_told_and_asked_about_if_wanted() -> None:
    with Origin(still(start=1.7e9 + 0.9), last_modified=True).in_thread() as origin:
        got = headers(curl("-i", f"{origin.address}/s/0"))
        assert got["last-modified"] == formatdate(1.7e9, usegmt=True)
        for since, status in ((1.7e9, "304"), (1.7e9 - 1, "200")):
            field = f"If-Modified-Since: {formatdate(since, usegmt=True)}"
            assert curl("-o", "/dev/null", "-w", "%{http_code}", "-H", field, f"{origin.address}/s/0") == status
        field = "If-Modified-Since: yesterday"
        assert curl("-o", "/dev/null", "-w", "%{http_code}", "-H", field, f"{origin.address}/s/0") == "200"
        # an ETag outweighs a date
        both = ["-H", f"If-Modified-Since: {formatdate(usegmt=True)}", "-H", 'If-None-Match: "x"']
        assert curl("-o", "/dev/null", "-w", "%{http_code}", *both, f"{origin.address}/s/0") == "200"


# By hand.


def test_requests_in_one_piece_in_many_and_byte_by_byte(origin: Origin) -> None:
    two = b"GET /s/0 HTTP/1.1\r\nHost: x\r\n\r\nHEAD /s/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for parts in ([two], [two[:9], two[9:40], two[40:]], [two[k : k + 1] for k in range(len(two))]):
        assert spoken(origin, *parts).count(b"HTTP/1.1 200 OK\r\n") == 2
    assert spoken(origin, b"GET /s/0 HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET /s/0\r\n\r\n", b"400"),
        (b"GET /s/0 HTTP/2\r\n\r\n", b"400"),
        (b"POST /s/0 HTTP/1.1\r\nContent-Length: 30\r\n\r\nGET /s/1 HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /s/0 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"405"),
        (b"GET /s/0 HTTP/1.1\r\nX: " + b"a" * 70_000, b"431"),
    ],
)
def test_what_is_no_request_ends_the_connection(origin: Origin, said: bytes, status: bytes) -> None:
    heard = spoken(origin, said)
    assert heard.startswith(b"HTTP/1.1 " + status)
    assert heard.count(b"HTTP/1.1") == 1


# The log.


def test_every_answer_carries_the_number_of_its_request() -> None:
    # room for the last two only
    with Origin(still(), log=RequestLog(keep=2)).in_thread() as origin:
        numbers = [
            headers(curl("-i", f"{origin.address}{path}"))["x-origin-request"] for path in ("/s/0", "/x", "/s/2")
        ]
        assert numbers == ["1", "2", "3"]
        assert [(a.number, a.path, a.version, a.status) for a in origin.log.asked] == [
            (2, b"/x", -1, 404),
            (3, b"/s/2", 0, 200),
        ]
        with pytest.raises(InputError, match="log without its first 1 request"):
            origin.polls()


def test_the_file_of_the_log_holds_what_was_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    with Origin(still(), log=RequestLog(path=str(file))).in_thread() as origin:
        for path in ("/s/0", '/s/1?q="ü', "/list.csv"):
            curl(origin.address + path)
    assert logs.read(str(file)) == list(origin.log.asked)
    with file.open("a") as more:
        more.write('{"n": 4, "t"')
    assert len(logs.read(str(file))) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_says_so_at_the_end() -> None:
    with pytest.raises(InputError, match="log '/dev/full' cannot be written"):  # noqa: SIM117
        with Origin(still(), log=RequestLog(path="/dev/full")).in_thread() as origin:
            assert curl("-o", "/dev/null", "-w", "%{http_code}", f"{origin.address}/s/0") == "200"
    with pytest.raises(InputError, match="log '/' cannot be written"):
        RequestLog(path="/")


def test_found_counts_requests_that_met_another_version() -> None:
    log = RequestLog()
    for version in (4, 4, 5, 5, 7):
        log.note(0.0, b"GET", b"/s/0", version, 200)
    log.note(0.0, b"GET", b"/s/1", 9, 304)
    log.note(0.0, b"GET", b"/", -1, 200)
    assert (log.total, log.found, log.unchanged) == (7, 2, 1)


def test_polls_are_the_looks_that_were_answered() -> None:
    log = RequestLog()
    for t, method, path, status in (
        (1.0, b"GET", b"/s/0", 200),
        (2.0, b"HEAD", b"/s/0", 200),
        (3.0, b"GET", b"/s/1", 304),
        (4.0, b"GET", b"/s/0", 404),
        (5.0, b"GET", b"/s/0", 304),
        (6.0, b"GET", b"/feed/0", 200),
    ):
        log.note(t, method, path, 0, status)
    polls = log.polls({"/s/0": "a", "/s/1": "b", "/s/2": "c"})
    assert polls.names == ("a", "b", "c")
    assert [polls.changes(i).tolist() for i in range(3)] == [[1.0, 5.0], [3.0], []]


# With the fetcher.


def test_the_fetcher_keeps_copies_whose_true_freshness_is_measured() -> None:
    async def play() -> None:
        fetcher = HttpFetcher(Gate(["127.0.0.1/32"]))
        async with Origin(Site.of(4, 20.0, seed=5)) as origin:
            start, held = origin.now(), dict[int, Fetched]()
            for turn in range(60):
                i = turn % 3
                request = Request(f"{origin.address}/s/{i}", etag=held[i].etag if i in held else None)
                got = await fetcher.fetch(request)
                asked = origin.log.asked[-1]
                assert asked.number == turn + 1
                if got.answer is Answer.CHANGED:
                    assert asked.status == 200
                    assert f"version {asked.version}<".encode() in (got.body or b"")
                    held[i] = got
                else:
                    assert (got.answer, asked.status) == (Answer.UNCHANGED, 304)
                    assert got.etag == held[i].etag
                await asyncio.sleep(0.003)
            end = origin.now()
            truth, polls = origin.truth(), origin.polls()
            assert polls.counts().tolist() == [20, 20, 20, 0]
            # what was served is what the truth says
            for asked in origin.log.asked:
                assert asked.version == np.searchsorted(truth.changes(int(asked.path[3:])), asked.t, side="right")
            measured = origin.measured(start, end)
            assert measured.fleet_freshness == measured_freshness(truth, polls, start, end).fleet_freshness
            assert measured.freshness[3] == 0.0
            assert 0.1 < measured.freshness[:3].mean() < 0.98
            assert 0 < origin.log.found <= 57
        await fetcher.close()

    asyncio.run(play())


# Its life.


def test_a_port_that_is_taken_is_one_sentence(origin: Origin) -> None:
    port = int(origin.address.rpartition(":")[2])
    with pytest.raises(InputError, match=rf"127.0.0.1:{port} cannot be served at .* choose another port"):
        asyncio.run(Origin(still(), port=port).__aenter__())
    with pytest.raises(InputError, match="choose another port"), Origin(still(), port=port).in_thread():
        pass
    with pytest.raises(InputError, match="99999 cannot be served at"):
        asyncio.run(Origin(still(), port=99_999).__aenter__())


def test_it_listens_on_loopback_only_and_leaves_nothing_behind() -> None:
    with Origin(still()).in_thread() as origin:
        port = int(origin.address.rpartition(":")[2])
        assert origin.address == f"http://127.0.0.1:{port}"
        client = socket.create_connection(("127.0.0.1", port), timeout=SOON)
        client.sendall(b"GET /hostile/hang HTTP/1.1\r\n\r\n")
        deadline = time.monotonic() + SOON
        while not origin.tasks and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(origin.tasks) == 1
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", port), timeout=1).close()
    with client, contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    assert not origin.tasks
    assert not origin.connections


def test_time_does_not_jump(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    before = origin.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0.0 <= origin.now() - before < 5.0


def test_replicas_hear_of_each_other_newest_first(origin: Origin) -> None:
    def asked(path: str, who: str) -> str:
        return headers(curl("-i", origin.address + path, "-H", f"Replica-Address: {who}"))["replica-recent"]

    assert asked("/s/0", '"http://127.0.0.1:1"') == ""
    assert asked("/s/0", '"http://127.0.0.1:2"') == '"http://127.0.0.1:1"'
    assert asked("/s/0", '"http://127.0.0.1:3"') == '"http://127.0.0.1:2", "http://127.0.0.1:1"'
    assert asked("/s/1", '"http://127.0.0.1:3"') == "", "every source has its own list"
    assert asked("/s/1", '"http://127.0.0.1:2"; leaving') == ""
    assert asked("/s/0", '"http://127.0.0.1:1"') == '"http://127.0.0.1:3"'
    assert "replica-recent" not in headers(curl("-i", origin.address + "/s/0")), (
        "who does not say who it is hears nothing"
    )
