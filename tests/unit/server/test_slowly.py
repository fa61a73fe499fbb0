"""What takes a while is found once for all who ask, and nobody waits for it to be found anew."""

from __future__ import annotations

import asyncio
import threading

import pytest

from support.patience import SOON
from unstale.errors import StoreError
from unstale.server import slowly
from unstale.server.slowly import Slowly


class Work:
    """Counts how often it was done; takes so long by a clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, takes: float) -> None:
        self.now, self.takes, self.done = 100.0, takes, 0
        self.go = threading.Event()
        self.go.set()
        monkeypatch.setattr(slowly.time, "monotonic", lambda: self.now)

    def __call__(self) -> int:
        assert self.go.wait(SOON)
        self.now += self.takes
        self.done += 1
        return self.done


def test_it_is_recent_for_twenty_times_as_long_as_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        work, kept = Work(monkeypatch, 2.0), Slowly()
        assert await asyncio.gather(*(kept.get("a", work) for _ in range(5))) == [1] * 5
        work.now += 39.9
        assert await kept.get("a", work) == 1
        assert await kept.get("b", work) == 2
        kept.forget()
        assert await kept.get("a", work) == 3

    asyncio.run(body())


def test_who_asks_later_is_told_what_is_known_while_it_is_found_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        work, kept = Work(monkeypatch, 2.0), Slowly()
        await kept.get("a", work)
        work.now += 41.0
        work.go.clear()
        # The work hangs, and both are answered; it is begun once.
        assert [await kept.get("a", work), await kept.get("a", work)] == [1, 1]
        work.go.set()
        await asyncio.gather(*kept._renewing.values())
        assert (await kept.get("a", work), work.done) == (2, 2)
        # After as long a time again what is known is too old to be told.
        work.now += 81.0
        # But who says that what is known will do has it, however old, and sets it going.
        assert await kept.get("a", work, known=True) == 2
        assert await kept.get("a", work) == 3

    asyncio.run(body())


def test_what_is_quick_is_never_old(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        work, kept = Work(monkeypatch, 0.01), Slowly()
        assert await kept.get("a", work) == 1
        work.now += 1.1
        assert await kept.get("a", work) == 2

    asyncio.run(body())


def test_a_work_that_fails_unseen_fails_for_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        work, kept = Work(monkeypatch, 2.0), Slowly()
        await kept.get("a", work)

        def broken() -> int:
            raise StoreError("the disk is gone")

        work.now += 41.0
        assert await kept.get("a", broken) == 1
        await asyncio.gather(*kept._renewing.values(), return_exceptions=True)
        work.now += 41.0
        with pytest.raises(StoreError):
            await kept.get("a", broken)

    asyncio.run(body())
