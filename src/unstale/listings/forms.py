"""Which form a listing has, as far as its address tells."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from unstale.kinds import KINDS

_FORMS = (
    ("sitemap", re.compile(r"sitemap|\.xml(\.gz)?$")),
    ("feed", re.compile(r"feed|rss|atom")),
    ("table", re.compile(r"\.(csv|tsv|jsonl?|ndjson)(\.gz)?$")),
    ("debian", re.compile(r"/(Packages(\.gz|\.xz)?|InRelease|Release)$")),
    ("refs", re.compile(r"\.git/?$|/info/refs$")),
    ("changes", re.compile(r"/_changes$")),
    ("simple", re.compile(r"/simple/?$")),
    ("changelog", re.compile(r"/(RPC2|xmlrpc)/?$", re.IGNORECASE)),
    ("digest", re.compile(r"/digest$")),
    ("index", re.compile(r"/$")),
)


def form_of(address: str) -> str:
    """The form of the listing at an address; a sitemap where nothing tells. Places off the web have their own.

    >>> [form_of(f"https://example.org/{at}") for at in ("sitemap.xml", "blog/atom.xml", "pub/", "all.csv", "list")]
    ['sitemap', 'feed', 'index', 'table', 'sitemap']
    >>> form_of("s3://bucket/logs/"), form_of("postgresql://db.example.org/shop"), form_of("https://example.org/a.git")
    ('folder', 'catalogue', 'refs')
    """
    scheme = address.partition("://")[0].partition("+")[0].lower()
    if scheme in KINDS["file"].schemes:
        return "folder"
    if scheme in KINDS["sql"].schemes:
        return "catalogue"
    path = urlsplit(address).path
    last = path.rpartition("/")[2].lower()
    if "sitemap" not in last and _FORMS[1][1].search(last):
        return "feed"
    return next((form for form, shape in _FORMS if shape.search(path)), "sitemap")
