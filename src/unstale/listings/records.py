"""What crosses the seams where collections are polled: collections, members, entries, signals, listing polls.

Rules of this file:
1. A time is seconds since the epoch, None where nothing was said; a tag is any text that differs when content does.
2. A listing that was cut short is not `complete`: members it does not show are "no word", never "gone".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from unstale.frozen import dataclass

#: the channels by which sources can be said to have changed, unasked, and their numbers among collections
CHANNELS = {"hint": -1, "websub": -2, "webhook": -3}
#: a listing poll in plain JSON
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Collection:
    """One thing to poll that tells about many sources: where it is, how it is read, what a listing poll costs."""

    id: int
    address: str
    kind: str
    cost: float = 1.0
    host: str = ""
    shortest: float = 0.0
    longest: float = float("inf")
    #: length of a feed that shows only its last entries, 0 for a listing of all members
    entries: int = 0
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CollectionMember:
    """One source that a collection tells about, under the address by which it does, and what was said last."""

    collection: int
    source: int
    address: str
    time: float | None = None
    tag: str | None = None
    #: when its last signal said that it changed
    told: float | None = None


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """One line of a listing. The change came at `time` or up to `grain` later: a bare date has a grain of a day."""

    address: str
    time: float | None = None
    tag: str | None = None
    grain: float = 0.0


@dataclass(frozen=True, slots=True)
class ListingPoll:
    """What one look brought: entries, addresses of further listings, where to go on, and what was refused, counted."""

    entries: tuple[ListingEntry, ...]
    more: tuple[str, ...] = ()
    cursor: str | None = None
    complete: bool = True
    refused: Mapping[str, int] = field(default_factory=dict)

    def plain(self) -> Plain:
        """The same in plain JSON."""
        entries = [[one.address, one.time, one.tag, one.grain] for one in self.entries]
        return {**{name: getattr(self, name) for name in ("more", "cursor", "complete", "refused")}, "entries": entries}

    @classmethod
    def of_plain(cls, told: Plain) -> ListingPoll:
        """From plain JSON.

        >>> poll = ListingPoll((ListingEntry("https://example.org/a", 5.0, "x"),), refused={"twice": 1})
        >>> ListingPoll.of_plain(poll.plain()) == poll
        True
        """
        entries = tuple(ListingEntry(*one) for one in told["entries"])
        return cls(entries, tuple(told["more"]), told["cursor"], told["complete"], dict(told["refused"]))


#: begins the tag that is a serial: of two, the larger one is the later
_SERIAL = "serial "


def serial_tag(serial: object) -> str | None:
    """The tag of a number that a registry counts up with each change, such as `_last-serial`; None for anything else.

    >>> serial_tag(42), serial_tag("42"), serial_tag(None), serial_tag(True)
    ('serial 42', None, None, None)
    """
    whole = isinstance(serial, int) and not isinstance(serial, bool) and 0 <= serial < 2**63
    return f"{_SERIAL}{serial}" if whole else None


def outdated(member: CollectionMember, entry: ListingEntry) -> bool:
    """Whether an entry is older than what was said before, as a cache that lags behind another shows it.

    >>> member = CollectionMember(1, 7, "https://example.org/simple/a/", tag="serial 42")
    >>> outdated(member, ListingEntry(member.address, tag="serial 41"))
    True
    """
    if entry.tag is None or member.tag is None or not entry.tag.startswith(_SERIAL):
        return False
    # An earlier version has kept serials as bare numbers.
    before = member.tag.removeprefix(_SERIAL)
    return before.isdecimal() and int(entry.tag.removeprefix(_SERIAL)) < int(before)


class Told(Enum):
    """What a listing poll says of a member."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NO_WORD = "no word"


@dataclass(frozen=True, slots=True)
class Signal:
    """What a listing poll says of one member; `at` is when it changed, None if only that it did."""

    member: CollectionMember
    told: Told
    at: float | None = None


def signal(member: CollectionMember, entry: ListingEntry | None, now: float) -> Signal:
    """What an entry says against what was said before; None is a member that the listing did not show.

    A tag decides where both have one, for clocks are wrong more often than tags; else a time that moved does. A time
    that lies in the future or went back is not believed, only the fact that it is another. A serial that went back is
    no word: a cache is behind what was seen before.

    >>> before = CollectionMember(1, 7, "https://example.org/a", time=100.0)
    >>> found = signal(before, ListingEntry("https://example.org/a", time=250.0), now=300.0)
    >>> found.told.value, found.at
    ('changed', 250.0)
    """
    if entry is None or outdated(member, entry):
        return Signal(member, Told.NO_WORD)
    if entry.tag is not None and member.tag is not None:
        changed = entry.tag.removeprefix(_SERIAL) != member.tag.removeprefix(_SERIAL)
    elif entry.time is not None and member.time is not None:
        changed = entry.time != member.time
    else:
        return Signal(member, Told.NO_WORD)
    if not changed:
        return Signal(member, Told.UNCHANGED)
    at = None if entry.time is None else min(entry.time + entry.grain, now)
    backwards = entry.time is not None and member.time is not None and entry.time < member.time
    return Signal(member, Told.CHANGED, None if backwards or (entry.time or 0.0) > now else at)
