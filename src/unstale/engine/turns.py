"""Turns: what an engine and a worker have in common. They take turns until they are stopped, and end in order.

Rules of this file:
1. A turn that the store fails is taken again, later and later; outcomes are kept meanwhile.
2. On a stop what is in flight ends within the grace or is given back, and what has ended is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from unstale.engine.config import EngineConfig
from unstale.engine.polling import Polls
from unstale.engine.recording import Recorder
from unstale.engine.store_executor import StoreExecutor, patience
from unstale.errors import StoreError
from unstale.logs import Tell
from unstale.ports import Claim, Store


class Turns:
    """Takes turns: `step` is one of them and says in how many seconds the next one is.

    `finish` is called when no poll is under way any more, with the claims that were not polled.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        config: EngineConfig,
        polls: Polls,
        recorder: Recorder,
        tell: Tell,
        *,
        step: Callable[[], Awaitable[float]],
        waiting: Callable[[], Sequence[Claim]] = tuple,
        finish: Callable[[], Awaitable[None]],
    ) -> None:
        self._executor, self._config, self._polls, self._recorder, self._tell = executor, config, polls, recorder, tell
        self._step, self._waiting, self._finish = step, waiting, finish

    async def run(self, stop: asyncio.Event) -> None:
        """Take turns until `stop` is set; then finish what is in flight, or give it back."""
        owner = self._config.owner
        await self._executor.insist(lambda store: store.give_back(owner), stop)
        recording = asyncio.create_task(self._recorder.run())
        waker = asyncio.create_task(self._wake_on(stop))
        self._tell("started", {"budget": self._config.budget, "owner": owner})
        failures = 0
        try:
            while not (stop.is_set() or recording.done()):
                try:
                    pause = await self._step()
                    failures = 0
                except StoreError as error:
                    failures += 1
                    self._tell("store_failed", {"reason": str(error)})
                    await self._executor.reopen()
                    pause = patience(failures)
                if pause > 0.0 and not stop.is_set():
                    await self._polls.rest(pause)
        finally:
            await self._end(recording)
            waker.cancel()
            self._tell("stopped", {"polls": self._recorder.counters.polls})
        if not recording.cancelled():
            # It ends by itself only by a fault of ours, which is not to be hidden.
            recording.result()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._polls.idle.set()

    async def _end(self, recording: asyncio.Task[None]) -> None:
        owner, grace = self._config.owner, self._config.grace
        left = [*self._waiting(), *await self._polls.finish(grace)]
        if not recording.done():
            await self._recorder.drain(grace)
        recording.cancel()
        await asyncio.gather(recording, return_exceptions=True)
        try:
            if left:
                await self._executor.do(lambda store: store.give_back(owner, left))
            await self._finish()
        except StoreError as error:
            self._tell("store_failed", {"reason": str(error)})
