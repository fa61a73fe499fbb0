"""What an address alone says about its source: what kind it is, and who else is at the same host."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urlsplit

from unstale.errors import InputError, sentence
from unstale.kinds import KINDS, NAMES

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_FEED = re.compile(r"[^?#]*(\.(rss|atom)|/(feed|rss|atom)\.xml|[^/:]/feed/?)([?#]|$)", re.IGNORECASE)
#: how addresses begin that are nearly all
_WEB = tuple(f"{scheme}://" for scheme in KINDS["http"].schemes)
_HOST = re.compile(r"[^/?#]*?://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)")


def kind_of(address: str) -> str:
    """The kind of source at an address, by its scheme and ending.

    >>> [kind_of(a) for a in ("https://example.org/", "https://example.org/news.rss", "s3://a/b", "mysql+pymysql://h/d")]
    ['http', 'feed', 'file', 'sql']
    >>> [kind_of(f"https://example.org/{a}") for a in ("feed/", "blog/rss.xml?all", "feedback", "?q=/feed")]
    ['feed', 'feed', 'http', 'http']
    """
    if not address.startswith(_WEB):
        found = _SCHEME.match(address)
        if found is None:
            shown = repr(address[:80])
            raise InputError(sentence("address", shown, "has no scheme", "write it like https://example.org/news"))
        scheme = found[1].lower()
        kind = _kind_with(scheme)
        if kind is None:
            raise InputError(
                sentence(
                    "address",
                    f"with scheme {scheme[:20]!r}",
                    "is of no known kind",
                    f"name its kind, one of {', '.join(NAMES)}",
                )
            )
        if kind != "http":
            return kind
    # To look for some words takes a tenth of what the pattern takes, and of what a loop over them takes a third.
    low = address.casefold()
    hinted = ".rss" in low or ".atom" in low or "/feed" in low or "/rss.xml" in low or "/atom.xml" in low
    return "feed" if hinted and _FEED.match(address) else "http"


@lru_cache(maxsize=256)
def _kind_with(scheme: str) -> str | None:
    return next((kind.name for kind in KINDS.values() if kind.takes(scheme)), None)


def host_of(address: str) -> str:
    """The host in an address, without port and user; for objects the bucket, and nothing for local files.

    >>> host_of("https://me@Example.org:8443/a"), host_of("http://[::1]/"), host_of("s3://bucket/key"), host_of("file:///a")
    ('example.org', '::1', 'bucket', '')
    """
    # Lists have many addresses at each host: what comes behind it tells nothing of it.
    end = address.find("/", address.find("://") + 3)
    return _host_before_path(address if end < 0 else address[:end])


@lru_cache(maxsize=65536)
def _host_before_path(place: str) -> str:
    found = _HOST.match(place)
    return found[1].strip("[]").lower() if found else ""


def without_secrets(address: str) -> str:
    """Where an address points to, without who asks and with what: as it may be shown.

    >>> without_secrets("postgresql://me:s3cret@db:5432/fleet?password=x")
    'postgresql://db:5432/fleet'
    """
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
