"""What collections and channels are worth: what the engine last wrote of each, in words for every face.

Rules of this file:
1. Nothing is computed here that the brain knows: it writes what a collection is worth, and this reads it.
2. A collection that has not been heard yet is a source like any other.
3. A channel by which signals are pushed is told as a collection is; it has no source, and its number is below 0.
4. Workers that share a store go by a collection's word about members in its own shard, and only where their planner
   reckons with it; whatever an engine learned before the fleet moved there, of all other members they do not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from unstale.addresses import host_of
from unstale.engine.collecting import SIGNALS
from unstale.engine.listed import COLLECTION
from unstale.engine.published_plan import PLAN, PublishedPlan
from unstale.frozen import dataclass
from unstale.listings.records import CHANNELS
from unstale.ports import Listing, ReadStore
from unstale.service.words import ago, span
from unstale.units import DAY, many

#: how a collection stands: used, trusted but not worth its polls, new, not new any more but nothing has shown what its
#: word is worth, not believed, or polled by workers, whose members come and go by it
USED, DEAR, NEW, UNPROVEN, LIAR, MEMBERS = "used", "trusted", "new", "unproven", "not believed", "members only"
#: credit from which on down a collection is not believed
DISTRUSTED = -3.0
#: of those of whom workers only hear who is there
UNPLANNED = "; workers do not plan polls by what it says of them"
#: collections of workers that are told
MOST = 1_000
#: the form of a channel
PUSH = "push"


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection: whom it tells of, how it stands, and how true its signals were; NaN where nothing is known."""

    listing: Listing
    form: str
    members: int
    state: str
    #: seconds between listing polls, and when it was last heard (-inf: never)
    interval: float
    heard_at: float
    #: share of its signals that are true, share of changes that it does not signal, seconds that it may be late
    precision: float
    silence: float
    late: float
    #: polls a day, in units of cost, that it would take more to be as fresh without it
    saved: float

    def sentence(self, now: float) -> str:
        """What it is worth, in one sentence."""
        told = f"tells of {self.members:,} source{'s' * (self.members != 1)}"
        if self.form == PUSH:
            return self._pushed(told, now)
        if self.state == MEMBERS:
            return f"{told}, which come and go by it{UNPLANNED}"
        if self.state == NEW:
            return f"{told}; it is listed every {span(self.interval)} until polls have shown what its signals are worth"
        if self.state == UNPROVEN:
            return (
                f"{told}; polls have not shown yet what its signals are worth: it is listed now and then, and not used"
            )
        worth = f"{self.precision:.0%} of its signals are true, {self.silence:.0%} of changes go unsaid"
        if self.state == LIAR:
            return f"{told}, but is not believed: {worth}; its members are polled as if there were none of it"
        if self.state == DEAR:
            return f"{told}, but a listing poll does not pay at today's price; {worth}"
        saved = (
            f"; about {many(round(self.saved), 'poll a day is', 'polls a day are')} saved" if self.saved >= 1.0 else ""
        )
        return f"{told} and is listed every {span(self.interval)}, heard {ago(self.heard_at, now)}: {worth}{saved}"

    def _pushed(self, told: str, now: float) -> str:
        """The same of a channel."""
        worth = f"{self.precision:.0%} of what it said was true, {self.silence:.0%} of changes go unsaid"
        if self.state == NEW:
            return f"{told}; it is followed within a part of the budget until polls have shown what its word is worth"
        if self.state == UNPROVEN:
            return (
                f"{told}, and nothing shows yet what it is worth; it is followed within a very small part of the budget"
            )
        if self.state == LIAR:
            return f"{told}, but is not believed: {worth}; it is followed within a very small part of the budget"
        return f"{told}, heard {ago(self.heard_at, now)}: {worth}; who it names is polled if that pays at today's price"


def collections(store: ReadStore, setting: bytes | None = None) -> list[CollectionView]:
    """The collections of a store that its engine has heard of, by their ids, and then the channels."""
    known = worths(store.setting(SIGNALS) if setting is None else setting)
    if not planned(store):
        moved = [one for one in store.listings(sorted(known)) if one.options.get(COLLECTION)]
        return [_unplanned(one, int(known[one.id]["members"])) for one in moved]
    channels = [Listing(name, PUSH, id=number) for name, number in CHANNELS.items() if number in known]
    return [
        CollectionView(
            one,
            PUSH if one.id < 0 else str(one.options.get(COLLECTION, "")),
            int(worth["members"]),
            _state(worth),
            _number(worth, "interval"),
            _number(worth, "heard_at", -math.inf),
            _proven(worth, "precision"),
            _proven(worth, "silence"),
            _proven(worth, "late"),
            DAY * _number(worth, "saved"),
        )
        for one in [*store.listings(sorted(number for number in known if number > 0)), *channels]
        for worth in (known[one.id],)
    ]


def collections_of_workers(store: ReadStore) -> list[CollectionView]:
    """The collections that workers poll, also those by which no polls are planned: they are looked for, which takes
    its time, and their members counted."""
    known = {one.listing.id: one for one in collections(store)} if planned(store) else {}
    found = store.listings(store.search(options=(COLLECTION,), limit=MOST))
    others = [_unplanned(one, len(store.members(one.id))) for one in found if one.id not in known]
    return [*known.values(), *others]


def planned(store: ReadStore) -> bool:
    """Whether polls are planned by signals: always by an engine, by workers where their planner says so."""
    return store.alive() is None or PublishedPlan.read(store.setting(PLAN)).listings is not None


def together(store: ReadStore, one: Listing, other: Listing) -> bool:
    """Whether whoever polls one source knows the other too: all do, but workers hold sources by their hosts."""
    return store.alive() is None or "" != _site(one) == _site(other)


def _site(one: Listing) -> str:
    return one.host or host_of(one.address)


def _unplanned(one: Listing, members: int) -> CollectionView:
    form, nan = str(one.options.get(COLLECTION, "")), math.nan
    return CollectionView(one, form, members, MEMBERS, nan, -math.inf, nan, nan, nan, 0.0)


def worths(setting: bytes) -> dict[int, Mapping[str, Any]]:
    """What the brain last wrote of each collection, by id."""
    if not setting:
        return {}
    found = json.loads(setting)["collections"].items()
    # Who had trust and lost it counts no lessons any more: in JSON there is no infinity.
    return {int(source): said["worth"] | {"lost": said.get("lessons", 0.0) is None} for source, said in found}


def _state(worth: Mapping[str, Any]) -> str:
    if worth["used"]:
        return USED
    if worth["trusted"]:
        return DEAR
    if worth["new"]:
        return NEW
    # Who has said nothing that polls found untrue is no liar: it may be that nothing has changed.
    lost = worth.get("lost") or _number(worth, "credit", -math.inf) <= DISTRUSTED
    return LIAR if lost else UNPROVEN


def _proven(worth: Mapping[str, Any], name: str) -> float:
    """What polls have shown of a collection; of an unproven one it is only what others have, or nobody."""
    return math.nan if _state(worth) in (NEW, UNPROVEN) else _number(worth, name)


def _number(worth: Mapping[str, Any], name: str, none: float = math.nan) -> float:
    # What an earlier version wrote has not all of it.
    value = worth.get(name)
    return none if value is None else float(value)
