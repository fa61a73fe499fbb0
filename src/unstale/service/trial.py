"""What a poll of something that is not listed yet would bring, told before anything is saved.

Rules of this file:
1. Nothing is kept, and nothing is learned: it is one look, not a poll of a source.
2. What strangers wrote is told as text, and little of it.
"""

from __future__ import annotations

import json
from typing import Any

from unstale.errors import InputError
from unstale.feed_links import advertised, meant_as_feed
from unstale.feeds import read_feed
from unstale.html_text import html_text, html_title, is_html, is_json
from unstale.listings.feed_entries import entry_of
from unstale.ports import Fetched
from unstale.secrecy import shown_address
from unstale.service.difference import lines_of, readable

#: lines and entries that are told, and characters of a line
LINES, ENTRIES, LINE = 30, 20, 300


def trial(fetched: Fetched) -> dict[str, Any]:
    """What came: as what it would be kept, what it is called, its feeds, and how it begins."""
    told: dict[str, Any] = {
        "reason": fetched.reason,
        "address": shown_address(fetched.address),
        "media_type": fetched.media_type[:200],
        "size": 0 if fetched.body is None else len(fetched.body),
        "kind": "http",
        "title": "",
        "feeds": [],
        "entries": [],
        "lines": [],
    }
    body = fetched.body
    if body is None:
        return told
    if meant_as_feed(body):
        try:
            entries = [entry_of(one) for one in read_feed(body, repair=True).entries[:ENTRIES]]
            return told | {"kind": "feed", "title": html_title(body), "entries": entries}
        except InputError as error:
            return told | {"kind": "feed", "reason": str(error)[:1000]}
    if is_html(fetched.media_type):
        told |= {"title": html_title(body), "feeds": [shown_address(one) for one in advertised(body, fetched.address)]}
        lines = html_text(body)
    elif is_json(fetched.media_type):
        lines = _indented(body)
    else:
        lines = lines_of(body)[0] if readable(body, fetched.media_type) else []
    return told | {"lines": [line[:LINE] for line in lines[:LINES]]}


def _indented(body: bytes) -> list[str]:
    try:
        return json.dumps(json.loads(body), indent=1, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        return lines_of(body)[0]
