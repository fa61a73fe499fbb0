"""Polling feeds over the web: what counts is their entries, and the entries tell when the feed changed.

A page where a feed should be is a failure: its reason names the feeds that the page advertises.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from unstale.addresses import host_of
from unstale.errors import InputError
from unstale.feed_links import advertised, meant_as_feed
from unstale.feeds import FeedEntry, read_feed
from unstale.keeper.outcomes import Answer
from unstale.moments import moment
from unstale.ports import Fetched, Fetcher, Request
from unstale.secrecy import shown_address

#: entries beyond this many tell no times: what is so long is an archive, and its news are on top
MOST_TIMED = 2_000
#: feeds of a page that a reason names
_SHOWN = 2
_LONGEST_TIME = 80
#: the first feed was written in 1999: an entry older than this has no date, only a zero where one belongs
_FIRST = 631_152_000.0


class FeedFetcher:
    """Looks at feeds (RSS, Atom, JSON Feed) through `inner`, which fetches their bodies, and reads entries' times.

    `changed_at` has every time at which an entry says it was published or edited, as far as a feed can be believed;
    those since the last look are the changes it missed. Where no entry tells one, it stays what `inner` told.
    """

    def __init__(self, inner: Fetcher) -> None:
        self._inner = inner

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        fetched = await self._inner.fetch(request)
        if fetched.body is None:
            return fetched
        # In a thread, for a hostile feed may take a second.
        times = await asyncio.to_thread(_times, fetched.body, fetched.polled_at)
        if times is None:
            return _no_feed(fetched, request.address)
        return replace(fetched, changed_at=times) if times else fetched

    async def close(self) -> None:
        """Close `inner`."""
        await self._inner.close()


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


def _no_feed(fetched: Fetched, address: str) -> Fetched:
    """The answer that something else than a feed is, and what may have been meant."""
    there = advertised(fetched.body or b"", fetched.address or address)[:_SHOWN]
    meant = f"add {' or '.join(map(shown_address, there))} instead" if there else "list it as kind http"
    return Fetched(
        Answer.FAILED,
        fetched.polled_at,
        reason=f"{host_of(address) or 'it'}: it is no feed (RSS, Atom or JSON Feed), {meant}",
        status=fetched.status,
        address=fetched.address,
        received=fetched.received,
    )


def _times(body: bytes, now: float) -> tuple[float, ...] | None:
    """When entries were published or edited, rising: not after now, and only where the zone is known.

    None if it is no feed, which is more than a broken one.
    """
    try:
        entries = read_feed(body, repair=True).entries
    except InputError:
        return () if meant_as_feed(body) else None
    found = {moment(text) for entry in entries[:MOST_TIMED] for text in entry.times[:4] if len(text) <= _LONGEST_TIME}
    return tuple(sorted({when for when, zoneless in found if _FIRST <= when <= now and not zoneless}))
