"""`unstale run` serves too: from a process beside it, which never outlives it; and as a proxy whose stock it renews."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from support.loopback import Loopback, answer
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application
from unstale.cli.proxy import KIND, within
from unstale.cli.settings import Http, Settings
from unstale.ports import Listing

COMMAND = "from unstale.cli.main import main; main()"


def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


class Running:
    """An engine in a process of its own; what it says."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.out = folder / "out.txt"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNSTALE_")}
        with self.out.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "run", "--store", str(folder / "s.db"), *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
            )

    def said(self, words: str) -> str:
        """The line with these words, once it is there."""
        lines = lambda: [line for line in self.out.read_text().splitlines() if words in line]  # noqa: E731
        return str(until(lines)[0])

    def end(self, by: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(by)
        return self.process.wait(60)


def alive(origin: str) -> bool:
    try:
        return requests.get(f"{origin}/healthz", timeout=5).status_code == 200
    except requests.ConnectionError:
        return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_copies_are_served_beside_the_engine_and_no_longer_than_it_lives(tmp_path: Path, how: signal.Signals) -> None:
    SqliteStore(tmp_path / "s.db").close()
    running = Running(tmp_path, "--listen", "127.0.0.1:0")
    try:
        origin = "http://" + running.said("serving").partition("http://")[2].partition("/")[0]
        assert alive(origin)
        assert requests.get(f"{origin}/api/v1/status", timeout=30).json()["engine"]["running"] is True
    finally:
        code = running.end(how)
    assert code == (0 if how is signal.SIGINT else -9)
    until(lambda: not alive(origin), 20.0)


def test_a_place_that_is_taken_is_one_line_and_no_end(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "s.db").close()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        running = Running(tmp_path, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
        try:
            line = running.said("going on without serving")
        finally:
            assert running.end() == 0
    assert "cannot be used (address already in use): choose another place" in line
    assert "Traceback" not in running.out.read_text()


def test_what_clients_ask_for_joins_the_fleet_and_is_renewed_before_they_ask_again(tmp_path: Path) -> None:
    """The origin says nothing of lifetimes, and changes; the proxy's answer does too, without asking for it."""
    settings = Settings(store=str(tmp_path / "s.db"), budget=20.0, http=Http(allow_networks=("127.0.0.0/8",)))

    async def play() -> tuple[list[bytes], list[bytes], list[Listing], int]:
        stop, said = asyncio.Event(), []
        async with Loopback(
            {"/x": answer(b"old", etag='"1"'), "/private": answer(b"me", cache_control="private")}
        ) as far:
            application = Application(settings)
            engine = asyncio.create_task(application.run(stop))
            proxy = asyncio.create_task(
                within(application, [far.origin], "127.0.0.1:0", stop, said.append, telling=0.2)
            )
            while not said:
                await asyncio.sleep(0.02)
            port = int(said[0].rpartition(":")[2].strip("/"))
            first = [await get(port, "/x"), await get(port, "/private")]
            store = SqliteStore(settings.store)
            ids: list[int] = []
            while not ids or store.copy(ids[0]) is None:
                await asyncio.sleep(0.05)
                ids = store.search(kind=KIND)
            far.speeches["/x"] = answer(b"new", etag='"2"')
            copy = store.copy(ids[0])
            while copy is None or copy.body.data != b"new":
                await asyncio.sleep(0.05)
                copy = store.copy(ids[0])
            second, counted = [], 0
            # A poll of the engine may fall between: then we look once more.
            for _ in range(20):
                before = len(far.asked)
                second = [await get(port, "/x")]
                counted = len(far.asked) - before
                if not counted:
                    break
            listed = store.listings(ids)
            store.close()
            stop.set()
            await asyncio.gather(engine, proxy)
            return first, second, listed, counted

    first, second, listed, counted = asyncio.run(asyncio.wait_for(play(), 90.0))
    assert [text.partition(b"\r\n\r\n")[2] for text in first] == [b"old", b"me"]
    assert second[0].partition(b"\r\n\r\n")[2] == b"new"
    assert b"; hit" in second[0]
    assert counted == 0, "the origin was not asked for this answer"
    assert [(one.kind, one.address.rpartition("/")[2]) for one in listed] == [(KIND, "x")]
    assert listed[0].weight > 0.0


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % path.encode())
    text = await reader.read()
    writer.close()
    return text
