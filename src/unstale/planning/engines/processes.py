"""The processes of one machine as an engine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from unstale.errors import UnstaleError, sentence
from unstale.planning.engines import Found, Thing

#: how often a map goes on with new processes when some were killed
LIVES = 4


class Processes:
    """A pool of processes; one that is killed takes its pool along, and what is missing is done by the next."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1
        self._pool = self._started()

    def map(self, work: Callable[..., Found], things: Sequence[Thing], *same: Any) -> list[Found]:
        """work(thing, *same) of each thing, in order."""
        found: dict[int, Found] = {}
        for _ in range(LIVES):
            waiting: dict[int, Future[Found]] = {}
            try:
                for i, thing in enumerate(things):
                    if i not in found:
                        waiting[i] = self._pool.submit(work, thing, *same)
                return [found[i] if i in found else waiting[i].result() for i in range(len(things))]
            except BrokenProcessPool:
                found |= {i: f.result() for i, f in waiting.items() if f.done() and f.exception() is None}
                self._pool.shutdown()
                self._pool = self._started()
            finally:
                for future in waiting.values():
                    future.cancel()
        raise UnstaleError(
            sentence(
                "engine",
                f"processes:{self.workers}",
                f"lost a process {LIVES} times",
                "look whether memory runs out, and take fewer",
            )
        )

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        # spawned, not forked: a copy of a process with threads can hang
        return ProcessPoolExecutor(self.workers, mp_context=multiprocessing.get_context("spawn"))
