"""The entries of a feed as a reader wants them: titles, links that are links, and also what the feed has dropped since.

Rules of this file:
1. What strangers wrote is text; only an address of the web is told as a link.
"""

from __future__ import annotations

from unstale.errors import InputError
from unstale.feeds import FeedEntry, read_feed
from unstale.html_text import html_text
from unstale.ports import ReadStore

#: versions that are looked through, entries that are told, and characters of a title and a link
VERSIONS, MOST, TITLE, LINK = 30, 1000, 300, 2000


def entry_of(one: FeedEntry) -> dict[str, str]:
    """An entry as it is shown: a title, a link if it is one of the web, when it says it is from.

    >>> entry_of(FeedEntry(title=("<b>New</b>",), link=("javascript:alert(1)",)))
    {'title': 'New', 'link': '', 'time': ''}
    """
    title = " ".join(html_text(" ".join(one.title).encode("utf-8", "replace")))
    content = " ".join(html_text(" ".join(one.content[:1]).encode("utf-8", "replace")[:4096]))
    link = next((link for link in one.link if link.lower().startswith(("http://", "https://"))), "")
    shown = title or content or " ".join(one.id)
    return {"title": shown[:TITLE], "link": link[:LINK], "time": (one.times[0] if one.times else "")[:60]}


def entries(store: ReadStore, source: int) -> list[dict[str, str | int]]:
    """All entries that the kept versions of a feed had, those of the newest first; each with the version it came in."""
    found: dict[str, dict[str, str | int]] = {}
    for version in store.versions(source)[:VERSIONS]:
        copy = store.copy(source, version)
        try:
            feed = read_feed(copy.body.data, repair=True) if copy is not None else None
        except InputError:
            continue
        for one in () if feed is None else feed.entries:
            name = next(iter((*one.id, *one.link, *one.title)), "")
            if name in found:
                found[name]["version"] = version
            elif len(found) < MOST:
                found[name] = {**entry_of(one), "version": version}
    return list(found.values())
