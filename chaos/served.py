"""A server that is asked slowly, by thousands at once, and by whoever makes up requests."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

#: one copy that takes long to send, in bytes; questions about health meanwhile, and seconds between them
LARGE, QUESTIONS, EACH = 4 * 2**20, 100, 0.1
#: cases that schemathesis makes of all operations and phases, for each that it is to make of one operation
OF_EACH = 110
_SERVE = """
import asyncio, sys
from unstale.cli.serve import run
from unstale.cli.settings import Settings
asyncio.run(run(Settings(store=sys.argv[1]), "127.0.0.1", 0, ready=lambda *told: print(told[-1], flush=True)))
"""


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[tuple[int, int]]:
    """Port and process of a server of one large copy."""
    store = SqliteStore(folder / "s.db")
    store.add([Listing("https://a.example/large")], time.time())
    claims = store.claim(time.time(), 1, lease=60.0, owner="t")
    data = np.random.default_rng(1).bytes(LARGE)
    store.record([Entry(one, Answer.CHANGED, time.time(), time.time() + 1e6, body=Body(data)) for one in claims])
    store.close()
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(folder / "s.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline()), server.pid
    finally:
        server.kill()
        server.wait()


def _asked(port: int, text: str, seconds: float = 30.0) -> tuple[bytes, float]:
    """The beginning of an answer, and the seconds that it took."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), seconds) as one:
        one.sendall(f"{text}\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        return one.recv(64), time.monotonic() - begun


def _memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def slow(first: int, count: int, folder: Path) -> Counter[str]:
    """So many connections at once: heads that never end, bodies that never come, answers that nobody reads."""
    least = 2 * count + 100
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(least, 1024), most), most))
    waits, refused, open_ = [], 0, []
    with tempfile.TemporaryDirectory(dir=folder) as place, _server(Path(place)) as (port, pid):
        _asked(port, "GET /copies/1 HTTP/1.1")
        calm = float(np.percentile([_asked(port, "GET /healthz HTTP/1.1")[1] for _ in range(QUESTIONS)], 99))
        before = _memory(pid)
        texts = (
            b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
            b"POST /api/v1/sources HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 600000000\r\n\r\n[",
            b"GET /copies/1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        )
        for k in range(count):
            with contextlib.suppress(OSError):
                one = socket.socket()
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.settimeout(5.0)
                one.connect(("127.0.0.1", port))
                one.sendall(texts[k % len(texts)])
                one.setblocking(False)
                open_.append(one)
        for _ in range(QUESTIONS):
            said, took = b"", 30.0
            with contextlib.suppress(OSError):
                said, took = _asked(port, "GET /healthz HTTP/1.1")
            refused += b" 200 " not in said
            waits.append(took)
            for one in open_[:: max(len(open_) // 100, 1)]:
                with contextlib.suppress(OSError):
                    one.send(b"x")
            time.sleep(EACH)
        after = _memory(pid)
        for one in open_:
            one.close()
    worst = float(np.percentile(waits, 99))
    return Counter(
        {
            "rounds": count,
            "open at once": len(open_),
            "milliseconds until health is told, of one in a hundred": round(1000.0 * worst),
            "milliseconds before, of one in a hundred": round(1000.0 * calm),
            "health over 1 s": int(worst > 1.0),
            "health not told": refused,
            "megabytes more": round(max(after - before, 0) / 1024),
            "over 64 MB more": int(after - before > 65_536),
        }
    )


def cases(first: int, count: int, folder: Path) -> Counter[str]:
    """Requests that schemathesis makes of the API's own document, by all its checks; about so many, by another seed."""
    contract = tested("integration/test_api_contract")
    with tempfile.TemporaryDirectory(dir=folder) as place, contract.served(Path(place) / "s.db") as origin:
        contract.CASES = max(count // OF_EACH, 1)
        done = contract.checked(origin, Path(place), seed=1 + first)
    # Who found something says so in the place of how many passed.
    told = re.search(r"([\d,]+) generated(?:, ([\d,]+) passed)?", done.stdout)
    made, passed = (int((one or "0").replace(",", "")) for one in told.groups()) if told else (0, 0)
    # On a busy machine an answer may take longer than its ten seconds: that is no breach, and is told.
    late = sum(int(number) for number in re.findall(r"Network Error: (\d+)", done.stdout))
    if done.returncode or passed < made:
        print(done.stdout[-6000:], done.stderr[-2000:], flush=True)
    breaches = made - passed or int(done.returncode != 0 and not late)
    return Counter({"rounds": made, "passed": passed, "breaches": breaches, "not answered in ten seconds": late})


def tested(name: str) -> Any:
    """A file of tests as a module."""
    where = Path(__file__).resolve().parents[1] / f"tests/{name}.py"
    spec = importlib.util.spec_from_file_location(where.stem, where)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
