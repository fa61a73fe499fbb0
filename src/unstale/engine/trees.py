"""Collections within collections: together they bring no more sources than the owner of the first allows.

A folder that leads into itself, or a site that makes up listings within listings, has no end.
"""

from __future__ import annotations

from collections.abc import Mapping

from unstale.engine.listed import COLLECTION
from unstale.ports import Claim, Store, number_of

#: how many sources a collection may add, as an option of its source
MOST_MEMBERS = "most_members"
#: members where its owner does not say
USUAL_MOST = 10_000
#: seconds for which a count is good, and those that have joined since are added to it
_GOOD = 3600.0


class CollectionTrees:
    """How many sources each tree of collections has, counted now and then."""

    def __init__(self) -> None:
        #: by the collection at its root: when it was counted, and how many there are
        self._counted: dict[int, tuple[float, int]] = {}

    def room(self, store: Store, claim: Claim, now: float) -> int:
        """How many sources a collection may still add: as many as it may itself, or the one that all began with."""
        root, most = root_of(store, claim.source), most_of(claim.options)
        if root != claim.source:
            most = max([most, *(most_of(first.options) for first in store.listings([root]))])
        when, count = self._counted.get(root, (float("-inf"), 0))
        if not 0.0 <= now - when < _GOOD:
            self._counted[root] = when, count = now, size_of(store, root)
        return max(most - count, 0)

    def joined(self, store: Store, collection: int, count: int) -> None:
        """So many have joined by a collection."""
        root = root_of(store, collection)
        if root in self._counted:
            when, before = self._counted[root]
            self._counted[root] = when, before + count


def most_of(options: Mapping[str, object]) -> int:
    """How many members a collection may have."""
    return int(number_of(options, MOST_MEMBERS, USUAL_MOST))


def root_of(store: Store, collection: int) -> int:
    """The collection by which this one was found, and that one, and so on: who was found is younger."""
    while (older := min((m.collection for m in store.members(source=collection)), default=collection)) < collection:
        collection = older
    return collection


def size_of(store: Store, root: int) -> int:
    """How many sources a collection tells of, with all those within it."""
    seen, waiting = {root}, [root]
    while waiting:
        new = {member.source for one in waiting for member in store.members(one)} - seen
        seen |= new
        waiting = [one.id for one in store.listings(sorted(new)) if one.options.get(COLLECTION)]
    return len(seen) - 1
