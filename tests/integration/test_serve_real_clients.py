"""`unstale serve` as real clients see it: curl, nginx, Varnish, Squid, Python caches, a linter, and who means harm.

The proof that a cache honours our lifetimes needs no look inside it: a second version is recorded at once. Before
Expires the cache still gives the first one (so it does cache), afterwards the second one (so it does not over-age).
"""

from __future__ import annotations

import gzip
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import requests

from support.patience import BUSY, SOON
from support.real_caches import nginx, python_caches, squid, tool, varnish
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

TEXT = b"".join(b"line %d of a text that compresses well enough\n" % i for i in range(200))
COMMAND = "from unstale.cli.serve import serve; serve()"


class Served:
    """A store, a server process beside it, and polls that the test makes up."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.store = SqliteStore(folder / "s.db")
        self.options = ("--store", str(folder / "s.db"), "--listen", "127.0.0.1:0", *options)

    def source(self, name: str, data: bytes, *, checked: float, due: float) -> int:
        """A new source, polled once."""
        (number,) = self.store.add([Listing(name)], checked)
        self.record(number, data, checked=checked, due=due)
        return number

    def record(self, source: int, data: bytes | None, *, checked: float, due: float) -> None:
        self.store.set_due([source], [0.0])
        (claim,) = self.store.claim(time.time(), 1, lease=60.0, owner="test")
        answer, body = (Answer.UNCHANGED, None) if data is None else (Answer.CHANGED, Body(data, "text/plain"))
        assert claim.source == source
        assert self.store.record([Entry(claim, answer, checked, due, body=body)]) == [True]

    def __enter__(self) -> Served:
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *self.options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.rpartition("127.0.0.1:")[2].split("/")[0])
        self.origin = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(SOON) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.store.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served")) as served:
        yield served


def curl(*options: str) -> bytes:
    return subprocess.run([tool("curl"), "-sS", *options], check=True, capture_output=True, timeout=30).stdout


def body(session: requests.Session, address: str) -> bytes:
    return session.get(address, timeout=10).content


def test_caches_keep_a_copy_until_it_expires_and_no_longer(served: Served, tmp_path: Path) -> None:
    """All at once, for the waiting is the same. The copy was checked 3 s ago: who does not count that is found out."""
    with ExitStack() as opened:
        now = time.time()
        expires = float(int(now) + 9)
        source = served.source("lifetime", b"first", checked=now - 3, due=expires)
        path = f"/copies/{source}"
        clients: dict[str, Callable[[], bytes]] = {}
        for name, cache in python_caches(tmp_path).items():
            opened.callback(cache.close)
            clients[name] = lambda cache=cache: body(cache, served.origin + path)  # type: ignore[misc]
        plain = opened.enter_context(requests.Session())
        for name, proxy in (("nginx", nginx), ("varnishd", varnish), ("squid", squid)):
            try:
                tool(name)
            except pytest.skip.Exception:
                sys.stdout.write(f"{name} is not installed, left out\n")
                continue
            folder = tmp_path / name
            folder.mkdir()
            base = opened.enter_context(proxy(folder, served.origin))
            clients[name] = lambda base=base: body(plain, base + path)  # type: ignore[misc]
        # Starting them took its time: a fresh lifetime for all.
        now = time.time()
        expires = float(int(now) + 9)
        served.record(source, None, checked=now - 3, due=expires)
        assert {name: get() for name, get in clients.items()} == dict.fromkeys(clients, b"first")
        served.record(source, b"second", checked=time.time(), due=expires + 600)
        assert {name: get() for name, get in clients.items()} == dict.fromkeys(clients, b"first"), "it does not cache"
        assert time.time() < expires, "too slow a machine to tell"
        time.sleep(expires + 1.1 - time.time())
        if "varnishd" in clients:
            # It honours stale-while-revalidate: the first request after Expires makes it look again.
            clients["varnishd"]()
            time.sleep(0.5)
        assert {name: get() for name, get in clients.items()} == dict.fromkeys(clients, b"second"), "over-age"


def test_nginx_revalidates(served: Served, tmp_path: Path) -> None:
    tool("nginx")
    now = time.time()
    source = served.source("revalidated", TEXT, checked=now, due=now + 2)
    with nginx(tmp_path, served.origin) as base, requests.Session() as session:
        first = session.get(f"{base}/copies/{source}", timeout=10)
        assert first.headers["x-cache"] == "MISS"
        time.sleep(max(now + 3.1 - time.time(), 0.0))
        served.record(source, None, checked=time.time(), due=time.time() + 60)
        again = session.get(f"{base}/copies/{source}", timeout=10)
        assert again.headers["x-cache"] == "REVALIDATED"
        assert again.content == TEXT
        assert session.get(f"{base}/copies/{source}", timeout=10).headers["x-cache"] == "HIT", "the 304 renewed it"


def test_curl_tags(served: Served, tmp_path: Path) -> None:
    now = time.time()
    address = f"{served.origin}/copies/{served.source('tags', TEXT, checked=now, due=now + 60)}"
    tag, out = str(tmp_path / "tag"), ("-o", str(tmp_path / "out"), "-w", "%{http_code}")
    assert curl(*out, "--etag-save", tag, address) == b"200"
    assert (tmp_path / "out").read_bytes() == TEXT
    assert curl(*out, "--etag-compare", tag, address) == b"304"
    assert curl(*out, "-z", str(tmp_path / "out"), address) == b"304"
    assert curl(*out, "-z", "1 Jan 2020", address) == b"200"


def test_curl_codings_and_ranges(served: Served, tmp_path: Path) -> None:
    now = time.time()
    address = f"{served.origin}/copies/{served.source('ranges', TEXT, checked=now, due=now + 60)}"
    assert curl("--compressed", address) == TEXT
    assert gzip.decompress(curl("-H", "Accept-Encoding: gzip", address)) == TEXT
    assert curl("-r", "10-19", address) == TEXT[10:20]
    assert curl("-r", "-7", address) == TEXT[-7:]
    assert b"".join((TEXT[:5], TEXT[100:105])) != curl("-r", "0-4,100-104", address)
    part = tmp_path / "part"
    part.write_bytes(TEXT[:1000])
    curl("-C", "-", "-o", str(part), address)
    assert part.read_bytes() == TEXT, "continued where it stopped"
    assert b"content-length: %d" % len(TEXT) in curl("-I", address)


def test_the_linter_finds_nothing_bad_but_the_date_we_mean(served: Served) -> None:
    linter = pytest.importorskip("httplint")
    now = time.time()
    source = served.source("linted", TEXT, checked=now - 30, due=now + 60)
    bad = set()
    for path, headers in (
        (f"/copies/{source}", {}),
        (f"/copies/{source}", {"Accept-Encoding": "gzip"}),
        (f"/copies/{source}", {"Range": "bytes=3-9"}),
        (f"/copies/{source}?version=1", {}),
        (f"/copies/{source}?max_age=1", {}),
        ("/copies/999", {}),
        ("/healthz", {}),
        (f"/api/v1/sources/{source}", {}),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        connection.request("GET", path, headers=headers)
        got = connection.getresponse()
        data = got.read()
        connection.close()
        lint = linter.HttpResponseLinter(start_time=time.time())
        lint.process_response_topline(b"HTTP/1.1", str(got.status).encode(), got.reason.encode())
        lint.process_headers([(name.encode(), value.encode()) for name, value in got.getheaders()])
        lint.feed_content(data)
        lint.finish_content(True, [])
        bad |= {type(note).__name__ for note in lint.notes if note.level.name in ("BAD", "WARN")}
    assert bad <= {"DATE_INCORRECT"}, "Date is when we last checked, on purpose"


def test_a_request_is_answered_by_a_poll(tmp_path: Path) -> None:
    """With --ask a bound that no copy meets makes the source due; here the test is the engine."""
    with Served(tmp_path, "--ask") as served:
        now = time.time()
        source = served.source("asked", b"old", checked=now - 100, due=now + 1000)
        waiting = subprocess.Popen(
            [tool("curl"), "-sS", f"{served.origin}/copies/{source}?max_age=10s"], stdout=subprocess.PIPE
        )
        for _ in range(500):
            if claims := served.store.claim(time.time(), 1, lease=60.0, owner="engine"):
                break
            time.sleep(0.01)
        now = time.time()
        served.store.record([Entry(claims[0], Answer.CHANGED, now, now + 60, body=Body(b"new", "text/plain"))])
        assert waiting.communicate(timeout=SOON)[0] == b"new"


def test_slow_connections_and_a_huge_upload_do_not_bring_it_down(served: Served) -> None:
    now = time.time()
    path = f"/copies/{served.source('robust', TEXT, checked=now, due=now + 600)}"
    before = _memory(served.process.pid)
    slow = []
    try:
        for _ in range(1000):
            connection = socket.create_connection(("127.0.0.1", served.port), timeout=SOON)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
            slow.append(connection)
        assert _seconds(served.port, path) < BUSY
        sent = _upload(served.port, 600)
        assert sent < 100, "it was read to the end"
        assert _seconds(served.port, path) < BUSY
        assert _memory(served.process.pid) - before < 64 * 2**20
        # A header that is not there after ten seconds will not come.
        for connection in slow:
            connection.settimeout(SOON)
            with suppress(OSError):
                while connection.recv(1000):
                    pass
        assert _seconds(served.port, path) < BUSY
    finally:
        for connection in slow:
            connection.close()


def _upload(port: int, megabytes: int) -> int:
    """Megabytes that were taken of a body before the connection ended."""
    with socket.create_connection(("127.0.0.1", port), timeout=SOON) as connection:
        head = f"POST /api/v1/sources/1/hint HTTP/1.1\r\nHost: a\r\nContent-Length: {megabytes * 2**20}\r\n\r\n"
        connection.sendall(head.encode())
        for sent in range(megabytes):
            try:
                connection.sendall(bytes(2**20))
            except OSError:
                return sent
    return megabytes


def _seconds(port: int, path: str) -> float:
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON)
    connection.request("GET", path)
    assert connection.getresponse().read() == TEXT
    connection.close()
    return time.perf_counter() - begin


def _memory(process: int) -> int:
    statm = Path(f"/proc/{process}/statm")
    if not statm.exists():
        pytest.skip("needs /proc")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
