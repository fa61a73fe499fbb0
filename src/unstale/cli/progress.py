"""Long polls tell how far they are: written into the store while they go on, so that every face can say it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from unstale.engine.store_executor import StoreExecutor
from unstale.errors import UnstaleError
from unstale.ports import COPYING, Progress, Store


class ProgressKeeper:
    """Writes down what polls tell of themselves, and removes it when they end."""

    def __init__(self, executor: StoreExecutor[Store]) -> None:
        self._executor = executor
        self._told: dict[int, asyncio.Task[None]] = {}

    def heard(self, source: int) -> Callable[[Progress], None]:
        """Who hears of one poll; to be asked for where the loop runs, and called from any thread."""
        loop = asyncio.get_running_loop()

        def hear(told: Progress) -> None:
            # The end of everything may come first.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._begin, source, told.written())

        return hear

    async def ended(self, source: int) -> None:
        """The poll is over, whatever came of it."""
        if (last := self._told.pop(source, None)) is not None:
            await last
            await self._write(source, b"")

    def _begin(self, source: int, told: bytes) -> None:
        before = self._told.get(source)
        # A store that is busy hears the next one.
        if before is None or before.done():
            self._told[source] = asyncio.get_running_loop().create_task(self._write(source, told))

    async def _write(self, source: int, told: bytes) -> None:
        # A poll does not fail because nobody could be told of it.
        with suppress(UnstaleError, RuntimeError):
            await self._executor.do(lambda store: store.record([], settings={f"{COPYING}{source}": told}))
