"""Whom a worker claims first when more is due than it may poll: by worth, as an engine that holds its fleet does.

Rules of this file:
1. While all that is due can be claimed, nothing is weighed: order would change nothing.
2. The store names who is latest in its own wait, the brain weighs these. Whoever was sent away from a busy host to come
   back goes first: it has a turn there.
3. Looking takes one part in twenty of the time at most; in between the line that was found is gone through.
"""

from __future__ import annotations

import math

from unstale.engine.shared_learning import SharedLearning
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import Clock, SharedStore

#: sources that are weighed in one look
WEIGHED = 1_000
#: seconds between two looks, and times as long as one took
LOOK, SHARE = 0.5, 20.0
#: sources that are offered for each that may be claimed: others may have been quicker
OFFERED = 2


class Foremost:
    """The line of those who are due, whoever is worth most times its price first."""

    def __init__(self, executor: StoreExecutor[SharedStore], learning: SharedLearning, clock: Clock) -> None:
        self._executor, self._learning, self._clock = executor, learning, clock
        self._line: list[int] = []
        self._look_at = -math.inf

    async def among(self, room: int) -> list[int] | None:
        """Of whom to claim so many now; None if all that is due may be claimed."""
        now = self._clock.now()
        # Also when the clock was set back.
        if not self._look_at - 600.0 <= now < self._look_at:
            self._line = await self._weighed(now, room)
            self._look_at = now + max(LOOK, SHARE * (self._clock.now() - now))
        return self._line[: OFFERED * room] or None

    def claimed(self, offered: list[int] | None, claimed: list[int]) -> None:
        """These were claimed of those who were offered; where nobody was, others have them or their hosts are busy."""
        if offered:
            gone = set(claimed or offered)
            self._line = [source for source in self._line if source not in gone]

    async def _weighed(self, now: float, room: int) -> list[int]:
        usual = self._learning.plan.scale
        late = await self._executor.do(lambda store: store.overdue(now, usual, WEIGHED))
        if len(late) <= room:
            return []
        sent, others = [one for one, back in late if back], [one for one, back in late if not back]
        if len(others) > 1:
            scheduler = await self._learning.look_at(others)
            others = scheduler.ids[foremost(scheduler, now, len(others) - 1)].tolist()
        return sent + others


def foremost(scheduler: Scheduler, now: float, most: int) -> Integers:
    """The rows of a scheduler just read that are due, at most so many: who is worth most times its price first."""
    rows = (scheduler.due_at <= now).nonzero()[0]
    # How long each waits is not in a store: it follows from belief and price.
    scheduler.learner.waits_of(rows, scheduler.price)
    return scheduler.foremost(rows, now, most)
