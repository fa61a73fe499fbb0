"""Readers who do not read what they asked for: the server's memory does not hold it for them."""

from __future__ import annotations

import random
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.asgi import Kept
from support.patience import BUSY

SIZE, READERS = 4 * 2**20, 30
PROGRAM = """
import asyncio, sys
from unstale.cli.serve import run
from unstale.cli.settings import Settings
asyncio.run(run(Settings(store=sys.argv[1]), "127.0.0.1", 0, ready=lambda *told: print(told[-1], flush=True)))
"""


def memory(pid: int) -> int:
    """Bytes of its own."""
    found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    assert found is not None
    return 1024 * int(found[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory")
def test_readers_who_do_not_read_take_little_memory(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "s.db")
    data = random.Random(1).randbytes(SIZE)
    kept.poll(data)
    kept.close()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s.db")]
    with ExitStack() as opened:
        server = opened.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        opened.callback(server.kill)
        assert server.stdout is not None
        port = int(server.stdout.readline())

        def asking() -> socket.socket:
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(20.0 * BUSY)
            one.connect(("127.0.0.1", port))
            one.sendall(b"GET /copies/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            return one

        def read(one: socket.socket) -> bytes:
            with one:
                return b"".join(iter(lambda: one.recv(65536), b""))

        assert read(asking()).endswith(data)
        before = memory(server.pid)
        waiting = [opened.enter_context(asking()) for _ in range(READERS)]
        # Each has the first byte, so that all are being sent to; a moment later what is sent ahead has been.
        assert [one.recv(1) for one in waiting] == [b"H"] * READERS
        time.sleep(1.0)
        assert memory(server.pid) - before < READERS * SIZE / 4
        # Who reads after all has everything.
        assert read(waiting[-1]).endswith(data)
