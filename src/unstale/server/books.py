"""What the API asks of a store and of those who can read sense into it. Everything may take a while: call it aside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from unstale.ports import ReadStore


class Books(ReadStore, Protocol):
    """A store as the server reads it, and what only the whole product can tell or do. Times are seconds."""

    def status(self) -> dict[str, Any]:
        """How the fleet stands, as `unstale status --json` tells it."""

    def explain(self, source: int) -> dict[str, Any]:
        """Why a source is polled as it is, as `unstale explain --json` tells it."""

    def preview(self, budget: float) -> dict[str, Any]:
        """What another budget, in cost per second, would do under the present beliefs."""

    def budget(self) -> tuple[float, bool]:
        """Cost per second, and whether it was set here rather than in the settings."""

    def engine(self) -> dict[str, Any]:
        """What the engine last wrote of itself, and whether it runs."""

    def add_rows(self, rows: Sequence[Mapping[str, Any]], replace: bool) -> list[int]:
        """Add sources as clients describe them; InputError says which one is wrong."""

    def edit(self, source: int, changes: Mapping[str, Any]) -> None:
        """Change what is said of a source."""

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources."""

    def hint(self, sources: Sequence[int]) -> None:
        """Make them due now."""

    def set_budget(self, budget: float | None) -> None:
        """Overrule the budget of the settings, or no longer."""


class Slowly:
    """Keeps what takes a while, so that asking for it costs a twentieth of the time at most, however many ask."""

    def __init__(self, least: float = 1.0) -> None:
        self._least = least
        self._kept: dict[str, tuple[float, Any]] = {}
        self._asking: dict[str, asyncio.Lock] = {}

    async def get(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` gives, or gave a moment ago."""
        async with self._asking.setdefault(name, asyncio.Lock()):
            until, found = self._kept.get(name, (0.0, None))
            begun = time.monotonic()
            if begun >= until:
                found = await asyncio.to_thread(work)
                took = time.monotonic() - begun
                self._kept[name] = begun + took + max(self._least, 20.0 * took), found
        return found
