"""What the service tells: frozen records. Times are seconds since the epoch, lengths seconds, rates per second."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from unstale.frozen import dataclass
from unstale.ports import CrewMember, Edition, Listing, Observation, Price
from unstale.service.collections import CollectionView
from unstale.service.contract_views import ContractView
from unstale.service.copying import CopyingView
from unstale.service.service_settings import Granted


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget in force: cost per second, who said it and when (-inf: not known), in words.

    `by` is default, settings, option, command or api. `waiting` says what has been said and is not taken up yet.
    """

    rate: float
    by: str
    at: float
    words: str
    waiting: str = ""

    @property
    def set_here(self) -> bool:
        """Whether it was said to the store, and not in the settings."""
        return self.by not in ("default", "settings")


@dataclass(frozen=True, slots=True)
class SourceView:
    """One source at a moment: what is said of it, what is believed of its copy, and what it waits for.

    `interval` is the wait at today's price, NaN where no price decides; `waits_for` is paused, failing, first poll, or
    what bounds the wait: price, host, shortest, eager, longest, contract, abandoned. `reason` is that of the last
    failure.
    """

    listing: Listing
    fresh: float
    age: float
    change_rate: float
    #: between which its change rate lies with probability 0.9: asked for by who shows it, for it takes SciPy
    within: Callable[[], tuple[float, float]]
    interval: float
    waits_for: str
    surcharge: float
    checked_at: float
    changed_at: float
    due_at: float
    failures: int
    reason: str = ""

    @property
    def low(self) -> float:
        """The least change rate that is likely."""
        return self.within()[0]

    @property
    def high(self) -> float:
        """The largest change rate that is likely."""
        return self.within()[1]

    @property
    def change_interval(self) -> float:
        """The mean time between two changes."""
        return 1.0 / self.change_rate if self.change_rate > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class Counts:
    """How many sources there are, and of those that are not paused how many fail, never answered, were never polled."""

    total: int
    paused: int
    failing: int
    never_answered: int
    never_polled: int

    @property
    def polled(self) -> int:
        """Those that are not paused."""
        return self.total - self.paused


@dataclass(frozen=True, slots=True)
class FirstRound:
    """Sources that have been polled at least once, of those that are not paused, and seconds until all have."""

    done: int
    of: int
    left: float


@dataclass(frozen=True, slots=True)
class EngineState:
    """What keeps the store fresh: whether it runs (None: not known), and what it did since it started, as recorded.

    `at` is when it last wrote of itself, `last_poll` when a poll was last recorded, `last_answer` when a source last
    answered; None and -inf for never. `workers` is how many there are where several share a store, None elsewhere.
    """

    running: bool | None
    at: float | None
    started_at: float | None
    last_poll: float
    last_answer: float
    workers: int | None
    in_flight: int
    polls: int
    first: int
    changed: int
    failed: int
    spent: float
    peers: tuple[Mapping[str, Any], ...] = ()
    #: the workers themselves, the one of them that plans, and the seconds that its last plan took
    crew: tuple[CrewMember, ...] = ()
    planner: str = ""
    planned_in: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What was recorded since the store was made: polls by answer, requests that they took, bytes, budget spent."""

    unchanged: int
    changed: int
    failed: int
    first: int
    requests: int
    received: int
    spent: float

    @property
    def polls(self) -> int:
        """All of them."""
        return self.unchanged + self.changed + self.failed


@dataclass(frozen=True, slots=True)
class Status:
    """How a fleet stands at a moment. `fresh` and `even` are NaN where nothing can be told yet.

    `learned` is the share of the weight that was looked at twice: until half of it was, `fresh` is mostly a guess and
    `even` is not told at all. With both goes an error: 95 times of 100 the truth is within it. `surcharges` are the
    hosts where a poll is dearer because their cap binds.
    """

    at: float
    counts: Counts
    fresh: float
    even: float
    learned: float
    fresh_error: float
    even_error: float
    age: float
    budget: Budget
    spent_hour: float
    spent_day: float
    objective: str
    price: float | None
    price_at: float | None
    first_round: FirstRound | None
    engine: EngineState
    totals: Totals
    surcharges: Mapping[str, float]
    hosts: int
    worst: tuple[SourceView, ...] = ()
    #: what tells of many sources, and what it is worth
    collections: tuple[CollectionView, ...] = ()
    #: what was promised of sources and whether it is kept, and what keeping all of it takes, cost per second
    contracts: tuple[ContractView, ...] = ()
    contracts_need: float = 0.0
    #: tables that are being copied now
    copying: tuple[CopyingView, ...] = ()
    #: when freshness, age and counts of a large fleet were added up, None: now
    summed_at: float | None = None

    @property
    def guess(self) -> bool:
        """Whether too little was learned to compare."""
        return math.isnan(self.even)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a source is polled as it is: one sentence, and the numbers behind it."""

    at: float
    source: SourceView
    sentence: str
    bound: str
    #: the wait at today's price, whether or not the source waits for it now
    interval: float
    price: float
    price_at: float | None
    half_life: float
    budget: float
    #: the weight and the budget at which it would be polled twice as often, NaN where neither would do it
    twice_weight: float
    twice_budget: float
    polls: tuple[Observation, ...] = ()
    #: what is to be said of a source that changes at nearly every poll, empty for others
    noise: str = ""
    #: how a copied table is looked at, and why so, empty for others
    looked_at: str = ""
    #: how far its copy is that is under way, empty if none is
    copying: str = ""
    #: what a poll of it costs, where budgets count something else than polls, and how that is known
    costs: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a budget would do under the present beliefs; NaN where there is nothing to poll."""

    budget: float
    price: float
    fresh: float
    age: float
    sources: int
    abandoned: int
    #: quantiles of the intervals, by name
    intervals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class HostView:
    """A host: its sources, what it is granted, and how many times as dear a poll is there."""

    name: str
    sources: int
    paused: int
    failing: int
    granted: Granted
    surcharge: float


@dataclass(frozen=True, slots=True)
class History:
    """What polls of a source found, newest first, whether there are older ones, and the versions that are kept."""

    listing: Listing
    polls: tuple[Observation, ...]
    more: bool
    versions: tuple[Edition, ...]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One of the newest polls, and whose it was."""

    token: int
    source: int
    address: str
    at: float
    answer: str


@dataclass(frozen=True, slots=True)
class PricePoint:
    """A stretch of the history: its last price, its mean freshness, what was done in it; even is NaN if not known."""

    at: float
    price: float
    budget: float
    fresh: float
    even: float
    polls: int
    changed: int
    failed: int
    spent: float


@dataclass(frozen=True, slots=True)
class Course:
    """Some prices in the order of time."""

    points: tuple[PricePoint, ...] = ()
    prices: tuple[Price, ...] = field(default=(), repr=False)
