"""Having a source polled through the store alone: make it due, and watch for the next observation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from unstale.errors import StoreError
from unstale.ports import Head, Shelf
from unstale.server.heads import Heads

#: seconds between two looks for the observation
GLANCE = 0.02


class Pusher(Protocol):
    """The part of a store that moves due times."""

    def set_due(self, sources: Sequence[int], due: Sequence[float]) -> None:
        """Move due times."""


class StoreAsker:
    """Asks whatever engine polls from the same store; keeps the contract `Asker`.

    Requests that come while another one writes share the next write. A poll in flight when the request came counts:
    what it brings was the source's while the client waited.
    """

    def __init__(self, store: Pusher, shelf: Shelf, clock: Callable[[], float]) -> None:
        self._store, self._heads, self._clock = store, Heads(shelf), clock
        self._pending: set[int] = set()
        self._writing = asyncio.Lock()

    async def ask(self, source: int, deadline: float) -> Head | None:
        """How the source stands after the next poll that ends, None if none did by the deadline."""
        before = self._heads.of(source)
        if before is None:
            return None
        try:
            await self.hint(source)
        except StoreError:
            return None
        while self._clock() < deadline:
            await asyncio.sleep(GLANCE)
            head = self._heads.of(source)
            if head is None or head.latest != before.latest:
                return head
        return None

    async def hint(self, source: int) -> None:
        """Make it due now; durable on return."""
        self._pending.add(source)
        async with self._writing:
            if source in self._pending:
                sources, self._pending = sorted(self._pending), set()
                await asyncio.to_thread(self._store.set_due, sources, [self._clock()] * len(sources))
