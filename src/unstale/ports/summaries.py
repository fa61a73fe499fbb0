"""What stores say when they are asked: of the fleet in columns, of copies, hosts, workers and lessons."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports.records import Price

#: edits that a store keeps; the oldest go
MOST_EDITS = 10_000


@dataclass(frozen=True, slots=True)
class FleetColumns:
    """All sources in columns, as they stand; row i of every column is source id `source[i]`, ids rising.

    `beliefs` has one row of floats per source, zeros where none was recorded; `host` indexes `hosts`. Hosts and
    failures may be whole numbers of any size, so that a large fleet takes little room.
    """

    source: NDArray[np.int64]
    weight: Floats
    cost: Floats
    shortest: Floats
    longest: Floats
    host: NDArray[np.integer]
    hosts: tuple[str, ...]
    paused: NDArray[np.bool_]
    due: Floats
    last: Floats
    found: Floats
    failures: NDArray[np.integer]
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
class Edit:
    """One edit: when it was made, by whom, and what it was, in words that show no secret. Later ones count higher."""

    number: int
    at: float
    who: str
    what: str


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


class Head(NamedTuple):
    """How a source stands: the token of its newest observation, its newest version (0: none), when it last answered
    (-inf: never), when it is due, and how many polls failed since.

    A server reads thousands of them after every commit and compares them with those of before: as tuples that is quick.
    """

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


class Grant(NamedTuple):
    """What a worker may spend: per second from now on, and all that it was ever credited with besides."""

    share: float
    credit: float = 0.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a worker's polls taught of the fleet as a whole."""

    number: int
    value: bytes


class Trust(NamedTuple):
    """What whoever holds a collection has learned of it, and counted of its members; below 0 it is a channel."""

    collection: int
    state: str
    counts: bytes = b""


@dataclass(frozen=True, slots=True)
class Census:
    """How many sources there are, what a poll of each that is not paused costs in all, and what the dearest costs."""

    sources: int
    cost: float
    dearest: float


@dataclass(frozen=True, slots=True)
class HeldShards:
    """The shards that a worker holds, each with the number of times that it was taken, and which of them others should.

    Who finds another number than before has lost the shard meanwhile. They are its own for `lasting` seconds from its
    last sign of life on.
    """

    epochs: Mapping[int, int]
    lasting: float
    unwanted: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostWord:
    """What a host has asked for: seconds between polls, the time until which it wants none, its refusals in a row.

    `paced` are the seconds between calls at which what is left of its quota lasts.
    """

    name: str
    asked: float = 0.0
    blocked: float = -math.inf
    refusals: int = 0
    paced: float = 0.0
