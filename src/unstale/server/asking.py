"""Having a source polled through the store alone: make it due, and watch for the next observation.

Rules of this file:
1. Asking never makes it worse: what is due already stays where it is in line, asking twice is asking once, and a poll
   that was asked for and failed does not put off the one that was planned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from unstale.errors import StoreError
from unstale.ports import Head, Shelf
from unstale.server.heads import Heads

#: seconds between two looks for the observation
GLANCE = 0.02
#: times that it is said again where others move due times in the very moment
AGAIN = 20


class Pusher(Protocol):
    """The part of a store that moves due times."""

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, with `was` only where they still are that."""


class StoreAsker:
    """Asks whatever engine polls from the same store; keeps the contract `Asker`.

    Requests that come while another one writes share the next write. A poll in flight when the request came counts:
    what it brings was the source's while the client waited.
    """

    def __init__(self, store: Pusher, shelf: Shelf, clock: Callable[[], float]) -> None:
        self._store, self._shelf, self._heads, self._clock = store, shelf, Heads(shelf), clock
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
                return head if head is None else await self._unharmed(before, head)
        return None

    async def _unharmed(self, before: Head, after: Head) -> Head:
        """How the source stands after a poll for us: if that failed, it is tried again when it would have been."""
        if after.failures > before.failures and self._clock() < before.due < after.due:
            with suppress(StoreError):
                await asyncio.to_thread(self._store.set_due, [after.source], [before.due], was=[after.due])
                return after._replace(due=before.due)
        return after

    async def hint(self, source: int) -> None:
        """Make it due now if it is not yet; durable on return."""
        self._pending.add(source)
        async with self._writing:
            if source in self._pending:
                sources, self._pending = sorted(self._pending), set()
                await self._hasten(sources, self._clock())

    async def _hasten(self, sources: Sequence[int], now: float) -> None:
        polls: dict[int, int] = {}
        for _ in range(AGAIN):
            # A plan may move one of them before it is written that it is due: then that is said again, unless a poll
            # has ended meanwhile.
            heads = [
                one for one in self._shelf.heads(sources) if one.latest == polls.setdefault(one.source, one.latest)
            ]
            later = {one.source: one.due for one in heads if one.due > now}
            if not later:
                return
            dues = list(later.values())
            await asyncio.to_thread(self._store.set_due, list(later), [now] * len(later), was=dues)
