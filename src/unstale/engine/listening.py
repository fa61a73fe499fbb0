"""Listening: what a poll of a collection says becomes members, signals and due times.

Rules of this file:
1. A listing is a stranger's word: its entries stay within the collection's scope, and it adds no more sources than its
   owner allows.
2. What it says is kept in the store before the scheduler hears of it: after a stop nothing that was told is lost.
3. Whom a listing does not show has no signal: no word is no news. Whether it is gone, `departing` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from unstale.addresses import host_of
from unstale.engine.departing import depart
from unstale.engine.listed import COLLECTION
from unstale.engine.loading import LoadedFleet
from unstale.engine.outcomes import PollOutcome
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.kinds import COLLECTING
from unstale.listings.paged import scrolls
from unstale.listings.records import CollectionMember, ListingEntry, ListingPoll, Told, outdated, signal
from unstale.logs import Tell
from unstale.ports import Claim, Listing, Store, number_of
from unstale.secrecy import as_written, shown_address

#: how many sources a collection may add, as an option of its source
MOST_MEMBERS = "most_members"
#: members where its owner does not say
USUAL_MOST = 10_000
#: what a new member is worth, in weights, as an option of its collection; 1 where its owner does not say
DISCOVERY = "discovery"

#: what is said of a source itself, and not of those that it tells of
_ITS_OWN = frozenset({"title", "normalise", "triggers", "table", "query", "early", "fresh_within", "target"})

MemberOf = Callable[[Claim, str, str], Listing]


@dataclass(frozen=True, slots=True)
class Heard:
    """What one listing means for a store: words to keep, signals by source, and addresses that are new."""

    words: tuple[CollectionMember, ...]
    signals: Mapping[int, float]
    new: tuple[ListingEntry, ...]


def compared(known: Sequence[CollectionMember], shown: ListingPoll, now: float) -> Heard:
    """What a listing says against what was said before.

    >>> before = CollectionMember(1, 7, "https://example.org/a", time=100.0)
    >>> shown = ListingPoll((ListingEntry("https://example.org/a", 250.0), ListingEntry("https://example.org/b", 9.0)))
    >>> heard = compared([before], shown, now=300.0)
    >>> heard.signals, [entry.address for entry in heard.new]
    ({7: 250.0}, ['https://example.org/b'])
    """
    by_address = {member.address: member for member in known}
    words, signals, new = [], dict[int, float](), []
    for entry in shown.entries:
        member = by_address.get(entry.address)
        if member is None:
            new.append(entry)
            continue
        told = signal(member, entry, now)
        if told.told is Told.CHANGED:
            signals[member.source] = now if told.at is None else told.at
        if (entry.time, entry.tag) != (member.time, member.tag) and not outdated(member, entry):
            at = signals.get(member.source, member.told)
            words.append(replace(member, time=entry.time, tag=entry.tag, told=at))
    return Heard(tuple(words), signals, tuple(new))


def member_like(claim: Claim, address: str, inner: str) -> Listing:
    """A member polled as its collection is; `inner` is how it is read if it is a collection itself.

    What is said of the way to a collection holds for its members; headers only where they go to the same place. On
    the web nothing is filled into what a stranger lists: he would be told what the environment holds. Nor does a
    listing in one place name what is in another: one in a bucket would have our own files copied.
    """
    if address[:6].lower().startswith(("http:", "https:")):
        address = as_written(address, claim.address)
    elif (there := _place(address)) != (here := _place(claim.address)):
        raise InputError(f"a collection at {here}: names a member at {there}:, where it is not asked: list it yourself")
    own, form = dict(claim.options or {}), (claim.options or {}).get(COLLECTION)
    options = {name: own[name] for name in own if name not in COLLECTING and name not in _ITS_OWN}
    if urlsplit(address)[:2] != urlsplit(claim.address)[:2]:
        options.pop("headers", None)
    if inner:
        options |= {name: own[name] for name in own if name in COLLECTING} | {COLLECTION: inner}
        if "depth" in own:
            options["depth"] = int(number_of(own, "depth", 1.0)) - 1
    kind = "replica" if form == "digest" else "http" if claim.kind == "feed" else claim.kind
    return Listing(address, kind, weight_of(address, own), host=host_of(address), options=options)


def _place(address: str) -> str:
    scheme = urlsplit(address).scheme
    return scheme if scheme and len(scheme) > 1 else "file"


def weight_of(address: str, options: Mapping[str, Any]) -> float:
    """What the option `weights` says of an address, the first pattern that fits it; 1 where none does.

    >>> weight_of("https://example.org/news/1", {"weights": {"*/news/*": 3}})
    3.0
    """
    told = options.get("weights") or {}
    return next((float(weight) for pattern, weight in told.items() if fnmatchcase(address, pattern)), 1.0)


@dataclass(frozen=True, slots=True)
class Listened:
    """What one poll of a collection came to: signals by source, time it tells nothing of, how many members moved."""

    signals: Mapping[int, float]
    hole: float = 0.0
    moved: int = 0
    #: sources that were not known before
    added: int = 0


class MemberKeeper:
    """Keeps in the store what polls of collections say: who joins, what was told, who is gone.

    `member_of` makes the listing of a member, or raises InputError.
    """

    def __init__(self, executor: StoreExecutor[Any], member_of: MemberOf, tell: Tell) -> None:
        self._executor, self._member_of, self._tell = executor, member_of, tell

    async def heard(self, outcomes: Sequence[PollOutcome]) -> None:
        """Take up what recorded polls of collections said."""
        for outcome in outcomes:
            if outcome.claim.options and COLLECTION in outcome.claim.options and outcome.answer is not Answer.FAILED:
                await self._hear(outcome.claim, outcome.fetched.polled_at, outcome.listing)

    async def _hear(self, claim: Claim, now: float, shown: ListingPoll | None) -> None:
        await self.kept(claim, now, shown)

    async def kept(self, claim: Claim, now: float, shown: ListingPoll | None) -> Listened:
        """Write down what a listing says (None: what the last one did)."""
        signals: Mapping[int, float] = {}
        hole, joined, added = 0.0, 0, 0
        if shown is not None:
            known = await self._executor.do(lambda store: store.members(claim.source))
            heard = compared(known, shown, now)
            added, joined = await self._executor.do(
                lambda store: taken_up(store, claim, known, heard, shown, now, self._member_of)
            )
            signals, hole = heard.signals, uncovered(claim, shown, now)
            refused = sum(shown.refused.values())
            if added or refused:
                self._tell("members", {**_about(claim), "added": added, "refused": refused})
        left = await self._executor.do(lambda store: depart(store, claim, shown, now))
        moved = {"paused": len(left.pause), "resumed": len(left.resume), "removed": len(left.forget)}
        if any(moved.values()):
            self._tell("departures", {**_about(claim), **moved})
        return Listened(signals, hole, joined + sum(moved.values()), added)


class Listener(MemberKeeper):
    """Hears what polls of collections said: besides what is kept, signals go to the scheduler of a fleet."""

    def __init__(self, executor: StoreExecutor[Store], fleet: LoadedFleet, member_of: MemberOf, tell: Tell) -> None:
        super().__init__(executor, member_of, tell)
        self._fleet = fleet

    async def _hear(self, claim: Claim, now: float, shown: ListingPoll | None) -> None:
        """The fleet's lock is held."""
        told_of = await self.kept(claim, now, shown)
        # Who is new, or is told of now, is known once the fleet is read again.
        self._fleet.outdated = self._fleet.outdated or told_of.moved > 0
        scheduler, signals = self._fleet.scheduler, told_of.signals
        row = self._fleet.rows([claim.source])
        if not len(row):
            return
        collected = scheduler.collected
        if shown is not None and collected is not None and collected.number[row[0]] >= 0 and scrolls(claim.options):
            collected.shows(int(row[0]), len(shown.entries))
        if shown is not None and collected is not None and np.isfinite(claim.last):
            # Those of the first look were there before.
            worth = number_of(claim.options, DISCOVERY, 1.0) * told_of.added
            collected.finds(int(row[0]), worth, now - claim.last)
        members = self._fleet.rows(list(signals))
        told = np.array([signals[int(source)] for source in scheduler.ids[members]], dtype=np.float64)
        before = scheduler.due_at[members]
        due = scheduler.hear(int(row[0]), now, members, told, told_of.hole)
        if len(due):
            was = before[np.searchsorted(members, due)].tolist()
            await self._hasten(scheduler.ids[due].tolist(), scheduler.due_at[due].tolist(), was)

    async def _hasten(self, sources: list[int], due: list[float], was: list[float]) -> None:
        """The store is told that these are due, which were due then."""
        await self._executor.do(lambda store: store.set_due(sources, due))


def uncovered(claim: Claim, shown: ListingPoll, now: float) -> float:
    """Time since the last listing of which this one tells nothing: cut short, or scrolled out."""
    last = claim.last if np.isfinite(claim.last) else now
    if not shown.complete:
        return now - last
    times = [entry.time for entry in shown.entries if entry.time is not None]
    return max(min(times) - last, 0.0) if scrolls(claim.options) and times else 0.0


def taken_up(
    store: Store,
    claim: Claim,
    known: Sequence[CollectionMember],
    heard: Heard,
    shown: ListingPoll,
    now: float,
    member_of: MemberOf = member_like,
) -> tuple[int, int]:
    """Write down what was said, in the store; how many sources are new, and how many members."""
    there, form = {member.address for member in known}, str(claim.options[COLLECTION])
    most = int(number_of(claim.options, MOST_MEMBERS, USUAL_MOST)) - len(known)
    # Listings within a listing are collections themselves.
    fresh = [(entry, "") for entry in heard.new]
    fresh += [(ListingEntry(address), form) for address in shown.more if address not in there]
    listings = dict[str, tuple[ListingEntry, Listing]]()
    for entry, inner in fresh[: max(most, 0)]:
        try:
            listings.setdefault(entry.address, (entry, member_of(claim, entry.address, inner)))
        except InputError:
            continue
    unknown = {one.address: one for _, one in listings.values() if store.find(one.address) is None}
    if unknown:
        store.add(list(unknown.values()), now)
    joined = [
        CollectionMember(claim.source, source, address, entry.time, entry.tag)
        for address, (entry, one) in listings.items()
        if (source := store.find(one.address)) is not None and source != claim.source
    ]
    store.enlist([*heard.words, *joined])
    return len(unknown), len(joined)


def _about(claim: Claim) -> dict[str, object]:
    return {"source": claim.source, "address": shown_address(claim.address)}
