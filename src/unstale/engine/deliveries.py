"""Telling those who asked of every change: at least once, the changes of a source in order, each at its own pace.

Rules of this file:
1. An event counts as told when it was taken and that is recorded. A kill in between tells it again, never not at all.
2. What was taken is recorded while the next is told, so that a kill tells little again: at most `WINDOW` events, and
   about as many as were under way unless one of them hung.
3. Nobody who is told waits for another, and no source for another but through the window.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import numpy as np

from unstale.engine.lanes import Lanes, Width
from unstale.engine.sink import Patient, Sink
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError, require
from unstale.frozen import dataclass
from unstale.logs import log
from unstale.ports import Clock, Event, Store

#: events that are looked at from the oldest one not taken yet; whoever refuses that one hears of no later one
WINDOW = 256
#: seconds in which what was taken is gathered before that is recorded: a commit each would keep polls from theirs
GATHER = 0.005
#: seconds until a sink that failed is tried again, at first and at most
AGAIN, AGAIN_AT_MOST = 1.0, 3600.0
#: seconds that a sink has to end once it was told to
LAST = 0.25


@dataclass(slots=True)
class SinkProgress:
    """How telling one sink goes: events it took, attempts that failed, how many of them since the last that did not."""

    told: int = 0
    failed: int = 0
    in_row: int = 0
    reason: str = ""


class Deliveries:
    """Tells every sink what the store's outbox holds for it. A new sink begins with what is recorded from here on.

    `nudge` says that something was recorded. `subscribed`: the store knows these sinks already. A sink that fails is
    tried again after waits that double, each shortened by up to a half at random, so that many do not come at once.
    """

    def __init__(
        self,
        executor: StoreExecutor[Store],
        sinks: Sequence[Sink],
        clock: Clock,
        rng: np.random.Generator | None = None,
        *,
        subscribed: bool = False,
    ) -> None:
        names = [sink.name for sink in sinks]
        for name in names:
            require(names.count(name) == 1, "sink", repr(name), "is there twice", "name it once")
        if not subscribed:
            executor.store.subscribe(names)
        self.told = {name: SinkProgress() for name in names}
        self._executor, self._sinks, self._clock = executor, tuple(sinks), clock
        self._rng = rng or np.random.default_rng()
        self._stopping = asyncio.Event()
        self._news = {name: asyncio.Event() for name in names}

    def nudge(self) -> None:
        """There may be something to tell."""
        for news in self._news.values():
            news.set()

    async def run(self, stop: asyncio.Event, *, grace: float = 5.0) -> None:
        """Tell until `stop` is set, then what is left, within the grace; then close the sinks. Who hangs is left."""
        tasks = [
            asyncio.create_task(self._side_by_side(sink) if sink.width > 1 else self._in_turn(sink))
            for sink in self._sinks
        ]
        try:
            waiter = asyncio.create_task(stop.wait())
            # A task ends before only by a fault of ours, which is not to be hidden.
            await asyncio.wait([waiter, *tasks], return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()
            self._stopping.set()
            self.nudge()
            if tasks:
                await asyncio.wait(tasks, timeout=grace)
        finally:
            for task in tasks:
                task.cancel()
            ended = (await asyncio.wait(tasks, timeout=LAST))[0] if tasks else set()
            for sink in self._sinks:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LAST):
                        await sink.close()
        for task in ended:
            if not task.cancelled() and (fault := task.exception()) is not None:
                raise fault

    async def _in_turn(self, sink: Sink) -> None:
        news, told = self._news[sink.name], self.told[sink.name]
        while True:
            news.clear()
            if isinstance(sink, Patient) and (wait := sink.until(self._clock.now()) - self._clock.now()) > 0.0:
                await self._wait(wait)
                if self._stopping.is_set():
                    return
                continue
            try:
                events = await self._executor.do(lambda store: store.events(sink.name, sink.batch))
                if events and not await self._tell(sink, events):
                    await self._pause(told)
            except StoreError as error:
                events = []
                self._failed(told, str(error))
                await self._pause(told)
            if self._stopping.is_set() and (not events or told.in_row):
                return
            if not events and not told.in_row:
                await news.wait()

    async def _side_by_side(self, sink: Sink) -> None:
        news, told = self._news[sink.name], self.told[sink.name]
        lanes, width = Lanes(), Width(sink.width)
        while True:
            news.clear()
            failed = told.failed
            try:
                if len(lanes) < WINDOW // 2:
                    lanes.take_in(await self._executor.do(lambda store: store.events(sink.name, WINDOW)))
                await self._round(sink, lanes, width)
            except StoreError as error:
                self._failed(told, str(error))
            if told.failed > failed:
                await self._pause(told)
                lanes.again()
            done = lanes.recorded == lanes.covered and not lanes
            if self._stopping.is_set() and (done or told.in_row):
                return
            if done and told.failed == failed:
                await news.wait()

    async def _round(self, sink: Sink, lanes: Lanes, width: Width) -> None:
        """Tell until nothing is left that may be told, or nothing has been taken when something fails."""
        told, loop = self.told[sink.name], asyncio.get_running_loop()
        under_way: dict[asyncio.Task[tuple[int, str]], tuple[Event, float]] = {}
        recording: asyncio.Task[None] | None = None
        taken_any, halted, before = False, False, told.in_row
        try:
            while True:
                while not halted and len(under_way) < width.now and (event := lanes.next()) is not None:
                    under_way[asyncio.create_task(sink.tell([event]))] = event, loop.time()
                if recording is None and lanes.covered > lanes.recorded:
                    recording = asyncio.create_task(self._record(sink.name, lanes))
                waiting = {*under_way, recording} if recording is not None else {*under_way}
                if not waiting:
                    return
                ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if recording in ended:
                    recording.result()
                    recording = None
                for task in under_way.keys() & ended:
                    (event, began), (taken, reason) = under_way[task], task.result()
                    del under_way[task]
                    if taken:
                        lanes.taken(event)
                        width.answered(loop.time() - began)
                        told.told += 1
                        told.in_row, told.reason, taken_any, before = 0, "", True, 0
                    else:
                        lanes.refused(event)
                        width.failed()
                        # Many at a time that fail for one reason are one failure.
                        self._failed(told, reason, before + 1)
                        halted = halted or not taken_any
        finally:
            for task, (event, _) in under_way.items():
                task.cancel()
                lanes.refused(event)
            if recording is not None:
                recording.cancel()

    async def _record(self, name: str, lanes: Lanes) -> None:
        """Record what was taken up to now, and take in what is to be told next."""
        await asyncio.sleep(GATHER)
        number, room = lanes.covered, len(lanes) < WINDOW // 2

        def record(store: Store) -> Sequence[Event]:
            store.told(name, number)
            return store.events(name, WINDOW) if room else ()

        lanes.take_in(await self._executor.do(record))
        lanes.recorded = number

    async def _tell(self, sink: Sink, events: Sequence[Event]) -> bool:
        """Hand events over and record how many were taken; whether all were."""
        told = self.told[sink.name]
        taken, reason = await sink.tell(events)
        if taken:
            number = events[taken - 1].number
            await self._executor.do(lambda store: store.told(sink.name, number))
            told.told += taken
            told.in_row, told.reason = 0, ""
        if taken < len(events):
            self._failed(told, reason)
        return taken == len(events)

    def _failed(self, told: SinkProgress, reason: str, in_row: int | None = None) -> None:
        told.failed += 1
        if in_row != told.in_row:
            told.in_row = told.in_row + 1 if in_row is None else in_row
            log("tell_failed", {"reason": reason, "in_row": told.in_row})
        told.reason = reason

    async def _pause(self, told: SinkProgress) -> None:
        """Wait, the longer the more attempts have failed in a row; stopping ends it."""
        longest = min(AGAIN * 2.0 ** min(told.in_row - 1, 60), AGAIN_AT_MOST)
        await self._wait(longest * float(self._rng.uniform(0.5, 1.0)))

    async def _wait(self, seconds: float) -> None:
        """Let so many seconds pass; stopping ends it."""
        sleeper = asyncio.ensure_future(self._clock.sleep(seconds))
        stopper = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({sleeper, stopper}, return_when=asyncio.FIRST_COMPLETED)
        for task in (sleeper, stopper):
            task.cancel()
