"""Answers as heavy as they may be, and what `unstale run` and its processes hold in memory while it takes them."""

from __future__ import annotations

import json
import os
import random
import socketserver
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import brotli
import zstandard

#: bytes that a body may have by default, and what these have
LIMIT, HEAVY = 16 * 2**20, 16 * 2**20 - 65_536


@cache
def _json() -> bytes:
    """Records as people publish them."""
    one = {"id": 1, "name": "a name of some length", "at": 1.5, "tags": ["one", "two"], "place": {"x": 1.0, "y": 2.0}}
    record = json.dumps(one).encode()
    count = HEAVY // (len(record) + 1) - 1
    return b'{"now": 1, "items": [' + b",".join([record] * count) + b"]}"


@cache
def _noise() -> bytes:
    return random.Random(1).randbytes(HEAVY)


@cache
def _page() -> bytes:
    return b"<html><div class=clock>1</div>" + b"<p>some words of a page</p>" * 25_000 + b" " * (HEAVY - 700_000)


def _feed() -> bytes:
    item = b"<item><title>news</title><guid>%d</guid><pubDate>Mon, 06 Sep 2021 00:01:00 +0000</pubDate></item>"
    return b"<rss><channel>" + b"".join(item % i for i in range(HEAVY // 110)) + b"</channel></rss>"


@cache
def _gzip_bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush()


#: what is answered under each name: media type, coding, and the body, that of the n-th time
KINDS: dict[str, tuple[str, str, Callable[[int], bytes]]] = {
    "json": ("application/json", "", lambda n: _json().replace(b'"now": 1', b'"now": %d' % n)),
    "noise": ("application/octet-stream", "", lambda n: _noise() + b"%d" % n),
    "page": ("text/html", "", lambda n: _page() + b"%d" % n),
    "feed": ("application/rss+xml", "", lambda n: cache(_feed)()),
    "gzip": ("text/plain", "gzip", cache(lambda n: zlib.compress(_page(), 1, wbits=31))),
    "brotli": ("text/plain", "br", cache(lambda n: brotli.compress(_noise(), quality=1, lgwin=24))),
    "zstd": ("text/plain", "zstd", cache(lambda n: zstandard.compress(_noise()))),
    "bomb": ("text/plain", "gzip", lambda n: _gzip_bomb()),
    "brotli-bomb": ("text/plain", "br", cache(lambda n: brotli.compress(bytes(64 * 2**20), quality=5, lgwin=24))),
    "zstd-bomb": ("text/plain", "zstd", cache(lambda n: zstandard.compress(bytes(64 * 2**20)))),
    "small": ("text/plain", "", lambda n: b"small %d" % n),
}
_OPTIONS = {"json": ["--drop-json", "/now"], "page": ["--drop", "div.clock"], "feed": ["--kind", "feed"]}


class _Handler(socketserver.StreamRequestHandler):
    """Answers `/KIND/anything` once, and closes."""

    def handle(self) -> None:
        path = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        server: HeavyServer = self.server  # type: ignore[assignment]
        media_type, coding, body_of = KINDS[path.split("/")[1]]
        with server.lock:
            server.asked += 1
            body = body_of(server.asked % 4)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        head += f"Content-Encoding: {coding}\r\n" if coding else ""
        try:
            self.wfile.write(head.encode() + b"\r\n")
            self.wfile.write(body)
        except OSError:
            pass


class HeavyServer(socketserver.ThreadingTCPServer):
    """All of them, on loopback."""

    daemon_threads, allow_reuse_address, request_queue_size = True, True, 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock, self.asked = threading.Lock(), 0
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def heavy_server() -> Iterator[HeavyServer]:
    """Serving in threads of this process."""
    with HeavyServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes of a process and all that it started, each counted whole: `own` is what no file can give back."""

    own: float = 0.0
    resident: float = 0.0

    def most(self, other: Memory) -> Memory:
        """The larger of each."""
        return Memory(max(self.own, other.own), max(self.resident, other.resident))


def memory(pid: int) -> Memory:
    """What a process and its children hold now."""
    found, queue, seen = {"RssAnon": 0.0, "RssShmem": 0.0, "VmRSS": 0.0}, [pid], b""
    while queue:
        one = queue.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            tasks = Path(f"/proc/{one}/task").iterdir()
            queue += [int(child) for task in tasks for child in (task / "children").read_text().split()]
            command = Path(f"/proc/{one}/cmdline").read_bytes()
        except OSError:
            continue
        if one != pid and command == seen:
            # It is about to become another program, and until then all of it is its parent's.
            continue
        seen = seen or command
        for line in status.splitlines():
            name, _, value = line.partition(":")
            if name in found:
                found[name] += float(value.split()[0]) / 1024.0
    return Memory(found["RssAnon"] + found["RssShmem"], found["VmRSS"])


def peak(folder: Path, kinds: list[str], each: int, seconds: float, polls: int = 0) -> tuple[Memory, Path]:
    """The most megabytes that `unstale run` held for so long, or until so many polls; and the store it leaves."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    unstale = [sys.executable, "-m", "unstale"]
    with heavy_server() as server:
        (folder / "unstale.toml").write_text(
            'budget = "100/s"\nfirst_round = "100/s"\nkeep = 1\n[http]\nrobots = false\n'
            'allow_networks = ["127.0.0.0/8"]\nspacing = "0s"\nconcurrency = 512\n'
        )
        for kind in kinds:
            addresses = [f"{server.origin}/{kind}/{n}" for n in range(each)]
            subprocess.run(
                [*unstale, "add", *addresses, "--max-interval", "1s", *_OPTIONS.get(kind, [])],
                cwd=folder,
                env=env,
                check=True,
                capture_output=True,
            )
        with (folder / "said").open("wb") as said:
            run = subprocess.Popen(
                [*unstale, "run", "--no-serve", "--events"], cwd=folder, env=env, stdout=said, stderr=said
            )
        most, begun = Memory(), time.monotonic()
        try:
            while time.monotonic() - begun < seconds and not (polls and server.asked >= polls):
                most = most.most(memory(run.pid))
                time.sleep(0.01)
                assert run.poll() is None, (folder / "said").read_text()[-2000:]
        finally:
            run.terminate()
            run.wait()
    return most, folder / "unstale.db"
