"""What a poll sends along, and where a redirect leads: the lines of a request, and targets joined with care."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin

from unstale.adapters.addresses import WebAddress, web_address
from unstale.errors import InputError
from unstale.ports import Request

#: longest validator worth sending back
LONGEST_VALIDATOR = 1024
#: sources whose conditions are kept ready for the next poll
PREPARED = 8192
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


def lines(request: Request) -> list[str]:
    """All that is sent along: what the caller wants to say, and the conditions."""
    for name, value in request.headers.items():
        if not _NAME.fullmatch(name) or not _PRINTABLE.fullmatch(value):
            raise InputError(
                f"header {name[:80]!r} must be printable ASCII without line breaks: check its name and value"
            )
    # libcurl reads "name:" as an order to leave the header out.
    own = [f"{name}: {value}" if value else f"{name};" for name, value in request.headers.items()]
    return own + conditions(request.etag, request.last_modified)


@lru_cache(maxsize=PREPARED)
def conditions(etag: str | None, last_modified: str | None) -> list[str]:
    """The lines of a conditional request: most often the same as the last time. Nobody writes to them."""
    made = []
    if etag := validator(etag):
        made.append(f"If-None-Match: {etag}")
    if last_modified := validator(last_modified):
        made.append(f"If-Modified-Since: {last_modified}")
    return made


def validator(text: str | None) -> str | None:
    """A validator as it came, None if it is too odd to be sent back."""
    return text if text and len(text) <= LONGEST_VALIDATOR and text.isascii() and text.isprintable() else None


def target(here: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads; InputError if that is no web address."""
    location = location.replace(" ", "%20")
    # Joining would silently drop line breaks and tabs; they are found before it can.
    web_address(f"http://x/{location}")
    try:
        joined = urljoin(here.text, location)
    except ValueError:
        raise InputError("address is not a web address") from None
    return web_address(joined)
