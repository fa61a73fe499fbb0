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
}
CODE = """
import asyncio, sys, time
from dataclasses import replace
from unstale.cli import compose
from unstale.cli.main import main

usual = compose.config_of
compose.config_of = lambda settings: replace(usual(settings), grace={grace})

def hang(*args, **more):
    time.sleep(1000)

async def never(*args):
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass

async def threaded(*args):
    await asyncio.to_thread(time.sleep, 1000)

{hang}
sys.argv = ["unstale", "run", "--events", "--no-serve", "--config", "unstale.toml"]
main()
"""


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
    code = CODE.format(grace=GRACE, hang=HANGS[what])
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert b"started" in process.stdout.readline()
            time.sleep(2.0)
            process.terminate()
            begun = time.monotonic()
            process.wait(GRACE + 2.0 + LATE)
            took = time.monotonic() - begun
        finally:
            process.kill()
    assert took <= GRACE + 2.0 + LATE
    if what == "nothing":
        assert process.returncode == 0
