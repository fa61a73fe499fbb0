"""Telling of changes while who is told may be changed in a browser: those of the settings file and of the store.

Rules of this file:
1. Nobody misses a change because another receiver was added, edited or removed: each goes on where it was. The store
   knows a new one from the moment it is saved (`FleetService.save_receivers`): it is told of all that changes then.
2. A receiver that cannot be made (a name that is not set, a key that does not fit) is told nothing and loses nothing:
   what is for it waits until it is mended, within the bounds of what waits for anybody.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from unstale.engine.deliveries import Deliveries
from unstale.engine.sink import Sink
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.ports import Clock, Store
from unstale.service.receivers import RECEIVERS, NewsReceiver, read_receivers

#: seconds between two looks at who is to be told
LOOK = 2.0


class LiveTelling:
    """Deliveries that are begun anew when the store names others to be told; `make` makes all of them."""

    def __init__(
        self, executor: StoreExecutor[Store], make: Callable[[Sequence[NewsReceiver]], Sequence[Sink]], clock: Clock
    ) -> None:
        self._executor, self._make, self._clock = executor, make, clock
        self._said, sinks = self._joined(executor.store)
        self._deliveries = Deliveries(executor, sinks, clock, subscribed=True)

    def nudge(self) -> None:
        """There may be something to tell."""
        self._deliveries.nudge()

    async def run(self, stop: asyncio.Event) -> None:
        """Tell until `stop` is set, then what is left."""
        while True:
            ended = asyncio.Event()
            telling = asyncio.create_task(self._deliveries.run(ended))
            try:
                others = await self._changed(stop, telling)
            finally:
                ended.set()
                await telling
            if not others:
                return
            if (joined := await self._executor.insist(self._joined, stop)) is None:
                return
            self._said, sinks = joined
            self._deliveries = Deliveries(self._executor, sinks, self._clock, subscribed=True)

    def _joined(self, store: Store) -> tuple[bytes, Sequence[Sink]]:
        """What the store says, and who is to be told by it; all of them are known, also one that is saved meanwhile."""
        while True:
            said = store.setting(RECEIVERS)
            sinks = self._make(read_receivers(said))
            if store.subscribe([sink.name for sink in sinks], setting=(RECEIVERS, said)):
                return said, sinks

    async def _changed(self, stop: asyncio.Event, telling: asyncio.Task[None]) -> bool:
        """True once the store says something else; False if there is to be an end."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while True:
                await asyncio.wait({stopped, telling}, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done() or telling.done():
                    return False
                with contextlib.suppress(StoreError):
                    if await self._executor.do(lambda store: store.setting(RECEIVERS)) != self._said:
                        return True
        finally:
            stopped.cancel()
