"""What workers hear of the fleet as a whole: what the planner has published."""

from __future__ import annotations

import json

from unstale.frozen import dataclass
from unstale.keeper.costs import POLLS
from unstale.keeper.listing_pace import ListingPace
from unstale.keeper.spending import BURST_SECONDS

#: the setting in which a planner tells workers about the fleet as a whole
PLAN = "plan"


@dataclass(frozen=True, slots=True, eq=False)
class PublishedPlan:
    """What a planner tells of the fleet as a whole: its mean interval, its price, and what its dearest poll costs.

    `burst` is what the settings let be spent at once after a pause, in seconds of the budget, 0 where they say nothing.

    >>> PublishedPlan(1.0, 1.0, 1.0, burst=3.0).burst_of(4.0), PublishedPlan(1.0, 1.0, 1.0).burst_of(0.1)
    (12.0, 2.0)
    """

    #: zero until a planner has told
    scale: float = 0.0
    price: float = 0.0
    dearest: float = 1.0
    burst: float = 0.0
    #: what is polled for, where it is told
    objective: str = ""
    #: whether the fleet is planned in parts, whose sketches go by what is told of polls
    in_parts: bool = False
    #: what the budget counts
    cost_in: str = POLLS
    #: what all may spend per second
    rate: float = 1.0
    #: how often listings are polled whatever they are worth; None where polls are not planned by signals
    listings: ListingPace | None = None

    def burst_of(self, share: float, aside: float = 0.0) -> float:
        """What a worker with a share of the budget may spend at once: together they have one burst, each has a poll.

        And what each puts `aside` for polls that listings will bring, where the settings say nothing.
        """
        if self.burst:
            return max(self.burst * share, self.dearest)
        return max(BURST_SECONDS * share, 2.0 * self.dearest) + aside

    @classmethod
    def read(cls, published: bytes) -> PublishedPlan:
        """What was published under `PLAN`; nothing is told by nothing."""
        said = json.loads(published or b"{}")
        return cls(
            said.get("scale", 0.0),
            said.get("price", 0.0),
            said.get("dearest", 1.0),
            said.get("burst", 0.0) / said.get("rate", 1.0),
            said.get("objective", ""),
            said.get("in_parts", False),
            said.get("cost_in", POLLS),
            said.get("rate", 1.0),
            ListingPace(*pace) if (pace := said.get("listings")) else None,
        )
