"""What the keeper holds of one source."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from unstale.core.values import Value
from unstale.errors import InputError, sentence
from unstale.keeper.intervals import poisson_interval


@dataclass(frozen=True, slots=True)
class Source:
    """What is given about a source and outlives its polls. Times and rates are in one unit, whichever.

    The fields are trusted: whoever reads them from outside checks them.
    """

    id: int
    change_rate: float
    weight: float = 1.0
    cost: float = 1.0
    #: bounds that no price and no failure overrides
    shortest: float = 0.0
    longest: float = math.inf
    host: int = 0
    #: the value of polls, a column of one, where the objective is not freshness with Poisson changes
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """What the keeper holds of one source: what is given about it, and where it stands.

    What is known of its changes is asked through `interval_at` and nowhere else.
    """

    source: Source
    #: when a poll last got an answer
    last_poll: float = -math.inf
    #: the interval at the price of the last decision, before jitter and back-off; inf if abandoned
    interval: float = math.inf
    due: float = math.inf
    #: polls that failed since the last answer
    failures: int = 0
    #: what a poll had to be worth, price·cost + surcharge, when `interval` was found: the same worth, the same
    #: interval, until `source` is replaced and `reprice` asked
    worth: float = field(default=math.nan, compare=False)

    def interval_at(self, price: float, surcharge: float = 0.0) -> float:
        """The interval after which a poll is worth price·cost + surcharge, within the bounds; inf: abandoned.

        Solves weight·φ(t) = price·cost + surcharge. Even a free poll is only taken where it is worth
        something: weight 0 or a source that never changes waits for `longest`.

        >>> round(Record(Source(0, change_rate=2.0, weight=3.0)).interval_at(price=0.75), 12)
        0.839173495008
        """
        source = self.source
        if source.weight <= 0.0:
            return source.longest
        due = (price * source.cost + surcharge) / source.weight
        if source.value is None:
            interval = poisson_interval(source.change_rate, due) if source.change_rate > 0.0 else math.inf
        elif float(source.value.limit()[0]) <= 0.0:
            interval = math.inf
        else:
            interval = float(source.value.interval(np.array([due]))[0])
        if interval > source.longest:
            return source.longest
        if interval < source.shortest:
            return source.shortest
        if interval <= 0.0:
            raise InputError(
                sentence(
                    "price",
                    price,
                    f"makes source {source.id} due all the time",
                    "give a price above 0, or the source a shortest interval",
                )
            )
        return interval
