"""The readers by kind, and listings that consist of several: followed within bounds, whatever they point to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from unstale.errors import InputError, require
from unstale.listings.changelog import read_changelog
from unstale.listings.digest import read_digest
from unstale.listings.feed import read_feed_entries
from unstale.listings.folders import read_folder
from unstale.listings.http_index import read_http_index
from unstale.listings.links import read_links
from unstale.listings.objects import read_objects
from unstale.listings.packages import read_changes, read_debian, read_simple_index
from unstale.listings.records import ListingPoll, Plain
from unstale.listings.refs import read_refs
from unstale.listings.sitemap import read_sitemap
from unstale.listings.tables import read_catalogue, read_table
from unstale.listings.taking import ELSEWHERE, MOST_ENTRIES, Scope, Taker

READERS: dict[str, Callable[[bytes, Taker], None]] = {
    "sitemap": read_sitemap,
    "feed": read_feed_entries,
    "index": read_http_index,
    "folder": read_folder,
    "objects": read_objects,
    "simple": read_simple_index,
    "changes": read_changes,
    "changelog": read_changelog,
    "debian": read_debian,
    "refs": read_refs,
    "table": read_table,
    "catalogue": read_catalogue,
    "digest": read_digest,
    "links": read_links,
}
#: listings within listings that are followed
DEEPEST = 4


def read_listing(
    kind: str,
    data: bytes,
    base: str,
    *,
    now: float,
    scope: Scope | None = None,
    most: int = MOST_ENTRIES,
    options: Mapping[str, Any] | None = None,
) -> ListingPoll:
    """What a listing of this kind says; InputError if it is none. Bad entries are counted, never raised.

    `options` are its owner's: the shape of a table, and whom it may tell of.

    >>> page = read_listing("table", b"address,tag\\nhttps://example.org/a,7\\njavascript:x,8\\n",
    ...                     "https://example.org/list.csv", now=2e9)
    >>> [entry.tag for entry in page.entries], dict(page.refused)
    (['7'], {'another scheme': 1})
    """
    require(kind in READERS, "kind of collection", repr(kind), "is unknown", f"choose one of {', '.join(READERS)}")
    to = Taker(base, now, scope or Scope.of(base), most, options=options or {})
    READERS[kind](data, to)
    return to.poll()


def read_plain(
    kind: str, data: bytes, base: str, now: float, options: Mapping[str, Any] | None = None, own: str = ""
) -> Plain:
    """`read_listing` in plain JSON, for a process beside ours. Its scope is that of the collection's `own` address,
    wherever it was led from there: to another host is no leading."""
    scope = Scope.of(own or base, anywhere=bool((options or {}).get(ELSEWHERE)))
    return read_listing(kind, data, base, now=now, scope=scope, options=options).plain()


def read_all(
    kind: str,
    start: str,
    load: Callable[[str], bytes],
    *,
    now: float,
    scope: Scope | None = None,
    most: int = MOST_ENTRIES,
    most_listings: int = 1_000,
) -> Iterator[ListingPoll]:
    """A listing and those within it, page by page, so that memory holds one; each is read once, so cycles end.

    A page that cannot be loaded or read is an empty one that is not complete: the others still count.
    """
    where, left, seen = scope or Scope.of(start), most, {start}
    waiting = [(start, 1)]
    while waiting and left > 0:
        address, depth = waiting.pop(0)
        try:
            page = read_listing(kind, load(address), address, now=now, scope=where, most=left)
        except InputError:
            yield ListingPoll((), complete=False, refused=Counter({"unreadable listing": 1}))
            continue
        left -= len(page.entries)
        inner = [a for a in page.more if a not in seen]
        room = max(most_listings - len(seen), 0) if depth < DEEPEST else 0
        refused = dict(page.refused) | ({"too many listings": len(inner) - room} if len(inner) > room else {})
        seen.update(inner[:room])
        waiting += [(a, depth + 1) for a in inner[:room]]
        yield ListingPoll(
            page.entries, page.more, page.cursor, page.complete and len(inner) <= room, dict(sorted(refused.items()))
        )
