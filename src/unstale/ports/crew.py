"""What is asked besides of a store that several workers share: who they are, who plans, what they have learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from unstale.listings.records import CollectionMember
from unstale.ports.records import Claim, Price
from unstale.ports.stores import Store
from unstale.ports.summaries import Census, CrewMember, FleetColumns, Grant, HeldShards, HostWord, Lesson, Trust


class Crew(Protocol):
    """What workers on one store share: who is alive, what each may spend, who plans, what was learned.

    Promises: shares never add up to more than there is, also while they change hands; what comes into nobody's bucket
    is kept, up to a bound; one connection at most is elected; time is the store's own. A store that only one process
    writes to has no crew.
    """

    def beat(
        self, owner: str, held: float, level: float, burst: float, facts: Mapping[str, float], lesson: bytes | None
    ) -> Grant:
        """A sign of life, with the share the worker goes by; what it may spend from now on.

        Of the facts the store goes by `demand`, `waiting` (what is due and not paid for), `spent` and `credited` (all
        that it has heard of).
        """

    def leave(self, owner: str) -> None:
        """A worker ends: its share is free."""

    def elect(self) -> int:
        """The number of the session that plans, if it is this one or becomes it; 0 if another one does.

        Another number than the last time says that the session was lost meanwhile: others may have planned.
        """

    def divide(self, rate: float, first: float = 0.0) -> tuple[list[CrewMember], float]:
        """Give every worker that is alive a share of what there is per second, as far as others have let go of it.

        By what its shards need, which it tells as its `demand`; evenly where nobody tells. `first` is an allowance
        beside the rate, of which nothing is kept. And what of the rate has come into nobody's bucket, if not credited.
        """

    def claimed(self) -> list[int]:
        """The sources that somebody is polling now."""

    def lessons(self) -> list[Lesson]:
        """What workers' polls have taught of the fleet as a whole and no plan has taken up yet."""

    def publish(self, settings: Mapping[str, bytes], price: Price | None, taken_up: Sequence[int]) -> None:
        """A plan's outcome; lessons that it has taken up go in the same transaction."""

    def server_time(self) -> float:
        """The store's own clock, by which workers on many machines go."""


class Shards(Protocol):
    """How workers on one store divide its sources: they belong to shards by host, each held by one worker at most.

    Promises: a shard changes hands only once its holder has let go of it or is gone; then nothing that was begun there
    before is recorded any more, and its sources are left alone until it would have ended.
    """

    def hold(self, owner: str, let_go: Sequence[int] = ()) -> HeldShards:
        """Let go of shards, and take those that a worker which is alive should hold and nobody does; all it holds."""

    def take(self, sources: Sequence[int], *, lease: float, owner: str) -> list[Claim]:
        """Claims on those of these sources that are due; nothing if the owner counts as gone.

        That the owner holds their shards is its own promise.
        """

    def held_fleet(self, owner: str, width: int) -> FleetColumns:
        """The sources of the shards that a worker holds, in columns; `fleet` of them."""

    def sources_of(self, shards: Sequence[int]) -> list[int]:
        """The sources that belong to these shards."""

    def hastened(self) -> list[int] | None:
        """The sources that others have made due since this was asked last, as far as heard; None: it may be anybody."""

    def host_words(self) -> list[HostWord]:
        """What hosts have asked for, those that have."""

    def keep_words(self, words: Sequence[HostWord]) -> None:
        """What hosts ask for, for whoever holds their shards next."""


class Parts(Protocol):
    """A fleet that is planned in parts, because nobody holds it whole.

    Promise: what is read of a part is of one instant. What polls have moved since is told by who made them, and may be
    lost with its teller: parts are read anew now and then.
    """

    def census(self) -> Census:
        """How many sources there are, and what their polls cost."""

    def part(self, width: int, after: int, upto: int | None, most: int) -> FleetColumns:
        """Sources with ids above one and up to another, if one is named, at most so many, ids rising."""

    def tally(self, value: bytes) -> None:
        """How sources stood before and after polls, for whoever has made sketches of them."""

    def tallies(self) -> list[bytes]:
        """What was told so since the last time, which is forgotten."""


class SharedSignals(Protocol):
    """What collections tell workers: whoever holds a collection holds those of its members that are in its own shard.

    Promises: what is kept of a collection is what its holder said last; what is kept of all together adds up, whoever
    says it.
    """

    def members_together(self, owner: str | None = None) -> list[CollectionMember]:
        """Members in the shards of their collections, by collection and source; of all, or of the shards one holds."""

    def trust(self, collections: Sequence[int] | None = None) -> list[Trust]:
        """What was kept last of these collections, or of all; number 0 is what was learned of all together."""

    def keep_trust(
        self, owner: str, learned: Sequence[Trust], before: Sequence[float], now: Sequence[float]
    ) -> list[float]:
        """Keep what was learned of collections that one holds; add what was of all since it was `before`: the sum."""


class SharedStore(Store, Crew, Shards, Parts, SharedSignals, Protocol):
    """All that workers do with the store they share."""
