"""What miniflux and FreshRSS write into OPML beyond what OPML knows, in attributes of their own.

Rules of this file:
1. What we have a word for is taken over: feeds that are switched off, pages and JSON that are read by XPath or a path.
2. Of the rest the names are told, never the values: among them are cookies, headers and proxies with passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MINIFLUX, FRESHRSS = "miniflux:", "frss:"
#: types of FreshRSS that are no feeds: their list of items counts, and where it is found
_PAGES = {"HTML+XPath": "frss:xPathItem", "JSON+DotNotation": "frss:jsonItem"}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def taken(own: Mapping[str, str]) -> tuple[dict[str, Any], set[str]]:
    """What else is said of an outline: fields of a source, and the names of what is left.

    >>> taken({"xmlUrl": "https://a/", "miniflux:disabled": "true", "miniflux:scraperRules": "p"})
    ({'paused': True}, {'scraperRules of miniflux'})
    >>> taken({"type": "JSON+DotNotation", "frss:jsonItem": "data.items[2]"})[0]
    {'kind': '', 'normalise': {'keep_pointers': ['/data/items/2']}}
    """
    fields: dict[str, Any] = {}
    read = set()
    if own.get("miniflux:disabled", "").lower() in ("true", "1"):
        fields["paused"] = True
        read.add("miniflux:disabled")
    kind = own.get("type", "").strip()
    if "+XPath" in kind or "+DotNotation" in kind:
        fields["kind"] = ""
        items = own.get(_PAGES.get(kind, ""), "").strip()
        if items:
            way = ("xpath", items) if kind == "HTML+XPath" else ("keep_pointers", _pointer(items))
            fields["normalise"] = {way[0]: [way[1]]}
            read.add(_PAGES[kind])
    left = {name for name, value in own.items() if name.startswith((MINIFLUX, FRESHRSS)) and value and name not in read}
    return fields, {_told(name) for name in left if own[name].lower() != "false"}


def _told(name: str) -> str:
    mine, _, what = name.partition(":")
    return f"{what} of {'miniflux' if mine == 'miniflux' else 'FreshRSS'}"


def _pointer(path: str) -> str:
    """A JSON pointer from names with dots and numbers in brackets."""
    steps = [name or number for name, number in _STEP.findall(path)]
    return "".join("/" + one.replace("~", "~0").replace("/", "~1") for one in steps)
