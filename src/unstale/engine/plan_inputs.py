"""What a plan of a whole fleet goes by: all that workers and those who edit have told the store, as of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unstale.core.learning.state import WIDTH
from unstale.engine.collecting import go_on
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.contracts import Contract, bounded, promised
from unstale.engine.host_limits import HostLimits
from unstale.engine.published_plan import PLAN, PublishedPlan
from unstale.engine.pushing import still_hinted
from unstale.frozen import dataclass
from unstale.keeper.due_times import DueTimes
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CollectionMember
from unstale.ports import FleetColumns, Lesson, SharedStore, Trust


@dataclass(frozen=True, slots=True, eq=False)
class PlanInputs:
    """A fleet as it stands, who of it is being polled, and what workers have learned."""

    claimed: Sequence[int]
    standing: FleetColumns
    lessons: Sequence[Lesson]
    pushes: Sequence[CollectionMember]
    members: Sequence[CollectionMember]
    trust: Sequence[Trust]

    @classmethod
    def read(cls, store: SharedStore, contracts: Mapping[str, Contract]) -> PlanInputs:
        """In this order: what ends in between is planned anew a moment later, and nothing is counted twice."""
        claimed = store.claimed()
        standing = bounded(store.fleet(WIDTH), promised(store, contracts))
        return cls(claimed, standing, store.lessons(), store.pushes(), store.members_together(), store.trust())

    def scheduler(self, config: EngineConfig, now: float, host_limits: HostLimits, before: DueTimes) -> Scheduler:
        """A scheduler that knows all that, and when all were due by the plan `before`."""
        scheduler, late = scheduler_of(self.standing, config, now, host_limits)
        scheduler.asked_since(before)
        if not len(before.ids):
            scheduler.asked[still_hinted(scheduler, self.pushes)] = True
        scheduler.asked[late] = False
        settings = self.standing.settings
        go_on(scheduler, self.members, self.pushes, settings, self.trust, now)
        if scheduler.collected is not None:
            # Where signals are used the price moves by steps, from the last one.
            scheduler.price = PublishedPlan.read(settings.get(PLAN, b"")).price or scheduler.price
        # What is being polled is paid for: it does not fall due again.
        busy = np.flatnonzero(np.isin(scheduler.ids, self.claimed))
        scheduler.hold(busy)
        scheduler.due_at[busy] = np.inf
        return scheduler
