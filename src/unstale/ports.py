"""What the engine asks of the world: small contracts, each kept by several technologies.

Rules of this file:
1. A contract has at most eight methods; what every keeper of it promises is in its docstring and in one contract test.
2. Times are seconds since the epoch. Nothing here knows a technology.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.keeper.outcomes import Answer

#: the setting that holds the learner's shared state; every state it has had is kept while observations need it
LEARNER = "learner"


@dataclass(frozen=True, slots=True)
class Request:
    """One look at a source: where it is, what we hold of it, and how much it may cost.

    `etag` and `last_modified` are the validators that came with the copy we hold, as the source wrote them.
    `limit` bounds the decoded body in bytes, `seconds` the whole poll, redirects included.
    """

    address: str
    etag: str | None = None
    last_modified: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: what the source's owner says about how to look at it, as listed
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: int = 16 * 2**20
    seconds: float = 30.0
    #: when the copy we hold was last known equal to its source; nothing older may take its place
    since: float = -math.inf


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came back. `body` is there only if the source sent one; whether it differs from the copy is not judged here.

    A failure has a `reason` in one sentence and the `status` the source gave, if any. `retry_after` is a wait in
    seconds that the source asked for, with whatever answer.
    `changed_at` are the times of changes that the source itself tells (entries of a feed, Last-Modified), rising.
    Through another replica `polled_at` is when that one's copy was known equal to the source, `via` the replicas it
    came through, nearest to the source first, and before `not_before` they have nothing new.
    """

    answer: Answer
    polled_at: float
    body: bytes | None = None
    media_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    changed_at: tuple[float, ...] = ()
    reason: str = ""
    retry_after: float | None = None
    status: int = 0
    #: where the body came from after redirects, and how many bytes crossed the network
    address: str = ""
    received: int = 0
    #: the pause between polls that the host asks for, in seconds
    spacing: float = 0.0
    via: str = ""
    not_before: float = -math.inf


class Clock(Protocol):
    """What time it is, and waiting until it is later. `now` never goes back within one process."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""


class Fetcher(Protocol):
    """Looks at sources of some kind, many at a time.

    Promises: `fetch` never raises for anything a source does, it answers FAILED with a reason; it returns within
    `request.seconds` (and a moment); it never holds more than `request.limit` decoded bytes; it never connects to
    an address that the settings do not allow, on any hop; credentials never cross origins; an answer "not modified"
    is UNCHANGED without a body, anything with a body is CHANGED for the caller to compare.
    """

    async def fetch(self, request: Request) -> Fetched:
        """Look once."""

    async def close(self) -> None:
        """Give back connections; what is in flight ends as FAILED."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What another replica says it holds: address, as of when, and SHA-256 of each copy, one portion of it.

    `now` is the time there (0: not told), `further` where the next portion begins (None: this was the last). A digest
    that could not be had has a `reason`; `false` marks one that must not be believed.
    """

    rows: tuple[tuple[str, float, bytes], ...] = ()
    now: float = 0.0
    further: int | None = None
    received: int = 0
    reason: str = ""
    false: bool = False


class Peering(Protocol):
    """Asks other replicas. Promises what a `Fetcher` does: bounded in time and size, gated, never raising."""

    async def digest(self, peer: str, since: float, after: int) -> Digest:
        """What a replica holds that is as of `since` or later, from the portion that begins behind `after`."""

    async def copy(self, peer: str, source: str, since: float) -> Fetched:
        """A replica's copy of a source, unless it is older than `since`."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A source as its owner lists it. `options` is plain JSON; secrets in it are names of the environment, `$TOKEN`.

    `id` and `added_at` (None: in no store yet) are the store's: what is given there is not looked at.
    """

    address: str
    kind: str = "http"
    weight: float = 1.0
    cost: float = 1.0
    #: the group that shares a cap
    host: str = ""
    shortest: float = 0.0
    longest: float = math.inf
    options: Mapping[str, Any] = field(default_factory=dict)
    paused: bool = False
    id: int = 0
    added_at: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to poll a source once, and what a poll needs. `token` grows from claim to claim and never comes back.

    `last` is when the source last answered (-inf: never), `failures` how many polls failed since, `latest` the token
    of its newest observation (0: none). `etag`, `last_modified` and `fingerprint` are those of the newest copy.
    """

    source: int
    token: int
    address: str
    kind: str
    due: float
    options: Mapping[str, Any] = field(default_factory=dict)
    last: float = -math.inf
    failures: int = 0
    latest: int = 0
    version: int = 0
    etag: str | None = None
    last_modified: str | None = None
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """What a poll brought, to be kept as a copy; `fingerprint` is what the next poll compares."""

    data: bytes
    media_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    fingerprint: bytes | None = None
    #: where it came from after redirects
    address: str = ""
    #: the replicas it came through, nearest to the source first, as names of a structured field; empty: none
    via: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a claimed poll ended, and everything that follows from it: recorded whole or not at all.

    `belief` is the learner's row after this poll, float64 in the machine's order; None leaves the one that is there.
    """

    claim: Claim
    answer: Answer
    polled_at: float
    due: float
    belief: bytes | None = None
    #: when the source says it last changed
    modified: float | None = None
    received: int = 0
    reason: str = ""
    body: Body | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One poll as it was recorded; `elapsed` is the time since the answer before it, NaN if there was none.

    `epoch` numbers the learner's shared state that was in force, 0 before any: under it, replaying gives the same.
    """

    token: int
    source: int
    polled_at: float
    answer: Answer
    elapsed: float
    modified: float | None
    received: int
    reason: str
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Copy:
    """One kept version of a source, its bytes checked against their SHA-256. Versions count from 1."""

    source: int
    version: int
    taken_at: float
    digest: bytes
    body: Body


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a poll that was published at a time, and the budget it was found for.

    Beside it, how things stood: the expected freshness of the fleet, and what it would be if all were polled equally
    often; and what was done since the price before: polls, changes found, failures, budget spent.
    """

    at: float
    price: float
    budget: float
    fresh: float = 0.0
    even: float = 0.0
    polls: int = 0
    changed: int = 0
    failed: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """A new version of a source, to be told to those who asked; numbers rise in the order of recording."""

    number: int
    source: int
    address: str
    version: int
    at: float
    digest: bytes


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


class Store(Protocol):
    """Where the engine keeps sources and what their polls taught. Synchronous and quick: one thread calls it.

    Promises: a call that returns is durable, one that raises (InputError, StoreError) did nothing. A source that is
    not paused is either waiting for its due time or claimed, never both and never neither. A claim is recorded at
    most once, and only while it is held: recording, giving back, expiry, pausing and removing end it. Order is that
    of tokens, for clocks jump: after one has, time runs from the newest answer. Old observations are dropped only
    once a checkpoint of the belief holds what they taught. Secrets are refused. Times are seconds since the epoch,
    never NaN; a due time of inf waits for ever.
    """

    def add(
        self, listings: Sequence[Listing], now: float, *, duplicates: Literal["refuse", "replace"] = "refuse"
    ) -> list[int]:
        """Add all or none; their ids, in the order given. New ones are due now.

        Where the address is known already, `refuse` adds nothing; `replace` takes the new listing and keeps the id,
        the beliefs, the copies and the due time.
        """

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources with all they taught; how many were there."""

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs. A belief that has not `width` floats counts as none: replaying rebuilds it."""

    def claim(self, now: float, limit: int, *, lease: float, owner: str) -> list[Claim]:
        """Up to `limit` sources that are due, longest overdue first; they come back after `lease` seconds.

        A claim that would last longer than `lease` from now was made under another clock, and has expired too.
        """

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """In one transaction: observations, copies, beliefs, due times, named settings, and a price if it is new.

        False marks an entry whose claim is no longer held: it was recorded before, or came too late, and is dropped.
        A body that equals the newest copy, or comes with UNCHANGED, makes no version: it only renews what came with
        it. The setting `LEARNER` begins an epoch when it is new: the entries beside it belong to the epoch before,
        all later ones to it.
        """

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's (what a killed process left); how many."""

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, for a new price or a hint. Of a claimed source it counts if the claim ends unrecorded.

        With `was`, only where the due time still is that: who plans must not undo what a hint has moved meanwhile.
        """

    def close(self) -> None:
        """Give back files. Everything was durable before."""


class Replica(Protocol):
    """The reading side of a store, for those who serve or explain what it holds. Unknown sources have nothing."""

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed, those that exist, in the order asked."""

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named; StoreError if its bytes are no longer what was stored."""

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first."""

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""

    def counters(self) -> dict[str, int]:
        """Totals since the store was made; claimed = recorded + given_back + expired + ended + those held now.

        `ended` counts claims that pausing or removing ended, `dropped` entries that came without a claim, `edited`
        the calls that added, replaced or removed sources: who holds the fleet in memory reads it anew then.
        """

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising; `Store.fleet` of a few."""


class Outbox(Protocol):
    """What is still to be told. A new version becomes an event in the transaction that records it.

    Promises: every event is handed out until `told` covers it, whatever happens in between: at least once, in order.
    Events that every name has been told, and those older than the horizon, may be dropped.
    """

    def subscribe(self, names: Sequence[str]) -> None:
        """Those who want to be told from now on, and nobody else; a new name begins with what is recorded next."""

    def events(self, name: str, limit: int) -> list[Event]:
        """The oldest events that `name` has not been told."""

    def told(self, name: str, number: int) -> None:
        """`name` has been told everything up to this number."""
