"""What changed lately: the newest versions of sources, each with the lines that are new in it, for who reads news.

Rules of this file:
1. A first copy is no news: nothing was there that it changed.
2. Sources are those that changed among the newest polls, and what is shown of a change is short: both are bounds.
"""

from __future__ import annotations

from dataclasses import replace

from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.pictured import apart
from unstale.ports import Body, Edition, Listing, ReadStore, tags_of
from unstale.secrecy import shown_address
from unstale.service.compared import compared
from unstale.service.difference import readable
from unstale.service.own_titles import given_title, own_title

#: polls that are looked through, lines that are shown of a change, and bytes of a version that is compared for them
POLLS, LINES, BYTES = 5_000, 20, 2**18


@dataclass(frozen=True, slots=True)
class News:
    """A change of a source: the version that it brought, when that came, and lines that were taken away and added."""

    source: int
    address: str
    title: str
    tags: tuple[str, ...]
    version: int
    at: float
    #: as `difference` tells them, - and + alone; and whether there is more than that
    lines: tuple[tuple[str, str], ...]
    more: bool


def news(store: ReadStore, limit: int, tag: str | None = None) -> list[News]:
    """The newest changes, newest first: of all sources, or of those with a tag."""
    changed = dict.fromkeys(one.source for one in store.recent(POLLS) if one.answer is Answer.CHANGED)
    listings = [one for one in store.listings(sorted(changed)) if tag is None or tag in tags_of(one.options)]
    kept = [(one, edition) for one in listings for edition in _editions(store, one.id)]
    newest = sorted(kept, key=lambda pair: pair[1].taken_at, reverse=True)[:limit]
    return [_news(store, listing, edition) for listing, edition in newest]


def _editions(store: ReadStore, source: int) -> list[Edition]:
    """The versions of a source that are kept, without the very first."""
    found = store.editions([(source, version) for version in store.versions(source) if version > 1])
    return [edition for edition in found if edition is not None]


def _news(store: ReadStore, listing: Listing, edition: Edition) -> News:
    found = (store.copy(listing.id, version) for version in (edition.version - 1, edition.version))
    old, new = (None if one is None else one.body for one in found)
    lines, more = short_difference(old, new, listing.kind)
    return News(
        listing.id,
        shown_address(listing.address),
        given_title(listing) or own_title(new) or shown_address(listing.address),
        tuple(tags_of(listing.options)),
        edition.version,
        edition.taken_at,
        lines,
        more,
    )


def short_difference(old: Body | None, new: Body | None, kind: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """The first lines that were taken away and added, as a reader would compare them; whether there is more."""
    if old is None or new is None:
        return (), True
    old, new = (replace(one, data=apart(one.data)[0]) for one in (old, new))
    if not all(len(one.data) <= BYTES and readable(one.data, one.media_type) for one in (old, new)):
        return (), True
    told = compared(old, new, kind)
    lines = tuple((sign, line) for sign, line in told["lines"] if sign in "+-")
    return lines[:LINES], told["cut"] or len(lines) > LINES
