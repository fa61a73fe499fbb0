"""What was promised of all sources, remembered: finding out who was promised anything takes a look at all that is said.

Rule of this file: what is remembered holds only as long as every edit of the store since was one of our own, and one
that changed nobody's terms and tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unstale.engine.contracts import Contract, Promises, promised
from unstale.ports import Listing, ReadStore, Store, tags_of

_Key = tuple[int, int, tuple[object, ...]]


class KnownPromises:
    """Promises about a whole fleet, looked for anew when somebody may have been promised something else."""

    def __init__(self) -> None:
        self._known: tuple[_Key, Promises] | None = None

    def of(self, store: ReadStore, contracts: Mapping[str, Contract], few: Sequence[int] | None = None) -> Promises:
        """What was promised of all sources; of these `few` at least, if nothing more is asked for."""
        key, known = (*_counted(store), tuple(contracts.items())), self._known
        if known is None or known[0] != key:
            if few is not None:
                return promised(store, contracts, few)
            known = self._known = key, promised(store, contracts)
        return known[1]

    def replace(self, writer: Store, before: Sequence[Listing], after: Sequence[Listing], now: float) -> None:
        """Say something else of sources."""
        known, was = self._known, _counted(writer)
        writer.add(after, now, duplicates="replace")
        same = all(_terms(old) == _terms(new) for old, new in zip(before, after, strict=True))
        # One call is one edit: if there were others, they were not ours.
        if same and known is not None and known[0][:2] == was and _counted(writer) == (was[0], was[1] + 1):
            self._known = (was[0], was[1] + 1, known[0][2]), known[1]


def _counted(store: ReadStore) -> tuple[int, int]:
    counts = store.counters()
    return counts.get("added", 0), counts.get("edited", 0)


def _terms(listing: Listing) -> tuple[object, ...]:
    options = listing.options
    return options.get("fresh_within"), options.get("target"), set(tags_of(options))
