"""Pages and their feeds: whether a body is meant as a feed at all, and which feeds a page advertises.

Only the beginning is looked at, by patterns that take time in proportion to it, whatever it holds.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin

from unstale.secrecy import as_written

#: bytes in which a feed's first element, and the head of a page, are
_BEGINNING = 2**18
#: feeds that are told of one page
MOST_FEEDS = 20
_FIRST = re.compile(rb"<(?![?!])\s*(?:[\w.-]{1,40}:)?([\w.-]{1,40})")
_ITEMS = re.compile(rb'"items"\s*:\s*\[')
_ROOTS = (b"rss", b"rdf", b"feed")
_LINK = re.compile(r"<link\b([^>]{0,4000})>", re.IGNORECASE)
_BASE = re.compile(r"<base\b([^>]{0,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z-]{1,40})\s*=\s*("[^"]{0,4000}"|'[^']{0,4000}'|[^\s"'>]{1,4000})""")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml")


def meant_as_feed(body: bytes) -> bool:
    """Whether a body begins as RSS, Atom or JSON Feed does, broken or not.

    >>> meant_as_feed(b"<?xml version='1.0'?><rss>&oops;"), meant_as_feed(b"<!doctype html><html>")
    (True, False)
    """
    begin = body[:_BEGINNING].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin[:1] == b"{":
        return bool(_ITEMS.search(begin))
    # In UTF-16 every other byte is none.
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
        begin = begin.replace(b"\x00", b"")
    first = _FIRST.search(re.sub(rb"<!--.*?(?:-->|\Z)", b"", begin, flags=re.DOTALL))
    return first is not None and first[1].lower() in _ROOTS


def advertised(body: bytes, address: str, ours: str = "") -> list[str]:
    """The addresses of feeds that the page at `address` says it has, in its order.

    Nothing is filled into them but what our own address of the page, `ours`, names.

    >>> advertised(b"<link rel=alternate type='application/rss+xml' href='/feed?a=1&amp;b=2'>", "https://example.org/x")
    ['https://example.org/feed?a=1&b=2']
    """
    found: list[str] = []
    for own, at in _links(body, address):
        kind = own.get("type", "").lower().partition(";")[0].strip()
        if "alternate" in own.get("rel", "").lower().split() and kind in _TYPES:
            found.append(at)
    web = (as_written(one, ours) for one in found if one.startswith(("http://", "https://")))
    return list(dict.fromkeys(web))[:MOST_FEEDS]


def icon_of(body: bytes, address: str) -> str:
    """The address of the icon that the page at `address` says it has, or nothing; drawings are left out.

    >>> icon_of(b"<link rel='shortcut icon' href=/i.png><link rel=icon href=/b.ico>", "https://example.org/x")
    'https://example.org/i.png'
    """
    for own, at in _links(body, address):
        drawn = "svg" in own.get("type", "").lower() or at.partition("?")[0].lower().endswith(".svg")
        if "icon" in own.get("rel", "").lower().split() and not drawn and at.startswith(("http://", "https://")):
            return as_written(at)
    return ""


def _links(body: bytes, address: str) -> Iterator[tuple[dict[str, str], str]]:
    """What the links of a page say, and where they lead."""
    text = _COMMENT.sub("", body[:_BEGINNING].decode("utf-8", "replace"))
    if base := _BASE.search(text):
        address = _joined(address, _attributes(base[1]).get("href", ""))
    for link in _LINK.finditer(text):
        own = _attributes(link[1])
        if own.get("href"):
            yield own, _joined(address, own["href"])


def _joined(base: str, place: str) -> str:
    try:
        return urljoin(base, place)
    except ValueError:
        return ""


def _attributes(text: str) -> dict[str, str]:
    return {name.lower(): html.unescape(value.strip("\"'")).strip() for name, value in _ATTRIBUTE.findall(text)}
