"""What `unstale add` looks at once on the web: lists, feeds that pages advertise, sitemaps that sites name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from unstale.cli.settings import Settings
from unstale.errors import InputError, require, sentence
from unstale.secrecy import shown_address

if TYPE_CHECKING:
    from unstale.ports import Fetched

#: bytes of a list that is got from the web
LIMIT = 2**26


def offered(address: str, settings: Settings) -> list[str]:
    """The sitemaps that the site of a page names in its robots.txt."""
    from urllib.parse import urljoin

    from unstale.listings.offered import sitemaps_in

    return sitemaps_in(_look(urljoin(address, "/robots.txt"), settings).body or b"")


def feeds(address: str, settings: Settings, required: bool) -> list[str]:
    """The address itself if there is a feed, else the feeds that the page there advertises; one if `required`."""
    from unstale.feed_links import advertised, meant_as_feed

    fetched = _look(address, settings)
    if fetched.body is None:
        raise InputError(
            sentence("page", "to discover feeds on", f"cannot be read ({fetched.reason})", "check its address")
        )
    if meant_as_feed(fetched.body):
        return [address]
    found = advertised(fetched.body, fetched.address, address)
    remedy = "give the address of a feed, or list it as a page without --discover"
    require(found or not required, "page", repr(shown_address(address)[:80]), "advertises no feed", remedy)
    return found


def list_at(address: str, settings: Settings) -> bytes:
    """A list on the web, got once."""
    fetched = _look(address, settings)
    if fetched.body is None:
        raise InputError(sentence("list", "on the web", f"cannot be read ({fetched.reason})", "check its address"))
    return fetched.body


def _look(address: str, settings: Settings) -> Fetched:
    """One look at the web, through the same gate as every poll."""
    from unstale.adapters.environment import filled_address
    from unstale.adapters.ways import plain_web
    from unstale.cli.fetchers import means_of
    from unstale.ports import Request

    async def look() -> Fetched:
        fetcher = plain_web(means_of(settings))
        try:
            return await fetcher.fetch(Request(filled_address(address), limit=LIMIT, seconds=settings.http.timeout))
        finally:
            await fetcher.close()

    return asyncio.run(look())
