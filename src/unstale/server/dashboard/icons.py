"""The icons of sites beside their sources, where the settings ask for them.

Rules of this file:
1. A browser asks us and nobody else; what it is given are bytes that are a small picture, with that as their type.
2. Nobody waits: an icon that is not known yet is fetched while a blank one is shown, and one at a time.
3. They go the way of every poll, through the same gate; each is asked for once a day at most, and kept in memory alone.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from starlette.responses import Response

from unstale.feed_links import icon_of
from unstale.html_text import is_html
from unstale.ports import Listing
from unstale.secrecy import as_written
from unstale.server.dashboard.sniffed import picture_type
from unstale.server.dashboard.trials import Tries
from unstale.server.endpoints import NOT_KEPT, Call, Endpoint, Refused
from unstale.service import FleetService

#: bytes of an icon, and seconds that one may take
LARGEST, SECONDS = 2**16, 10
#: icons that are kept, those that may wait to be fetched, and seconds until one is asked for anew
KEPT, WAITING, LASTING = 512, 200, 86_400.0
#: one pixel that is seen through
_BLANK = bytes.fromhex("4749463839610100010080000000000000000021f90401000000002c00000000010001000002024401003b")
_POLICY = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class Icon(NamedTuple):
    """What came of asking for an icon: its bytes and their type, nothing if there is none; and when."""

    data: bytes
    media_type: str
    at: float


class Icons:
    """Does what the table says."""

    def __init__(self, service: FleetService, tries: Tries) -> None:
        self._service, self._tries = service, tries
        self._places: OrderedDict[int, str] = OrderedDict()
        self._known: OrderedDict[str, Icon] = OrderedDict()
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._work: asyncio.Task[None] | None = None

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        place = "/dashboard/sources/{source}/icon"
        return [Endpoint("GET", place, self.icon, "The icon of a source's site, blank until it is known.")]

    async def icon(self, call: Call) -> Any:
        """What is known of it now."""
        if (place := self._places.get(call.source)) is None:
            place = await asyncio.to_thread(self._place, call.source)
            _keep(self._places, call.source, place, 8 * KEPT)
        known = self._known.get(place)
        if place and (known is None or time.monotonic() - known.at > LASTING) and len(self._waiting) < WAITING:
            self._waiting[place] = None
            if self._work is None or self._work.done():
                self._work = asyncio.create_task(self._ask())
        if known is None or not known.data:
            return _sent(_BLANK, "image/gif", 0 if place and known is None else 3600)
        return _sent(known.data, known.media_type, 3600)

    def _place(self, source: int) -> str:
        """Where the icon of a source's site is: where its page says, at the same host; or where all are by custom."""
        found = self._service.store.listings([source])
        if not found:
            raise Refused(404, f"there is no source {source}")
        address = as_written(found[0].address)
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https"):
            return ""
        usual = urljoin(address, "/favicon.ico")
        copy = self._service.store.copy(source)
        if copy is None or not is_html(copy.body.media_type):
            return usual
        said = icon_of(copy.body.data, address)
        return said if said and urlsplit(said)[:2] == parts[:2] else usual

    async def _ask(self) -> None:
        """Ask for those that wait, one after the other."""
        while self._waiting:
            place, _ = self._waiting.popitem(last=False)
            listing = Listing(place, "http", options={"limit": LARGEST, "timeout": SECONDS})
            body = (await self._tries.look(listing)).body or b""
            kind = picture_type(body) if len(body) <= LARGEST else None
            _keep(self._known, place, Icon(body if kind else b"", kind or "", time.monotonic()), KEPT)


def _keep(into: OrderedDict[Any, Any], name: object, value: object, most: int) -> None:
    """Keep one more, and of too many the newest."""
    into[name] = value
    while len(into) > most:
        into.popitem(last=False)


def _sent(data: bytes, media_type: str, seconds: int) -> Response:
    lasting = {"Cache-Control": f"private, max-age={seconds}"} if seconds else {}
    return Response(data, headers={**NOT_KEPT, **_POLICY, **lasting, "Content-Type": media_type})
