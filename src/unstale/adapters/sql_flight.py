"""One poll of a database under way in a thread: how long it may take, how far it is, and how it is ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from unstale.adapters.sql_source import Source
from unstale.adapters.sql_targets import Target
from unstale.errors import InputError
from unstale.ports import Progress

#: seconds from one word of progress to the next
EVERY = 2.0


class SqlFlight:
    """One poll under way in a thread, and how to end it from outside."""

    def __init__(
        self,
        deadline: float,
        hear: Callable[[Progress], None] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._deadline, self._stopped = deadline, False
        self._hear, self._now, self._began = hear, now, now()
        self._told, self._spoken = time.monotonic(), False
        self._parts: list[Source | Target] = []
        self._lock = threading.Lock()

    def add(self, part: Source | Target) -> None:
        with self._lock:
            self._parts.append(part)

    def left(self) -> float:
        return 0.0 if self._stopped else self._deadline - time.monotonic()

    def patient(self) -> bool:
        """Whether there is time to wait for a lock; waits a moment if so."""
        if self.left() > 0.0:
            time.sleep(0.01)
        return self.left() > 0.0

    def check(self) -> None:
        if self.left() <= 0.0:
            raise InputError("the poll was ended")

    def tell(self, rows: int, of: int, kept: int, received: int) -> None:
        """How far it is, for who wants to hear it: every EVERY seconds, and at the end of what was told before."""
        late = self._spoken if rows >= of else time.monotonic() - self._told >= EVERY
        if self._hear is not None and late and of:
            self._told, self._spoken = time.monotonic(), True
            self._hear(Progress(self._now(), self._began, min(rows, of), of, kept, received))

    def stop(self) -> None:
        """End it; from another thread."""
        self._stopped = True
        with self._lock:
            for part in self._parts:
                part.interrupt()

    def land(self) -> None:
        with self._lock:
            parts, self._parts = self._parts, []
        for part in parts:
            part.close()
