"""What copies call themselves: the titles of sources to which nobody gave one.

Rules of this file:
1. A title that somebody gave comes first, and one that a copy has is never written to the list of sources.
2. It is read from the newest copy when it is first asked for, and remembered: of a page that changes the title stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unstale.errors import StoreError
from unstale.html_text import html_title, is_html
from unstale.pictured import apart
from unstale.ports import Body, Listing, ReadStore

#: copies that one question opens, bytes of one that is opened, and titles that are remembered
_OPENED, _LARGEST, _MOST = 300, 2**20, 100_000


class OwnTitles:
    """Titles by source, empty where a copy has none."""

    def __init__(self) -> None:
        self.known: dict[int, str] = {}

    def of(self, store: ReadStore, listings: Sequence[Listing]) -> Mapping[int, str]:
        """The titles that these go by, where there are any; of many that were never asked for, some wait."""
        self.learn(store, [one.id for one in listings if not given_title(one)])
        found = {one.id: given_title(one) or self.known.get(one.id, "") for one in listings}
        return {source: title for source, title in found.items() if title}

    def all(self, store: ReadStore, told: Sequence[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """Ids, addresses and titles as a store tells them, with those that copies have besides."""
        self.learn(store, [source for source, _, title in told if not title])
        return [(source, address, title or self.known.get(source, "")) for source, address, title in told]

    def learn(self, store: ReadStore, sources: Sequence[int]) -> bool:
        """Look at copies of these that were not looked at, some of many; whether one has a title."""
        new = [source for source in sources if source not in self.known][:_OPENED]
        held = [(one.source, one.version) for one in store.heads(new) if one.version] if new else []
        if len(self.known) + len(held) > _MOST:
            self.known.clear()
        for (source, version), edition in zip(held, store.editions(held) if held else (), strict=True):
            self.known[source] = ""
            if edition is not None and edition.size <= _LARGEST and _titled(edition.media_type):
                try:
                    copy = store.copy(source, version)
                except StoreError:
                    # Damaged copies are told of elsewhere.
                    continue
                self.known[source] = "" if copy is None else own_title(copy.body)
        return any(self.known[source] for source, _ in held)


def given_title(listing: Listing) -> str:
    """The title that somebody gave a source."""
    return str(listing.options.get("title") or "")


def own_title(body: Body | None) -> str:
    """What a page or a feed calls itself.

    >>> own_title(Body(b"<rss><channel><title>News</title>", "application/rss+xml")), own_title(None)
    ('News', '')
    """
    return html_title(apart(body.data)[0]) if body is not None and _titled(body.media_type) else ""


def _titled(media_type: str) -> bool:
    return is_html(media_type) or "xml" in media_type.lower()
