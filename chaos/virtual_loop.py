"""An event loop in virtual time: whatever waits for time, by whichever call, waits for none.

The clock of `sim.virtual` passes while everybody sleeps by it, and flies while somebody waits by the loop's own time,
as an engine does that ends or asks its store again. Here the loop's own time is the virtual one, and there is no other:
so a world that is run twice does the same twice. Who waits for what will never come is found out.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import TypeVar

from unstale.sim.virtual import START

T = TypeVar("T")


class LoopClock:
    """The time of the running loop, as seconds since the epoch."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return START + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Let so many virtual seconds pass."""
        await asyncio.sleep(seconds)


class _Passing(selectors.DefaultSelector):
    """Instead of waiting it lets time pass."""

    time = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits for what nobody will do")
        self.time += timeout
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passing = _Passing()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.time


def virtually(body: Callable[[LoopClock], Awaitable[T]]) -> T:
    """What `body` comes to, in a time that begins at `START`."""

    async def main() -> T:
        return await body(LoopClock())

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main())
