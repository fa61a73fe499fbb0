"""Turns: what an engine and a worker have in common. They take turns until they are stopped, and end in order.

Rules of this file:
1. A turn that the store fails is taken again, later and later; outcomes are kept meanwhile.
2. On a stop what is in flight ends within the grace or is given back, and what has ended is recorded. What hangs is
   left behind: nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from unstale.engine.config import EngineConfig
from unstale.engine.polling import PollsUnderWay
from unstale.engine.recording import Recorder
from unstale.engine.store_executor import StoreExecutor, patience
from unstale.errors import StoreError, StoreLostError
from unstale.logs import Tell
from unstale.ports import Claim, Store

#: seconds that the last writing may take beyond the grace, each time
LAST = 0.5


class Turns:
    """Takes turns: `step` is one of them and says in how many seconds the next one is.

    `finish` is called when no poll is under way any more, with the claims that were not polled.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        config: EngineConfig,
        polls: PollsUnderWay,
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
        turning = asyncio.create_task(self._take(stop))
        try:
            await asyncio.wait({turning, recording, waker}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            await self._end(turning, recording)
            waker.cancel()
            self._tell("stopped", {"polls": self._recorder.counters.polls})
        for task in (turning, recording):
            # They end by themselves only by a fault of ours, which is not to be hidden.
            if task.done() and not task.cancelled():
                task.result()

    async def _take(self, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            try:
                if failures:
                    await self._executor.reopen()
                pause = await self._step()
                failures = 0
            except StoreLostError as error:
                # Nothing is claimed any more, nor polled: it could not be recorded.
                self._tell("store_lost", {"reason": str(error)})
                raise
            except StoreError as error:
                failures += 1
                self._tell("store_failed", {"reason": str(error)})
                pause = patience(failures)
            if pause > 0.0 and not stop.is_set():
                await self._polls.rest(pause)

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._polls.idle.set()

    async def _end(self, turning: asyncio.Task[None], recording: asyncio.Task[None]) -> None:
        """End all within the grace, and a moment more: who does not end by itself is left behind."""
        owner, grace, loop = self._config.owner, self._config.grace, asyncio.get_running_loop()
        deadline = loop.time() + grace
        await asyncio.wait({turning}, timeout=0.5 * grace)
        lost = turning.done() and isinstance(turning.exception(), StoreLostError)
        whole = turning.done() and not lost
        if lost:
            # What could not be recorded must not be waited for.
            recording.cancel()
            deadline = loop.time()
        waiting = [*self._waiting(), *await self._polls.finish(max(deadline - loop.time(), 0.0))]
        if not recording.done():
            await self._recorder.drain(max(deadline - loop.time(), LAST))
        for task in (turning, recording):
            task.cancel()
        await asyncio.wait({turning, recording}, timeout=LAST)
        try:
            async with asyncio.timeout(LAST):
                if waiting:
                    await self._executor.do(lambda store: store.give_back(owner, waiting))
                if whole:
                    await self._finish()
        except TimeoutError:
            self._tell("store_failed", {"reason": f"the store did not answer within {LAST:g} s at the end"})
        except StoreError as error:
            self._tell("store_failed", {"reason": str(error)})
