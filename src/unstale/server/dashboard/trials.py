"""What an operator may try before saving it: a look at a new address, and parts of copies that are to count or not.

Rules of this file:
1. Trying changes nothing. It costs a look at a stranger's server, so that only who may write may try, one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from unstale.ports import Fetched, Listing
from unstale.server import shapes
from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.models import NEW
from unstale.server.shapes import record
from unstale.service import FleetService
from unstale.service.noise import tried
from unstale.service.trial import trial


class Tries(Protocol):
    """Whoever can look at something that is not listed, and say what would count of a body."""

    async def look(self, listing: Listing) -> Fetched:
        """One look, through the same gate and within the same limits as a poll; nothing of it is kept."""

    async def counted(self, kind: str, options: Mapping[str, Any], data: bytes, media_type: str) -> str:
        """What would count of a body with these options; InputError where they cannot be."""


class Trials:
    """Does what the table says."""

    def __init__(self, service: FleetService, tries: Tries) -> None:
        self._service, self._tries = service, tries
        self._trying = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        anything: dict[str, Any] = {"type": "object"}
        return [
            Endpoint("POST", "/dashboard/look", self.look, "What a poll would bring.", anything, takes=NEW),
            Endpoint(
                "POST",
                "/dashboard/sources/{source}/trial",
                self.filters,
                "What of the last copies would count, and whether they would still differ.",
                anything,
                takes=record(options=shapes.OPTIONS),
            ),
        ]

    async def look(self, call: Call) -> Any:
        """One look at an address; what is said of it is judged as if it were added."""
        listing = await asyncio.to_thread(self._service.terms.listing, call.body, None)
        async with self._trying:
            fetched = await self._tries.look(listing)
        return await asyncio.to_thread(trial, fetched)

    async def filters(self, call: Call) -> Any:
        """The newest two copies under other options."""
        store = self._service.store
        found = await asyncio.to_thread(store.listings, [call.source])
        if not found:
            raise Refused(404, f"there is no source {call.source}")
        options = {**found[0].options, **call.body["options"]}
        said = {name: value for name, value in options.items() if value is not None}
        listing = replace(found[0], options=said)
        versions = await asyncio.to_thread(store.versions, call.source)
        copies = [await asyncio.to_thread(store.copy, call.source, version) for version in versions[:2]]
        bodies = [copy.body for copy in copies if copy is not None]
        async with self._trying:
            texts = [
                await self._tries.counted(listing.kind, listing.options, one.data, one.media_type) for one in bodies
            ]
        return await asyncio.to_thread(tried, texts[::-1])
