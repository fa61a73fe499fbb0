"""A contract of freshness as it is told: whether it is kept, the sources that break it, and what keeping it takes."""

from __future__ import annotations

import math

from unstale.frozen import dataclass
from unstale.ports import Listing
from unstale.secrecy import shown_address
from unstale.service.words import span
from unstale.units import many


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A source of which a contract is broken: the last answer is `since` seconds ago (inf: never), and why."""

    listing: Listing
    since: float
    allowed: float
    reason: str

    @property
    def sentence(self) -> str:
        """What is wrong with it."""
        last = "has never answered" if math.isinf(self.since) else f"last answered {span(self.since)} ago"
        told = f" ({self.reason})" if self.reason else ""
        return f"{shown_address(self.listing.address)} {last}, {span(self.allowed)} are allowed{told}"


@dataclass(frozen=True, slots=True)
class ContractView:
    """A contract at a moment: its sources that are not paused, those of whom it is broken, and what keeping it takes.

    `terms` are its words, empty where sources have their own; `needs` is cost per second.
    """

    name: str
    terms: str
    sources: int
    waiting: int
    broken: int
    needs: float
    worst: tuple[BrokenPromise, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether it is kept of all sources."""
        return not self.broken

    @property
    def sentence(self) -> str:
        """How it stands."""
        terms = f"{self.terms}: " if self.terms else ""
        first = f", {many(self.waiting, 'waits', 'wait')} for a first copy" if self.waiting else ""
        if self.kept:
            return f"{terms}kept of {many(self.sources, 'source')}{first}"
        return f"{terms}broken of {self.broken:,} of {many(self.sources, 'source')}{first}"
