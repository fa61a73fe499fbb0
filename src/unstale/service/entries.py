"""The entries of a feed as a reader wants them, also what the feed has dropped since: each once, newest first."""

from __future__ import annotations

from collections.abc import Iterator

from unstale.errors import StoreError
from unstale.frozen import dataclass
from unstale.listings.feed_entries import ToldEntry, told_entries
from unstale.ports import KeptEntry, ReadStore

#: versions that are looked through where entries are not kept by themselves yet
VERSIONS = 30


@dataclass(frozen=True, slots=True)
class FeedEntries:
    """Some entries of a feed, newest first; `total` are kept, those after `more` follow (None: these were the last).

    What the newest `version` has is in the feed as of `as_of`, when the feed last answered.
    """

    entries: tuple[KeptEntry, ...]
    total: int
    more: int | None
    version: int
    as_of: float

    def there(self, one: KeptEntry) -> bool:
        """Whether the feed still has it."""
        return one.last_version >= self.version

    def last_seen(self, one: KeptEntry) -> float:
        """When it was last seen: an entry that is still there was seen whenever the feed answered."""
        return max(one.last_at, self.as_of) if self.there(one) else one.last_at


def feed_entries(store: ReadStore, source: int, limit: int = 1000, before: int | None = None) -> FeedEntries:
    """Entries of a feed, newest first; with `before`, those with lower numbers."""
    total = store.entry_count(source)
    if total:
        # One more than is told says whether there are more.
        found = store.kept_entries(source, limit + 1, before)
    else:
        every = sorted(_in_versions(store, source), key=lambda one: -one.number)
        total = len(every)
        found = [one for one in every if before is None or one.number < before][: limit + 1]
    more = found[limit - 1].number if len(found) > limit else None
    version, checked = next(((head.version, head.checked) for head in store.heads([source])), (0, 0.0))
    return FeedEntries(tuple(found[:limit]), total, more, version, checked)


def _in_versions(store: ReadStore, source: int) -> Iterator[KeptEntry]:
    """What the kept versions have, of a store of before entries were kept by themselves."""
    seen: dict[bytes, list[tuple[int, float]]] = {}
    told: dict[bytes, ToldEntry] = {}
    for version in store.versions(source)[:VERSIONS]:
        try:
            copy = store.copy(source, version)
        except StoreError:
            continue
        for one in () if copy is None else told_entries(copy.body.data):
            assert copy is not None
            told.setdefault(one.name, one)
            seen.setdefault(one.name, []).append((version, copy.taken_at))
    for place, (name, one) in enumerate(told.items()):
        (last, last_at), (first, first_at) = seen[name][0], seen[name][-1]
        yield KeptEntry(len(told) - place, one.title, one.link, one.time, first_at, last_at, first, last)
