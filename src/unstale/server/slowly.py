"""What takes a while, asked for by many: computed once, and kept for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar, cast

from unstale.frozen import dataclass

T = TypeVar("T")

#: seconds that a work may take for which everybody waits; and how much longer than that a pause is
QUICK, PAUSE = 0.1, 20.0


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """What was found, until when it is recent, and until when it is told while it is found anew."""

    found: object
    recent: float
    told: float


class Slowly:
    """Keeps what takes a while, so that asking for it costs a twentieth of the time at most, however many ask.

    Who asks when it is no longer recent is told what is known, and it is found anew meanwhile; who asks after nobody
    has for as long again waits, unless what is `known` will do: a page that asks again a moment later.
    """

    def __init__(self, least: float = 1.0) -> None:
        self._least = least
        self._kept: dict[str, FoundAnswer] = {}
        self._asking: dict[str, asyncio.Lock] = {}
        self._renewing: dict[str, asyncio.Task[object]] = {}

    async def get(self, name: str, work: Callable[[], T], *, known: bool = False) -> T:
        """What `work` gives, or gave a moment ago."""
        kept = self._kept.get(name)
        if kept is not None and (known or time.monotonic() < kept.told):
            under_way = self._renewing.get(name)
            if time.monotonic() >= kept.recent and (under_way is None or under_way.done()):
                self._renewing[name] = asyncio.create_task(self._found(name, work))
                self._renewing[name].add_done_callback(_heard)
            return cast("T", kept.found)
        return cast("T", await self._found(name, work))

    async def _found(self, name: str, work: Callable[[], object]) -> object:
        async with self._asking.setdefault(name, asyncio.Lock()):
            known, begun = self._kept.get(name), time.monotonic()
            if known is not None and begun < known.recent:
                return known.found
            found = await asyncio.to_thread(work)
            took = time.monotonic() - begun
            pause = max(self._least, PAUSE * took)
            recent = begun + took + pause
            self._kept[name] = FoundAnswer(found, recent, recent + (pause if took > QUICK else 0.0))
            return found

    def forget(self) -> None:
        """What was changed is to be seen at once."""
        self._kept.clear()


def _heard(task: asyncio.Task[object]) -> None:
    """What went wrong while nobody waited is told to who asks next, and waits."""
    if not task.cancelled():
        task.exception()
