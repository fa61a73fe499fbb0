"""Polling feeds over the web: what counts is their entries, and the entries tell when the feed changed.

A page where a feed should be is a failure: its reason names the feeds that the page advertises.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from unstale.adapters.feed_content import feed_times
from unstale.addresses import host_of
from unstale.errors import InputError
from unstale.feed_links import advertised
from unstale.keeper.outcomes import Answer
from unstale.ports import Aside, Fetched, Fetcher, Request
from unstale.secrecy import shown_address

#: a feed of so many bytes is read in milliseconds, whatever is in it
SMALL = 4096
#: feeds of a page that a reason names
_SHOWN = 2


class FeedFetcher:
    """Looks at feeds (RSS, Atom, JSON Feed) through `inner`, which fetches their bodies, and reads entries' times.

    `changed_at` has every time at which an entry says it was published or edited, as far as a feed can be believed;
    those since the last look are the changes it missed. Where no entry tells one, it stays what `inner` told.
    Feeds are read in `aside`, where they can be ended; without it in a thread.
    """

    def __init__(self, inner: Fetcher, aside: Aside | None = None) -> None:
        self._inner, self._aside = inner, aside

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        fetched = await self._inner.fetch(request)
        if fetched.body is None:
            return fetched
        try:
            times = await self._times(fetched.body, fetched.polled_at)
        except InputError as error:
            return replace(fetched, answer=Answer.FAILED, body=None, reason=str(error))
        if times is None:
            return _no_feed(fetched, request.address)
        return replace(fetched, changed_at=tuple(times)) if times else fetched

    async def _times(self, body: bytes, now: float) -> list[float] | None:
        if len(body) <= SMALL:
            return feed_times(body, now)
        if self._aside is None:
            return await asyncio.to_thread(feed_times, body, now)
        return await self._aside.run(feed_times, body, now)

    async def close(self) -> None:
        """Close `inner`."""
        await self._inner.close()


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
