"""Joining: whom a listing shows becomes a member, and a source if it is none yet.

Rules of this file:
1. A listing is a stranger's word: its entries stay within the collection's scope, it adds no more sources than its
   owner allows, with all listings within it, and nobody whom no poll may ask for.
2. What is left out is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from unstale.addresses import host_of
from unstale.engine.listed import COLLECTION
from unstale.engine.trees import CollectionTrees
from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.kinds import COLLECTING
from unstale.listings.records import CollectionMember, ListingEntry, ListingPoll, Told, outdated, signal
from unstale.listings.taking import ELSEWHERE, Scope
from unstale.ports import Claim, Listing, Store, number_of
from unstale.secrecy import as_written

MemberOf = Callable[[Claim, str, str], Listing]
#: why entries are left out that are well formed: there are more than the owner allows, or no poll may ask for them
BEYOND, FORBIDDEN, UNLISTED = "beyond most_members", "not allowed to be polled", "elsewhere and no source yet"

#: what is said of a source itself, and not of those that it tells of
_ITS_OWN = frozenset({"title", "normalise", "triggers", "table", "query", "early", "fresh_within", "target"})


@dataclass(frozen=True, slots=True)
class Heard:
    """What one listing means for a store: words to keep, signals by source, and addresses that are new."""

    words: tuple[CollectionMember, ...]
    signals: Mapping[int, float]
    new: tuple[ListingEntry, ...]


@dataclass(frozen=True, slots=True)
class TakenUp:
    """How many sources are new, how many joined, and how many were left out, by reason."""

    added: int
    joined: int
    left_out: Mapping[str, int]


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


def taken_up(
    store: Store,
    claim: Claim,
    known: Sequence[CollectionMember],
    heard: Heard,
    shown: ListingPoll,
    now: float,
    member_of: MemberOf = member_like,
    trees: CollectionTrees | None = None,
) -> TakenUp:
    """Write down what was said, in the store; `trees` counts who joined by listings within listings."""
    there, form = {member.address for member in known}, str(claim.options[COLLECTION])
    # Listings within a listing are collections themselves.
    fresh = [(entry, "") for entry in heard.new]
    fresh += [(ListingEntry(address), form) for address in shown.more if address not in there]
    trees = trees or CollectionTrees()
    room = trees.room(store, claim, now) if fresh else 0
    left_out = Counter({BEYOND: len(fresh) - room} if len(fresh) > room else {})
    listings = dict[str, tuple[ListingEntry, Listing]]()
    for entry, inner in fresh[:room]:
        try:
            listings.setdefault(entry.address, (entry, member_of(claim, entry.address, inner)))
        except InputError:
            left_out[FORBIDDEN] += 1
    unknown = {one.address: one for _, one in listings.values() if store.find(one.address) is None}
    if claim.options.get(ELSEWHERE):
        # Whom it may tell of anywhere are those that its owner has listed.
        own = Scope.of(claim.address)
        strange = {address for address in unknown if own.refusal(address)}
        unknown = {address: one for address, one in unknown.items() if address not in strange}
        left_out.update({UNLISTED: len(strange)} if strange else {})
    if unknown:
        store.add(list(unknown.values()), now)
    joined = [
        CollectionMember(claim.source, source, address, entry.time, entry.tag)
        for address, (entry, one) in listings.items()
        if (source := store.find(one.address)) is not None and source != claim.source
    ]
    store.enlist([*heard.words, *joined])
    trees.joined(store, claim.source, len(joined))
    return TakenUp(len(unknown), len(joined), left_out)
