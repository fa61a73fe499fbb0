"""What takes a while, asked for by many: computed once, and kept for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")


class Slowly:
    """Keeps what takes a while, so that asking for it costs a twentieth of the time at most, however many ask."""

    def __init__(self, least: float = 1.0) -> None:
        self._least = least
        self._kept: dict[str, tuple[float, object]] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def get(self, name: str, work: Callable[[], T]) -> T:
        """What `work` gives, or gave a moment ago."""
        async with self._asking.setdefault(name, asyncio.Lock()):
            until, found = self._kept.get(name, (0.0, None))
            begun = time.monotonic()
            if begun >= until:
                found = await asyncio.to_thread(work)
                took = time.monotonic() - begun
                self._kept[name] = begun + took + max(self._least, 20.0 * took), found
        return cast("T", found)

    def forget(self) -> None:
        """What was changed is to be seen at once."""
        self._kept.clear()
