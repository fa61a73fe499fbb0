"""What counts in a feed, and when it says that it changed."""

from __future__ import annotations

import json

from unstale.errors import InputError
from unstale.feed_links import meant_as_feed
from unstale.feeds import FeedEntry, read_feed
from unstale.moments import moment

#: entries beyond this many tell no times: what is so long is an archive, and its news are on top
MOST_TIMED = 2_000
_LONGEST_TIME = 80
#: the first feed was written in 1999: an entry older than this has no date, only a zero where one belongs
_FIRST = 631_152_000.0


def feed_content(body: bytes, media_type: str = "") -> bytes:
    """What counts in a feed: its entries, one line each, in the order of their ids; the body if it is no feed.

    Build times, generators, comment counts and the order of entries do not count, so they make no change.

    >>> feed_content(b"<rss><channel><ttl>9</ttl><item><guid>7</guid><title>New</title></item></channel></rss>")
    b'[["7"],[],["New"],[],[]]'
    """
    try:
        entries = read_feed(body, repair=True).entries
    except InputError:
        return body
    return "\n".join(sorted(map(_line, entries))).encode()


def _line(entry: FeedEntry) -> str:
    fields = (entry.id, entry.link, entry.title, entry.content, entry.times)
    return json.dumps(fields, separators=(",", ":"))


def feed_times(body: bytes, now: float) -> list[float] | None:
    """When entries were published or edited, rising: not after now, and only where the zone is known.

    None if it is no feed, which is more than a broken one.
    """
    try:
        entries = read_feed(body, repair=True).entries
    except InputError:
        return [] if meant_as_feed(body) else None
    found = {moment(text) for entry in entries[:MOST_TIMED] for text in entry.times[:4] if len(text) <= _LONGEST_TIME}
    return sorted({when for when, zoneless in found if _FIRST <= when <= now and not zoneless})
