"""The entries of a feed as a reader wants them: by a name that lasts, with a title, a link that is one, and a digest.

Rules of this file:
1. What strangers wrote is text; only an address of the web is told as a link.
2. An entry has one name in all versions of its feed: its id, else its link, else its title, else all that it says.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING

from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.html_text import html_text

if TYPE_CHECKING:
    from unstale.feeds import FeedEntry

#: entries of one feed that are kept: beyond so many, those that were seen first go first
MOST_ENTRIES = 5_000
#: characters of a title, of a link and of a date
TITLE, LINK, DATE = 300, 2000, 60
#: bytes of a name and of a digest
SIZE = 16


@dataclass(frozen=True, slots=True)
class ToldEntry:
    """An entry as one version of its feed tells it; `digest` is another one when anything of it was edited."""

    name: bytes
    digest: bytes
    title: str
    link: str
    time: str


def entry_of(one: FeedEntry) -> dict[str, str]:
    """An entry as it is shown: a title, a link if it is one of the web, when it says it is from.

    >>> from unstale.feeds import FeedEntry
    >>> entry_of(FeedEntry(title=("<b>New</b>",), link=("javascript:alert(1)",)))
    {'title': 'New', 'link': '', 'time': ''}
    """
    shown = _text(" ".join(one.title)) or _text(" ".join(one.content[:1])[:4096]) or " ".join(one.id)
    link = next((link for link in one.link if link.lower().startswith(("http://", "https://"))), "")
    told = {"title": shown[:TITLE], "link": link[:LINK], "time": (one.times[0] if one.times else "")[:DATE]}
    return {name: _whole(text) for name, text in told.items()}


def told_entries(data: bytes) -> tuple[ToldEntry, ...]:
    """The entries of a feed in its own order, each once, `MOST_ENTRIES` at most; none if it is no feed.

    >>> feed = b"<rss><channel><item><guid>7</guid><title>New</title></item></channel></rss>"
    >>> [one.title for one in told_entries(feed)]
    ['New']
    """
    from unstale.feeds import read_feed  # every command loads this file, few read feeds

    try:
        every = read_feed(data, repair=True).entries
    except InputError:
        return ()
    # An id that entries with several links share says nothing: they are told apart by these.
    shared: dict[str, set[tuple[str, ...]]] = {}
    for one in every:
        shared.setdefault(_said(one), set()).add(one.link or one.title)
    found: dict[bytes, ToldEntry] = {}
    for one in every:
        said = _said(one)
        alone = said and len(shared[said]) == 1
        name = _hash(said if alone else [said, one.link or one.title or one.content])
        if name not in found and len(found) < MOST_ENTRIES:
            digest = _hash([one.link, one.title, one.content, one.times])
            found[name] = ToldEntry(name, digest, **entry_of(one))
    return tuple(found.values())


def _said(one: FeedEntry) -> str:
    """What an entry calls itself."""
    return next(iter((*one.id, *one.link, *one.title)), "")


def _text(markup: str) -> str:
    """What a reader sees of it; most titles have no markup at all."""
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    return " ".join(html_text(markup.encode("utf-8", "replace")))


def _whole(text: str) -> str:
    """Text as every store takes it: no NUL, no lone surrogates."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _hash(said: object) -> bytes:
    return blake2b(json.dumps(said).encode(), digest_size=SIZE).digest()
