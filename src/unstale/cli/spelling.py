"""The one spelling of an address, and what no source may be listed with: the rules of the adapters, for lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from unstale.adapters.addresses import web_address
from unstale.adapters.normalise import Normaliser
from unstale.adapters.store_checks import LONGEST_ADDRESS, check_listings
from unstale.errors import InputError, require
from unstale.ports import Listing

_WEB = ("http", "feed")
#: visible ASCII without the colon that ends a name
_HEADER = re.compile(r"[!-9;-~]+")
_NORMALISE = {"selectors": list, "pointers": list, "whitespace": bool}


def spelled(address: str, kind: str, options: Mapping[str, Any]) -> str:
    """The address as it is polled and stored; InputError for an address or options that no store would take.

    >>> spelled("HTTPS://Bücher.example", "http", {})
    'https://xn--bcher-kva.example/'
    """
    if kind in _WEB:
        found = web_address(address).text
        # Nothing else that the store refuses has got so far; written out in ASCII it may be longer than before.
        if len(found) > LONGEST_ADDRESS:
            checked_address(found)
    else:
        checked_address(found := address)
    if options:
        checked_options(options)
    return found


def checked_address(address: str) -> None:
    """Refuse control characters, passwords in clear, and addresses without end."""
    _store_takes(Listing(address))


def checked_options(options: Mapping[str, Any]) -> None:
    """Refuse secrets in clear, headers that are not text, and rules of comparison that cannot be followed."""
    headers = options.get("headers", {})
    require(
        isinstance(headers, Mapping) and all(isinstance(value, str) for value in headers.values()),
        "options.headers",
        "given",
        "must be a table of texts",
        "write numbers in quotes",
    )
    for name, value in headers.items():
        require(
            _HEADER.fullmatch(name) and value.isascii() and value.isprintable(),
            f"options.headers.{name[:40]!a}",
            "given",
            "must be printable ASCII",
            "check its name and value",
        )
    _store_takes(Listing("memory://", options=options))
    normalise = options.get("normalise", {})
    require(
        isinstance(normalise, Mapping)
        and all(name in _NORMALISE and isinstance(value, _NORMALISE[name]) for name, value in normalise.items()),
        "options.normalise",
        "given",
        "may hold lists of selectors and pointers, and whitespace = true or false",
        "use these",
    )
    Normaliser(**normalise)


def _store_takes(listing: Listing) -> None:
    try:
        check_listings([listing], 0.0, "refuse")
    except InputError as error:
        raise InputError(str(error).removeprefix("listings[0].")) from None
