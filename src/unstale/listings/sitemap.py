"""Sitemaps with dates, and sitemaps of sitemaps."""

from __future__ import annotations

from unstale.listings.markup import walk
from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker


def read_sitemap(data: bytes, to: Taker) -> None:
    """Every <url> with its <lastmod>; every <sitemap> of an index is another listing.

    >>> from unstale.listings.readers import read_listing
    >>> text = b"<urlset><url><loc>https://example.org/a</loc><lastmod>2024-05-01</lastmod></url></urlset>"
    >>> read_listing("sitemap", text, "https://example.org/sitemap.xml", now=2e9).entries[0].time
    1714521600.0
    """
    own: dict[str, str] = {}

    def end(path: list[str], text: str) -> bool:
        name, where = path[-1], path[-2] if len(path) > 1 else ""
        if name in ("loc", "lastmod") and where in ("url", "sitemap"):
            own[name] = text
        elif name in ("url", "sitemap"):
            address, when = own.pop("loc", ""), own.pop("lastmod", None)
            if name == "sitemap":
                to.inner(address)
            else:
                return to.take(address, when)
        return True

    walk(unpacked(data), end, "sitemap")
