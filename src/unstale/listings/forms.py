"""Which form a listing has, as far as its address tells."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_FORMS = (
    ("sitemap", re.compile(r"sitemap|\.xml(\.gz)?$")),
    ("feed", re.compile(r"feed|rss|atom")),
    ("table", re.compile(r"\.(csv|tsv|jsonl?|ndjson)(\.gz)?$")),
    ("debian", re.compile(r"/Packages(\.gz|\.xz)?$")),
    ("index", re.compile(r"/$")),
)


def form_of(address: str) -> str:
    """The form of the listing at an address; a sitemap where nothing tells.

    >>> [form_of(f"https://example.org/{at}") for at in ("sitemap.xml", "blog/atom.xml", "pub/", "all.csv", "list")]
    ['sitemap', 'feed', 'index', 'table', 'sitemap']
    """
    path = urlsplit(address).path
    last = path.rpartition("/")[2].lower()
    if "sitemap" not in last and _FORMS[1][1].search(last):
        return "feed"
    return next((form for form, shape in _FORMS if shape.search(path)), "sitemap")
