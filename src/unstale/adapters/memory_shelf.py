"""What can be read of a store in memory beyond what the engine asks: lists, heads, editions, what is announced."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from unstale.adapters.memory_entries import Known
from unstale.adapters.store_shared import NEWEST, packed
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports import (
    COST_IN,
    MOST_EDITS,
    Announced,
    Checkpoint,
    Copy,
    CrewMember,
    Edit,
    Edition,
    Epoch,
    Head,
    Holding,
    HostCount,
    KeptEntry,
    Listing,
    Observation,
    Price,
    Recent,
    tags_of,
    unlike,
)


@dataclass(frozen=True, slots=True)
class Lease:
    """A claim that is held."""

    token: int
    until: float
    owner: str


@dataclass(slots=True)
class Kept:
    """All that is held of one source."""

    listing: Listing
    due: float
    last: float = -math.inf
    found: float = -math.inf
    failures: int = 0
    belief: bytes | None = None
    lease: Lease | None = None
    observations: list[Observation] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    entries: Known = field(default_factory=dict)
    #: from where its belief was begun anew, if it was
    anew: Checkpoint | None = None
    #: what polls of it were found to cost, if they were
    learned: float | None = None

    @property
    def cost(self) -> float:
        """What a poll of it costs: what is stated, or what was found."""
        return self.listing.cost if self.learned is None or self.listing.cost != 1.0 else self.learned


class MemoryShelf:
    """Keeps the contracts `Shelf`, `Audit` and `Replica` in memory, and what of `Catalogue` is not in columns."""

    def __init__(self) -> None:
        self._sources: dict[int, Kept] = {}
        self._ids: dict[str, int] = {}
        self._settings: dict[str, bytes] = {}
        self._prices: list[Price] = []
        self._counters: Counter[str] = Counter()
        self._epochs: list[Epoch] = []
        self._edits: list[Edit] = []

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        return self._ids.get(address)

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        return [self._sources[int(source)].listing for source in sources if int(source) in self._sources]

    def search(
        self,
        text: str = "",
        *,
        host: str | None = None,
        kind: str | None = None,
        paused: bool | None = None,
        tag: str | None = None,
        options: Sequence[str] = (),
        failing: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[int]:
        """The sources after an id whose address contains a text, rising; a and A are the same letter, ä and Ä are not.

        `tag` is one that they have, `options` names of which they have one; `failing`, whether their last polls did. To
        go through all, ask again after the last one.
        """
        found = [
            source
            for source, kept in sorted(self._sources.items())
            if source > after
            and _folded(text) in _folded(kept.listing.address)
            and host in (None, kept.listing.host)
            and kind in (None, kept.listing.kind)
            and paused in (None, kept.listing.paused)
            and (tag is None or tag in tags_of(kept.listing.options))
            and (not options or not kept.listing.options.keys().isdisjoint(options))
            and failing in (None, kept.failures > 0)
        ]
        return found[:limit]

    def names(self) -> list[tuple[int, str, str]]:
        """Every source's id, address and title, ids rising; empty where it has no title."""
        listed = ((source, kept.listing) for source, kept in self._sources.items())
        return sorted((source, one.address, str(one.options.get("title", ""))) for source, one in listed)

    def hosts(self) -> list[HostCount]:
        """Each host that has sources, by name."""
        by_name: dict[str, list[Kept]] = {}
        for kept in self._sources.values():
            by_name.setdefault(kept.listing.host, []).append(kept)
        return [
            HostCount(
                name,
                len(those),
                sum(kept.listing.paused for kept in those),
                sum(kept.failures > 0 and not kept.listing.paused for kept in those),
            )
            for name, those in sorted(by_name.items())
        ]

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named."""
        copies = self._sources[source].copies if source in self._sources else []
        return next((copy for copy in reversed(copies) if version in (None, copy.version)), None)

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""
        return [copy.version for copy in reversed(self._sources[source].copies)] if source in self._sources else []

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first."""
        return self._sources[source].observations[::-1][:limit] if source in self._sources else []

    def kept_entries(self, source: int, limit: int = 1000, before: int | None = None) -> list[KeptEntry]:
        """The entries of a feed, those that were seen last first."""
        known = [one for _, one in self._sources[source].entries.values()] if source in self._sources else []
        found = [one for one in known if before is None or one.number < before]
        return sorted(found, key=lambda one: -one.number)[:limit]

    def entry_count(self, source: int) -> int:
        """How many entries of a feed are kept."""
        return len(self._sources[source].entries) if source in self._sources else 0

    def note_edit(self, at: float, who: str, what: str) -> None:
        """Keep in the log of edits who changed what."""
        number = self._edits[-1].number + 1 if self._edits else 1
        self._edits = [*self._edits, Edit(number, at, who, what)][-MOST_EDITS:]

    def edits(self, limit: int = 1000, before: int | None = None) -> list[Edit]:
        """Who changed what, the newest first."""
        return [one for one in reversed(self._edits) if before is None or one.number < before][:limit]

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""
        return [price for price in self._prices if price.at >= since]

    def counters(self) -> dict[str, int]:
        """Totals since the store was made."""
        return {name: value for name, value in sorted(self._counters.items()) if value}

    def _measure_in(self, given: Mapping[str, bytes]) -> None:
        """If polls are counted in another unit from now on, what they were found to cost is forgotten."""
        if COST_IN in given and given[COST_IN] != self._settings.get(COST_IN):
            for kept in self._sources.values():
                kept.learned = None

    def total_cost(self) -> float:
        """What one poll of each source costs, but of those that are paused."""
        return math.fsum(kept.cost for kept in self._sources.values() if not kept.listing.paused)

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""
        return self._settings.get(name, b"")

    def held(self, addresses: Sequence[str]) -> dict[str, Holding]:
        """What is held of those that are sources and not paused, by address."""
        known = {address: self._sources[self._ids[address]] for address in addresses if address in self._ids}
        return {
            address: Holding(kept.listing.id, kept.last, tuple(copy.digest for copy in reversed(kept.copies)))
            for address, kept in known.items()
            if not kept.listing.paused
        }

    def mark(self) -> bytes | None:
        """Nobody but this process can write, and it need not ask."""
        return None

    def heads(self, sources: Sequence[int]) -> list[Head]:
        """How sources stand now, those that exist."""
        found = [(int(source), self._sources[int(source)]) for source in sources if int(source) in self._sources]
        return [
            Head(
                source,
                kept.observations[-1].token if kept.observations else 0,
                kept.copies[-1].version if kept.copies else 0,
                kept.last,
                kept.due,
                kept.failures,
            )
            for source, kept in found
        ]

    def heads_unlike(self, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Of sources that stood so: those that stand otherwise now, and those that are gone."""
        return unlike(self.heads(list(told)), told)

    def editions(self, wanted: Sequence[tuple[int, int]]) -> list[Edition | None]:
        """Versions without their bytes, in the order asked."""
        return [self._edition(source, version) for source, version in wanted]

    def _edition(self, source: int, version: int) -> Edition | None:
        copy = self.copy(source, version)
        if copy is None:
            return None
        before = [0.0, *(one.taken_at for one in self._sources[source].copies if one.version < version)][-1]
        body, at, size = copy.body, copy.taken_at, len(copy.body.data)
        return Edition(version, at, body.media_type, body.last_modified, copy.digest, size, before, body.via)

    def packed(self, source: int, version: int) -> bytes | None:
        """Its bytes as one zstd frame."""
        copy = self.copy(source, version)
        return None if copy is None else packed(copy.body.data)

    def announced(self, since: float, after: int, limit: int) -> list[Announced]:
        """Sources with ids above `after` whose copies are as of `since` or later, ids rising."""
        found = [
            Announced(source, kept.listing.address, kept.last, kept.copies[-1].version, kept.copies[-1].digest)
            for source, kept in sorted(self._sources.items())
            if source > after and kept.copies and kept.last >= since and not kept.listing.paused
        ]
        return found[:limit]

    def recent(self, count: int) -> list[Recent]:
        """The newest observations by token, newest first."""
        every = [one for kept in self._sources.values() for one in kept.observations]
        newest = sorted(every, key=lambda one: one.token, reverse=True)[:count]
        return [Recent(one.token, one.source, one.polled_at, one.answer) for one in newest]

    def answered_at(self) -> float:
        """When any source last answered, -inf if none of the newest polls was."""
        answers = [one.polled_at for one in self.recent(NEWEST) if one.answer is not Answer.FAILED]
        return max(answers, default=-math.inf)

    def alive(self) -> tuple[CrewMember, ...] | None:
        """One process keeps it, this one."""
        return None

    def checkpoint(self, source: int) -> Checkpoint | None:
        """All observations are kept, so replaying begins with the first one, or where a belief was begun anew."""
        return self._sources[source].anew if source in self._sources else None

    def epochs(self, since: int = 0) -> list[Epoch]:
        """The learner's shared states that observations name, from one number on, and the one in force."""
        named = {one.epoch for kept in self._sources.values() for one in kept.observations}
        return [epoch for epoch in self._epochs if epoch.number >= since and _needed(epoch, named, self._epochs)]

    def verify(self) -> list[str]:
        """Nothing can be wrong with what no disk holds."""
        return []

    def damaged(self) -> list[tuple[int, int]]:
        """Nothing can be."""
        return []


def _needed(epoch: Epoch, named: set[int], every: Sequence[Epoch]) -> bool:
    return epoch is every[-1] or epoch.number in named


def _folded(text: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)
