"""What stores say when they are asked: of the fleet in columns, of copies, hosts, workers and lessons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.frozen import quickly_made
from unstale.keeper.outcomes import Answer
from unstale.ports.records import Price
from unstale.ports.world import RateLimit


@dataclass(frozen=True, slots=True)
class FleetColumns:
    """All sources in columns, as they stand; row i of every column is source id `source[i]`, ids rising.

    `beliefs` has one row of floats per source, zeros where none was recorded; `host` indexes `hosts`.
    """

    source: NDArray[np.int64]
    weight: Floats
    cost: Floats
    shortest: Floats
    longest: Floats
    host: NDArray[np.int64]
    hosts: tuple[str, ...]
    paused: NDArray[np.bool_]
    due: Floats
    last: Floats
    found: Floats
    failures: NDArray[np.int64]
    beliefs: Floats
    settings: Mapping[str, bytes]
    price: Price | None
    #: the costs as sources are listed: where they say none, which is 1, `cost` is what polls were found to cost
    listed: Floats


@dataclass(frozen=True, slots=True)
class Holding:
    """What is held of a source: when it last answered, and the digests of its kept versions, newest first."""

    source: int
    last: float
    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """An entry of a feed, kept by itself: also long after the feed has dropped it. Newer ones have higher numbers.

    It was in the feed from `first_at` until `last_at` at least, in the versions from `first_version` to
    `last_version`; `edits` counts the versions in which it said something else than before, the last at `edited_at`.
    """

    number: int
    title: str
    link: str
    time: str
    first_at: float
    last_at: float
    first_version: int
    last_version: int
    edits: int = 0
    edited_at: float | None = None


@dataclass(frozen=True, slots=True)
class Announced:
    """A copy as it is told to other replicas: `as_of` is when it was last known equal to its source."""

    source: int
    address: str
    as_of: float
    version: int
    digest: bytes


@quickly_made
@dataclass(frozen=True, slots=True)
class Head:
    """How a source stands: the token of its newest observation, its newest version (0: none), when it last answered
    (-inf: never), when it is due, and how many polls failed since."""

    source: int
    latest: int
    version: int
    checked: float
    due: float
    failures: int


@dataclass(frozen=True, slots=True)
class Edition:
    """What is known of one kept version besides its bytes.

    `before` is when the version before it was taken, 0 if that is not kept; `via` the replicas it came through,
    nearest to the source first.
    """

    version: int
    taken_at: float
    media_type: str
    last_modified: str | None
    digest: bytes
    size: int
    before: float
    via: str = ""


@dataclass(frozen=True, slots=True)
class Recent:
    """One of the newest polls: its token, its source, when it was and what it answered."""

    token: int
    source: int
    polled_at: float
    answer: Answer


@dataclass(frozen=True, slots=True)
class HostCount:
    """A host with its sources: how many there are, how many are paused, how many of the others fail."""

    name: str
    sources: int
    paused: int
    failing: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A belief as it was after observation `latest`: from there, replaying goes on."""

    latest: int
    last: float
    found: float
    belief: bytes | None


@dataclass(frozen=True, slots=True)
class Epoch:
    """One shared state of the learner, under which observations that name its number were learned."""

    number: int
    state: bytes


@dataclass(frozen=True, slots=True)
class CrewMember:
    """A worker that is alive: its share of the budget, how full its bucket is, and what it says of itself."""

    owner: str
    share: float
    level: float
    burst: float
    facts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a worker's polls taught of the fleet as a whole."""

    number: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Census:
    """How many sources there are, what a poll of each that is not paused costs in all, and what the dearest costs."""

    sources: int
    cost: float
    dearest: float


@dataclass(frozen=True, slots=True)
class HostNews:
    """What a poll's answer says about how its host wants to be treated; `refused` if we asked too much.

    `rate_limit` is what is left of the host's quota, if it told, after the `calls` that the poll took.
    """

    source: int
    at: float
    refused: bool
    retry_after: float | None
    spacing: float
    rate_limit: RateLimit | None = None
    calls: int = 1
