"""Services of a database that begin before it does: they wait for it, say so in one line, and end when asked to."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from support.patience import SOON
from support.postgres import Postgres, postgres
from support.worker_crew import until
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_schema import worded
from unstale.cli.reaching import reached
from unstale.errors import StoreError, StoreUnreachableError

COMMAND = [sys.executable, "-c", "from unstale.cli.main import main; main()"]
WORKER, SERVER = ["worker", "--budget", "5/s"], ["serve", "--listen", "127.0.0.1:0"]
AWAY = "postgresql://me:s3cret@127.0.0.1:1/x"


@contextmanager
def service(command: list[str], address: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A command as a process, and the file of what it says."""
    said = folder / "said"
    # What it says goes out at once, as to a terminal or a journal.
    told = {**os.environ, "UNSTALE_STORE": address, "PYTHONUNBUFFERED": "1"}
    with (
        said.open("w") as file,
        subprocess.Popen([*COMMAND, *command], stdout=file, stderr=file, text=True, cwd=folder, env=told) as process,
    ):
        try:
            yield process, said
        finally:
            process.kill()


@pytest.mark.parametrize(("command", "begun"), [(WORKER, ""), (SERVER, "serving postgresql://")])
def test_a_service_waits_for_a_server_that_starts_later(command: list[str], begun: str, tmp_path: Path) -> None:
    with postgres() as server, closing(PostgresCrew(server.address())) as store:
        server.stop()
        with service(command, server.address(), tmp_path) as (process, said):
            until(lambda: "trying again" in said.read_text(), SOON)
            server.start()
            until(lambda: begun in said.read_text(), SOON)
            if command is WORKER:
                until(lambda: _workers(server) == 1, SOON)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0
        lines = said.read_text().splitlines()
        assert sum("cannot be reached" in line or "is starting" in line for line in lines) == 1, lines
        assert store.counters().get("polls", 0) == 0


def test_no_thread_is_left_behind_that_the_end_would_wait_for() -> None:
    async def scene() -> None:
        before = set(threading.enumerate())
        assert await reached(lambda: 7, asyncio.Event(), print) == 7
        # Whoever is asked to end meanwhile would be ended by force for such a thread.
        assert all(thread.daemon for thread in set(threading.enumerate()) - before)

    asyncio.run(scene())


def _workers(server: Postgres) -> int:
    with server.connect() as db:
        row = db.execute("SELECT count(*) FROM unstale.workers").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("command", [WORKER, SERVER])
def test_who_waits_ends_when_asked_to(command: list[str], tmp_path: Path) -> None:
    with service(command, AWAY, tmp_path) as (process, said):
        until(lambda: "trying again" in said.read_text(), SOON)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        # Half a minute may be between two tries.
        assert time.monotonic() - begun < SOON
        text = said.read_text()
    assert text.count("postgresql://127.0.0.1:1/x cannot be reached") == 1
    assert "s3cret" not in text
    assert "Traceback" not in text


def test_waiting_grows_and_other_trouble_is_not_waited_for() -> None:
    waits: list[float] = []
    said: list[str] = []
    tries = iter([StoreUnreachableError("away")] * 3)

    def begin() -> int:
        waits.append(time.monotonic())
        if (trouble := next(tries, None)) is not None:
            raise trouble
        return 7

    def refused() -> int:
        raise StoreError("wrong password")

    async def play() -> int | None:
        stop = asyncio.Event()
        found = await reached(begin, stop, said.append)
        with pytest.raises(StoreError, match="wrong password"):
            await reached(refused, stop, said.append)
        stop.set()
        assert await reached(begin, stop, said.append) is None
        return found

    assert asyncio.run(play()) == 7
    assert len(said) == 1
    assert len(waits) == 4
    assert all(later - one >= least for one, later, least in zip(waits, waits[1:], (0.5, 1.0, 2.0), strict=False))


def test_a_server_that_hangs_holds_up_no_end() -> None:
    async def play() -> None:
        stop, answer = asyncio.Event(), threading.Event()
        asyncio.get_running_loop().call_later(0.1, stop.set)
        assert await reached(answer.wait, stop, [].append) is None
        answer.set()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("connection failed: connection to server at 'h' failed: Connection refused", StoreUnreachableError),
        (
            "connection is bad: connection to server on socket '/x' failed: No such file",
            StoreUnreachableError,
        ),
        ("server closed the connection unexpectedly", StoreUnreachableError),
        ("failed to resolve host 'h': [Errno -2] Name or service not known", StoreUnreachableError),
        ("connection failed: FATAL:  the database system is starting up", StoreUnreachableError),
        ("connection failed: FATAL:  sorry, too many clients already", StoreUnreachableError),
        ('connection failed: FATAL:  password authentication failed for user "me"', StoreError),
        ('connection failed: FATAL:  database "x" does not exist', StoreError),
        ('connection failed: FATAL:  no pg_hba.conf entry for host "h"', StoreError),
        ("connection failed: server does not support SSL, but SSL was required", StoreError),
    ],
)
def test_what_can_be_waited_for(words: str, kind: type[StoreError]) -> None:
    with pytest.raises(StoreError) as raised, worded("postgresql://h/x"):
        raise psycopg.OperationalError(words)
    assert type(raised.value) is kind
