"""Whatever hangs, an engine that is told to end does so within its grace and two seconds."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

GRACE = 1.0
#: seconds by which a busy machine may be late
LATE = 3.0

#: what hangs
HANGS = {
    "nothing": "",
    "the plan": "from unstale.keeper.scheduler import Scheduler as C; C.plan = hang",
    "the store": "from unstale.adapters.sqlite_store import SqliteStore as C; C.claim = hang",
    "a poll": "from unstale.cli.compose import Fetchers as C; C.look = never",
    "a poll in a thread": "from unstale.cli.compose import Fetchers as C; C.look = threaded",
    "a sink": "from unstale.adapters.log_sink import LogSink as C; C.tell = never; C.close = never",
    "what polled": "from unstale.cli.compose import Fetchers as C; C.close = never",
    "what holds the interpreter's lock": "from unstale.cli.compose import Fetchers as C; C.close = locked",
}
#: what hangs when everything is recorded: that is no fault
HARMLESS = ("nothing", "what polled")
CODE = """
import asyncio, ctypes, sys, time
from dataclasses import replace
from unstale.cli import compose, listening
from unstale.cli.main import main

usual = compose.config_of
compose.config_of = lambda settings: replace(usual(settings), grace={grace})
listening.GRACE = {grace}

def hang(*args, **more):
    time.sleep(1000)

def locked(*args):
    ctypes.PyDLL(None).sleep(1000)

async def never(*args):
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

async def threaded(*args):
    await asyncio.to_thread(time.sleep, 1000)

{hang}
sys.argv = ["unstale", *{words}]
main()
"""
RUN = ["run", "--events", "--no-serve", "--config", "unstale.toml"]
SERVE = ["serve", "--listen", "127.0.0.1:0", "--config", "unstale.toml"]
_SHELF = "from unstale.adapters.sqlite_replica import SqliteReplica as C; C.close = "
#: what hangs when a server is to end
SERVING = {"nothing": "", "a disk": f"{_SHELF}hang", "a disk that holds the interpreter's lock": f"{_SHELF}locked"}


@pytest.mark.parametrize("what", HANGS)
def test_it_ends(tmp_path: Path, what: str) -> None:
    (tmp_path / "unstale.toml").write_text(
        'budget = "50/s"\n[[on_change]]\nlog = "changes.log"\n[files]\nroots = ["."]\n'
    )
    store = SqliteStore(tmp_path / "unstale.db")
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("one")
    store.add([Listing((tmp_path / f"{i}.txt").as_uri(), kind="file") for i in range(5)], time.time())
    store.close()
    check_end(tmp_path, CODE.format(grace=GRACE, hang=HANGS[what], words=RUN), b"started", clean=what in HARMLESS)


@pytest.mark.parametrize("what", SERVING)
def test_a_server_ends(tmp_path: Path, what: str) -> None:
    (tmp_path / "unstale.toml").touch()
    SqliteStore(tmp_path / "unstale.db").close()
    check_end(tmp_path, CODE.format(grace=GRACE, hang=SERVING[what], words=SERVE), b"serving", clean=what == "nothing")


def check_end(folder: Path, code: str, ready: bytes, *, clean: bool) -> None:
    """A process that says `ready` and is then told to end does so in time; without a fault if it is `clean`."""
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert ready in process.stdout.readline()
            time.sleep(2.0)
            process.terminate()
            begun = time.monotonic()
            process.wait(GRACE + 2.0 + LATE)
            took = time.monotonic() - begun
        finally:
            process.kill()
    assert took <= GRACE + 2.0 + LATE
    if clean:
        assert process.returncode == 0
