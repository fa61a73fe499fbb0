"""What is asked besides of a store that several workers share: who they are, who plans, what they have learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from unstale.ports.records import Claim, Price
from unstale.ports.stores import Store
from unstale.ports.summaries import Census, CrewMember, FleetColumns, HostNews, Lesson


class Crew(Protocol):
    """What workers on one store share: who is alive, what each may spend, who plans, what was learned.

    Promises: shares never add up to more than there is, also while they change hands; one connection at most is
    elected; time is the store's own. A store that only one process writes to has no crew.
    """

    def beat(
        self, owner: str, held: float, level: float, burst: float, facts: Mapping[str, float], lesson: bytes | None
    ) -> float:
        """A sign of life, with the share the worker goes by; the share that it may go by from now on."""

    def leave(self, owner: str) -> None:
        """A worker ends: its share is free."""

    def elect(self) -> int:
        """The number of the session that plans, if it is this one or becomes it; 0 if another one does.

        Another number than the last time says that the session was lost meanwhile: others may have planned.
        """

    def divide(self, rate: float) -> list[CrewMember]:
        """Give every worker that is alive an even share of the rate, as far as others have let go of it."""

    def claimed(self) -> list[int]:
        """The sources that somebody is polling now."""

    def lessons(self) -> list[Lesson]:
        """What workers' polls have taught of the fleet as a whole and no plan has taken up yet."""

    def publish(self, settings: Mapping[str, bytes], price: Price | None, taken_up: Sequence[int]) -> None:
        """A plan's outcome; lessons that it has taken up go in the same transaction."""

    def server_time(self) -> float:
        """The store's own clock, by which workers on many machines go."""


class SharedHosts(Protocol):
    """How workers on one store share the hosts they poll. Promise: a host is polled as if there were one worker."""

    def heard(self, news: Sequence[HostNews]) -> None:
        """What answers say about how their hosts want to be treated holds for all from the next claim on."""

    def pass_on(self, owner: str, claims: Sequence[Claim]) -> int:
        """End claims whose polls were not begun: their turns at hosts are others' now; how many."""

    def overdue(self, now: float, usual: float, most: int) -> list[tuple[int, bool]]:
        """Who is due, at most so many: those sent away from busy hosts first, then who is latest in its own wait.

        With each whether it was sent away. Whose wait is not known is taken to wait for `usual` seconds.
        """


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


class SharedStore(Store, Crew, SharedHosts, Parts, Protocol):
    """All that workers do with the store they share."""
