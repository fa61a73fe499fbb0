"""What strangers wrote is parsed where it can be ended: limits of time and memory, and an engine that goes on."""

from __future__ import annotations

import asyncio
import gzip
import time
from pathlib import Path

import pytest

from support.jobs import grow, sleep, spin, told
from unstale.adapters.body_room import LARGE, SMALL, SharedBytes, held
from unstale.adapters.normalise import Normaliser
from unstale.adapters.sandbox import PIECE, Sandbox, SandboxError
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application
from unstale.cli.settings import load
from unstale.fingerprint import fingerprint
from unstale.keeper.outcomes import Answer
from unstale.listings.packed import MOST_BYTES
from unstale.listings.readers import read_plain
from unstale.ports import Listing

#: parsing it takes hours: time grows faster than the square of the number of attributes
ATTRIBUTES = b"<div " + b" ".join(b"a%d" % i for i in range(1_000_000)) + b">"
CLOCK = Normaliser(selectors=["div.clock"])


def test_what_parses_is_the_same_as_in_our_own_process() -> None:
    async def main() -> None:
        sandbox = Sandbox()
        page = b"<p>news</p><div class=clock>12:00</div>" * 500
        assert await sandbox.run(fingerprint, page, "text/html", CLOCK) == fingerprint(page, "text/html", CLOCK)
        await sandbox.close()

    asyncio.run(main())


@pytest.mark.parametrize("size", [SMALL // 2, 2 * SMALL, PIECE - 99, PIECE + 99, 2 * LARGE])
def test_bodies_of_every_size_that_a_poll_brings_can_be_parsed(size: int) -> None:
    """Small ones, those that are held in memory with room of their own, and those that are sent beside a job."""

    async def main() -> None:
        sandbox, room = Sandbox(), SharedBytes(10 * LARGE)
        page = b"<p>news</p><div class=clock>12:00</div>".ljust(size)
        room.take(size)
        body = held(page, room)
        assert await sandbox.run(fingerprint, body, "text/html", CLOCK) == fingerprint(page, "text/html", CLOCK)
        await sandbox.close()

    asyncio.run(main())


def test_what_is_wrong_with_a_listing_is_said_in_our_words() -> None:
    async def main() -> None:
        sandbox = Sandbox()
        with pytest.raises(SandboxError, match=r"sitemap as given cannot be read: its XML is broken"):
            await sandbox.run(read_plain, "sitemap", b"<html><p>", "https://example.org/", 2e9)
        bomb = gzip.compress(b" " * (MOST_BYTES + 1))
        with pytest.raises(SandboxError, match=r"listing packed by gzip unpacks to more than 52428800 bytes: split it"):
            await sandbox.run(read_plain, "sitemap", bomb, "https://example.org/", 2e9)
        await sandbox.close()

    asyncio.run(main())


def test_limits_of_time_and_memory_end_a_job_and_not_those_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")

    async def main() -> None:
        sandbox = Sandbox(quick=0.3, slow=1.0, processes=2)
        begun = time.monotonic()
        hostile = [asyncio.create_task(sandbox.run(fingerprint, ATTRIBUTES, "text/html", CLOCK)) for _ in range(3)]
        hostile.append(asyncio.create_task(sandbox.run(sleep, 1000.0)))
        # Who is quick is served meanwhile; who needs somewhat more than a moment gets it.
        assert [await sandbox.run(spin, 0.01) for _ in range(20)] == [0.01] * 20
        assert await sandbox.run(spin, 0.5) == 0.5
        for task in hostile:
            with pytest.raises(SandboxError, match="takes more than 1 s to parse"):
                await task
        assert time.monotonic() - begun < 90.0
        with pytest.raises(SandboxError, match="memory"):
            await sandbox.run(grow, 2000)
        with pytest.raises(SandboxError, match="ZeroDivisionError"):
            await sandbox.run(divmod, 1, 0)
        assert await sandbox.run(told, "A_SECRET") is None
        await sandbox.close()

    asyncio.run(main())


def test_an_engine_goes_on_among_pages_that_cannot_be_parsed_and_ends_when_told(tmp_path: Path) -> None:
    (tmp_path / "unstale.toml").write_text(
        f'store = "{tmp_path}/unstale.db"\nbudget = "20/s"\n[files]\nroots = ["{tmp_path}"]\n'
    )
    options = {"normalise": {"selectors": ["div.clock"]}}
    listings = []
    for i in range(20):
        path = tmp_path / f"{i}.html"
        path.write_bytes(ATTRIBUTES if i < 6 else b"<p>%d</p><div class=clock>1</div>" % i + b" " * 8000)
        listings.append(Listing(path.as_uri(), kind="file", options=options, longest=1.0 if i >= 6 else 1e9))
    store = SqliteStore(tmp_path / "unstale.db")
    ids = store.add(listings, time.time())

    async def main() -> float:
        application, stop = Application(load(str(tmp_path / "unstale.toml"))), asyncio.Event()
        running = asyncio.create_task(application.run(stop))
        await asyncio.sleep(25.0)
        stop.set()
        begun = time.monotonic()
        await running
        return time.monotonic() - begun

    took = asyncio.run(main())
    assert took < 12.0
    healthy = [len(store.observations(source)) for source in ids[6:]]
    assert min(healthy) >= 5
    failed = [store.observations(source) for source in ids[:6]]
    assert any("to parse" in one.reason for seen in failed for one in seen)
    assert all(one.answer is Answer.FAILED for seen in failed for one in seen)
    store.close()
