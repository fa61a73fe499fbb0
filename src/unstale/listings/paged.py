"""Which collections come in pages, and which tell only what is new: what looks and what listens go by this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: forms that come in pages by themselves
_PAGED = frozenset({"objects", "changes", "changelog", "digest"})


def followed(options: Mapping[str, Any]) -> bool:
    """Whether one look goes through pages, so that what is kept is what they say together.

    >>> followed({"collection": "changes"}), followed({"collection": "table", "next": "then"}), followed({})
    (True, True, False)
    """
    form = options.get("collection")
    return form in _PAGED or (form == "table" and bool(options.get("next") or options.get("since")))


def only_new(options: Mapping[str, Any]) -> bool:
    """Whether a listing shows only what is new, so that whom it does not show is not gone.

    >>> only_new({"collection": "feed"}), only_new({"collection": "table", "since": "updated_since"}), only_new({})
    (True, True, False)
    """
    return options.get("collection") in ("feed", "changes", "changelog") or bool(options.get("since"))


def goes_on(options: Mapping[str, Any]) -> bool:
    """Whether a look leaves the point from which on the next one asks: forgotten, something would be missed.

    >>> goes_on({"collection": "changes"}), goes_on({"collection": "feed"}), goes_on({"collection": "sitemap"})
    (True, False, False)
    """
    return followed(options) and only_new(options)


def scrolls(options: Mapping[str, Any]) -> bool:
    """Whether a listing shows only its last entries: what came before them is lost if nobody looked in time."""
    return options.get("collection") == "feed"
