"""What collections tell a worker of the sources that it holds, and what that was worth, kept for all.

Rules of this file:
1. Signals decide only where whoever plans has reckoned with them. A collection is heard of those of its members that
   are in its own shard; all others are polled as if there were none of it.
2. What was learned is kept every few seconds, and before shards are let go of: who holds them next goes on with it.
3. What is kept of a channel is what one worker, the last, has learned of it; what was learned of all together adds up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from unstale.engine.collecting import go_on
from unstale.engine.listening import Listened, Listener
from unstale.engine.pricing import PULSE
from unstale.engine.store_executor import StoreExecutor
from unstale.frozen import dataclass
from unstale.keeper.listing_pace import ListingPace
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CHANNELS, CollectionMember, ListingPoll
from unstale.ports import Claim, Clock, SharedStore, Trust

#: seconds after which what was learned is kept, and times as long as that took
KEEP, PART = 10.0, 20.0


@dataclass(frozen=True, slots=True)
class HeldMembers:
    """What a store knows of the collections of held shards."""

    members: Sequence[CollectionMember] = ()
    trust: Sequence[Trust] = ()

    @classmethod
    def read(cls, store: SharedStore, owner: str, pace: ListingPace | None) -> HeldMembers:
        """Nothing where nobody plans by signals."""
        if pace is None:
            return cls()
        members = store.members_together(owner)
        numbers = sorted({member.collection for member in members})
        return cls(members, store.trust([*CHANNELS.values(), 0, *numbers]))


class HeldSignals:
    """Collections of the shards that a worker holds, as its scheduler knows them."""

    def __init__(self, executor: StoreExecutor[SharedStore], owner: str, clock: Clock) -> None:
        self._executor, self._owner, self._clock = executor, owner, clock
        #: what was learned of all together, as it was told last
        self._fleet: Sequence[float] = ()
        #: what was kept last of each, and whether with its counts
        self._kept: dict[int, tuple[str, bool]] = {}
        self._keep_at = self._count_at = -math.inf

    def collect(
        self,
        scheduler: Scheduler,
        found: HeldMembers,
        pushes: Sequence[CollectionMember],
        settings: Mapping[str, bytes],
        pace: ListingPace | None,
        now: float,
    ) -> None:
        """Tell a scheduler of the collections that were read with its sources."""
        self._kept, self._fleet = {}, ()
        if pace is None:
            return
        go_on(scheduler, found.members, pushes, settings, found.trust, now)
        if scheduler.collected is not None:
            self._fleet = scheduler.collected.fleet.tolist()
            scheduler.collected.follow(scheduler.price, scheduler.failures > 0, pace)

    async def keep(self, scheduler: Scheduler, now: float, *, whole: bool = False) -> None:
        """Keep what was learned since, if it is time; `whole`: now, with what was counted of members."""
        collected = scheduler.collected
        if collected is None or not (whole or now >= self._keep_at):
            return
        begun, counting = self._clock.now(), whole or now >= self._count_at
        learned = list[Trust]()
        for place, number in enumerate(collected.numbers):
            if number < 0 and not collected.tells_of(place):
                continue
            state, (before, counted) = json.dumps(collected.learned_of(place)), self._kept.get(number, ("", False))
            if state != before or (counting and not counted):
                learned.append(Trust(number, state, collected.counts(place) if counting else b""))
        fleet = collected.fleet.tolist()
        known = self._fleet or [0.0] * len(fleet)
        if learned or fleet != known:
            owner = self._owner
            self._fleet = await self._executor.do(lambda store: store.keep_trust(owner, learned, known, fleet))
            collected.fleet[:] = np.array(self._fleet)
            self._kept |= {one.collection: (one.state, counting) for one in learned}
        self._keep_at = now + max(KEEP, PART * (self._clock.now() - begun))
        self._count_at = now + PULSE if counting else self._count_at


class HeldListener(Listener):
    """Hears collections for a worker, which alone polls the members that it holds: nobody else need be told."""

    #: members that have come and gone, which whoever plans has to know
    moved = 0

    async def kept(self, claim: Claim, now: float, shown: ListingPoll | None) -> Listened:
        """Write down what a listing says."""
        listened = await super().kept(claim, now, shown)
        self.moved += listened.moved
        return listened

    async def _hasten(self, sources: list[int], due: list[float], was: list[float]) -> None:
        await self._executor.do(lambda store: store.set_due(sources, due, was=was))
