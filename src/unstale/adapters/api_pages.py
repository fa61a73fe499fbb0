"""From one page of an API to the next: by a Link header, a cursor in the body, an offset or a number.

A page is asked for at the origin of the first one only, because what we send along is meant for that; and never twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from unstale.adapters.addresses import web_address
from unstale.adapters.api_records import at
from unstale.adapters.api_terms import ApiTerms
from unstale.errors import InputError

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,\"]+))*)")
_NEXT = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bnext\b[^\"]*\"|next\b)", re.IGNORECASE)


def with_parameters(address: str, **given: str) -> str:
    """An address with these parameters, in place of those of the same name.

    >>> with_parameters("https://a.example/x?limit=5&q=1", limit="9")
    'https://a.example/x?q=1&limit=9'
    """
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name not in given]
    return urlunsplit(parts._replace(query=urlencode([*kept, *given.items()])))


def first_place(address: str, terms: ApiTerms, since: str = "") -> str:
    """Where reading begins: all of it, or what changed since a time."""
    given = {terms.since: since} if since else {}
    if terms.batch:
        given[terms.size] = str(terms.batch)
    if terms.paging == "number":
        given[terms.number] = "1"
    return with_parameters(address, **given) if given else address


def next_place(here: str, headers: Mapping[str, str], body: Any, terms: ApiTerms, records: int, number: int) -> str:
    """The address of the page after this one, which has so many records and is the `number`th; empty: it was the last.

    >>> next_place("https://a.example/x", {"link": '</x?page=2>; rel="next"'}, {}, ApiTerms(), 5, 1)
    'https://a.example/x?page=2'
    """
    if terms.paging in ("auto", "link") and (found := _linked(headers.get("link", ""))):
        return _near(here, found)
    if terms.paging in ("offset", "number"):
        if records < terms.batch:
            return ""
        if terms.paging == "number":
            return with_parameters(here, **{terms.number: str(number + 1)})
        return with_parameters(here, **{terms.offset: str(number * terms.batch)})
    told = at(body, terms.next) if terms.next and terms.paging in ("auto", "cursor") else None
    if told is None or told is False or told == "":
        return ""
    text = str(told)
    if text.startswith(("http://", "https://", "/", "?")):
        return _near(here, text)
    return with_parameters(here, **{terms.cursor: text})


def _linked(header: str) -> str:
    return next((found[1] for found in _LINK.finditer(header[:16_384]) if _NEXT.search(found[2])), "")


def _near(here: str, told: str) -> str:
    try:
        there = web_address(urljoin(here, told))
    except ValueError:
        raise InputError("its next page has no address of the web") from None
    if there.origin != web_address(here).origin:
        raise InputError("its next page is at another origin, which is not asked: what we send along is not for it")
    return there.text
