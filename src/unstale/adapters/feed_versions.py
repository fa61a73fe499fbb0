"""What versions of feeds tell: the one that a poll brought, and those that were kept before entries were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.listings.feed_entries import ToldEntry, told_entries
from unstale.ports import Entry, ReadStore

#: what a feed tells
Told = tuple[ToldEntry, ...]


def entries_in(entry: Entry) -> Told:
    """What a poll of a feed that found something new tells of; nothing of any other."""
    if entry.claim.kind != "feed" or entry.body is None or entry.answer is not Answer.CHANGED:
        return ()
    return told_entries(entry.body.data)


def told_by(entries: Sequence[Entry]) -> dict[int, Told]:
    """What polls of feeds tell, by their tokens: read before a transaction, for others would wait for it."""
    return {one.claim.token: told for one in entries if one.body is not None and (told := entries_in(one))}


def untaken(
    store: ReadStore, entries: Sequence[Entry], told: Mapping[int, Told]
) -> Iterator[tuple[int, list[tuple[int, float, Told]]]]:
    """Feeds whose versions were kept before entries were, each with what these tell: version, when, and entries."""
    for claim in (entry.claim for entry in (entries if told else ())):
        if claim.token in told and claim.version and not store.entry_count(claim.source):
            yield claim.source, list(_kept(store, claim.source))


def _kept(store: ReadStore, source: int) -> Iterator[tuple[int, float, Told]]:
    for version in reversed(store.versions(source)):
        try:
            copy = store.copy(source, version)
        except StoreError:
            # It is damaged, which is found and told elsewhere.
            continue
        if copy is not None:
            yield version, copy.taken_at, told_entries(copy.body.data)
