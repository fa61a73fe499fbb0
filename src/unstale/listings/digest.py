"""What another Unstale tells of its copies (`/digest`): each is a member, by the SHA-256 of its content."""

from __future__ import annotations

import json
from urllib.parse import quote, urlsplit

from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker


def read_digest(data: bytes, to: Taker) -> None:
    """A line of JSON for each copy, after one that says where to go on; members are the copies as they are served.

    >>> from unstale.listings.readers import read_listing
    >>> lines = b'{"replica": "a", "next": null}\\n{"source": "https://example.org/", "sha256": "e3b0"}\\n'
    >>> entry, = read_listing("digest", lines, "https://replica.example/digest", now=2e9).entries
    >>> entry.address, entry.tag
    ('https://replica.example/copy?source=https%3A%2F%2Fexample.org%2F', 'e3b0')
    """
    place = urlsplit(to.base)
    # It may be served below a path.
    copies = f"{place.scheme}://{place.netloc}{place.path.rpartition('/')[0]}/copy?source="
    for line in unpacked(data).decode("utf-8", "replace").splitlines():
        try:
            told = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict):
            to.refused["no row"] += 1
        elif isinstance(told.get("source"), str) and isinstance(told.get("sha256"), str):
            if not to.take(copies + quote(told["source"], safe=""), None, told["sha256"]):
                return
        elif told.get("next") is not None:
            to.cursor = str(told["next"])[:4096]
