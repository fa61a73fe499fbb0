"""Directory listings over HTTP, as Apache, nginx and Python's own server write them."""

from __future__ import annotations

import html
import re

from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker

_LINK = re.compile(
    r"""<a\s(?:[^<>]{0,500}?\s)?href\s*=\s*(?:"([^"<>]{1,2048})"|'([^'<>]{1,2048})')[^<>]{0,500}>""", re.I
)
_TAG = re.compile(r"<[^<>]{0,500}>")
_ENDED = re.compile(r"</a\s{0,99}>", re.I)
#: 2024-05-01 12:30, or 01-May-2024 12:30, with seconds or without
_WHEN = re.compile(r"(\d{4}-\d\d-\d\d|\d\d-[A-Z][a-z]{2}-\d{4})(?:[ T](\d\d:\d\d(?::\d\d)?))?")
_SIZE = re.compile(r"(?:^|\s)(\d{1,18}|\d{1,6}(?:\.\d)?[KMGT])\s*$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: what may stand between a link and the next one
_FARTHEST = 2_000


def read_http_index(data: bytes, to: Taker) -> None:
    """Every file with its time and size; directories are further listings, parents and sorting links are passed over.

    >>> from unstale.listings.readers import read_listing
    >>> row = b'<pre><a href="a.txt">a.txt</a>          01-May-2024 12:30                 7</pre>'
    >>> read_listing("index", row, "https://example.org/files/", now=2e9).entries
    (ListingEntry(address='https://example.org/files/a.txt', time=1714566600.0, tag='2024-05-01 12:30 7', grain=60.0),)
    """
    text = unpacked(data).decode("utf-8", "replace")
    links = list(_LINK.finditer(text))
    for k, found in enumerate(links):
        target = html.unescape(found[1] or found[2])
        if target.startswith(("?", "#", "../", "./..")) or target in ("/", ".", "./", ".."):
            continue
        if target.endswith("/"):
            if to.base.startswith(target) or _above(target, to.base):
                continue
            to.inner(target)
            continue
        end = links[k + 1].start() if k + 1 < len(links) else len(text)
        # What stands in the link is its name, and names have dates in them.
        named = _ENDED.search(text, found.end(), end)
        begin = named.end() if named else found.end()
        rest = _TAG.sub(" ", text[begin : min(end, begin + _FARTHEST)])
        when, size = _WHEN.search(rest), _SIZE.search(html.unescape(rest).rstrip(" \r\n\t-"))
        told = _iso(when) if when else None
        # The size alone is no tag: what was written anew may be as long as before.
        tag = " ".join(part for part in (told, size[1] if size else None) if part)
        if not to.take(target, told, tag or None):
            return


def _above(target: str, base: str) -> bool:
    """Whether an absolute path is a directory above the listing."""
    return target.startswith("/") and base.partition("://")[2].partition("/")[2].startswith(target[1:])


def _iso(when: re.Match[str]) -> str:
    day, clock = when[1], when[2]
    if day[2] == "-":
        month = _MONTHS.index(day[3:6]) + 1 if day[3:6] in _MONTHS else 0
        day = f"{day[7:]}-{month:02d}-{day[:2]}"
    return f"{day} {clock}" if clock else day
