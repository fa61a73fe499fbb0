"""Signs of life of a worker: with each it hears its share of the budget, the shards that it holds and what is planned.

Rules of this file:
1. They have a connection of their own: while much is read or written the others do not take us for gone.
2. What could not be told is told with the next one.
3. Shards are ours for a while from the moment before the sign of life was sent; after that nothing may be begun.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from unstale.core.checks import Floats
from unstale.engine.clock import jumps_of, rest
from unstale.engine.published_plan import PLAN
from unstale.engine.said_settings import SAID
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.frozen import dataclass
from unstale.logs import Tell
from unstale.ports import LEARNER, Clock, Grant, HeldShards, HostWord, SharedStore

#: seconds between signs of life, and between lessons passed on
LIFE, LESSON = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """What a worker tells: the share it goes by, its bucket, what it did, and what others have to know."""

    held: float
    level: float
    burst: float
    facts: Mapping[str, float]
    lesson: Floats | None = None
    tally: bytes = b""
    words: Sequence[HostWord] = ()


@dataclass(frozen=True, slots=True)
class LifeHeard:
    """What a sign of life brought: what may be spent, the held shards, what is planned, and how often edits came."""

    grant: Grant
    held: HeldShards
    plan: bytes
    state: bytes
    edited: int
    #: what operators have said of settings
    said: bytes = b""
    words: Sequence[HostWord] = field(default=())


class ShardHolding:
    """Gives signs of life. `sign` says what to tell, `heard` takes what came back, `untold` what could not be told."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        owner: str,
        clock: Clock,
        tell: Tell,
        *,
        sign: Callable[[bool], SignOfLife],
        heard: Callable[[LifeHeard], None],
        untold: Callable[[SignOfLife], None],
    ) -> None:
        self._executor, self._owner, self._clock, self._tell = executor, owner, clock, tell
        self._sign, self._heard, self._untold, self._jumps = sign, heard, untold, jumps_of(clock)
        #: the time until which the shards are ours, whatever happens; shards that are to be let go of
        self.sure_until = -math.inf
        self.let_go: Sequence[int] = ()
        self._epochs: Mapping[int, int] = {}
        self._lesson_at = -math.inf

    async def run(self, stop: asyncio.Event) -> None:
        """Give a sign of life every second until `stop` is set."""
        while not stop.is_set():
            try:
                await self.live()
            except StoreError as error:
                self._tell("store_failed", {"reason": str(error)})
                await self._executor.reopen()
            await rest(self._clock, stop, LIFE)

    async def leave(self) -> None:
        """The worker ends: share and shards are free."""
        try:
            await self._executor.do(lambda store: store.leave(self._owner))
        except StoreError as error:
            self._tell("store_failed", {"reason": str(error)})

    async def live(self) -> None:
        """One sign of life."""
        now, jumped, let_go = self._clock.now(), self._jumps(), self.let_go
        said = self._sign(now >= self._lesson_at)

        def live(store: SharedStore) -> LifeHeard:
            if said.words:
                store.keep_words(said.words)
            if said.tally:
                store.tally(said.tally)
            told = None if said.lesson is None else said.lesson.tobytes()
            grant = store.beat(self._owner, said.held, said.level, said.burst, said.facts, told)
            held = store.hold(self._owner, let_go)
            taken = any(self._epochs.get(shard) != epoch for shard, epoch in held.epochs.items())
            return LifeHeard(
                grant,
                held,
                store.setting(PLAN),
                store.setting(LEARNER),
                store.counters().get("edited", 0),
                store.setting(SAID),
                store.host_words() if taken else (),
            )

        try:
            found = await self._executor.do(live)
        except StoreError:
            self._untold(said)
            raise
        # The clock may have been set meanwhile.
        now += self._jumps() - jumped
        if said.lesson is not None:
            self._lesson_at = now + LESSON
        self.let_go, self._epochs = (), found.held.epochs
        self._heard(found)
        self.sure_until = now + found.held.lasting

    def shift(self, by: float) -> None:
        """The clock was set: how long the shards are ours is not known until the next sign of life."""
        self.sure_until = -math.inf
        self._lesson_at += by
