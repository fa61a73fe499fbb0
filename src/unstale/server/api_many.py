"""The part of the API that is about many sources at once: hints, edits and removals by id, address or search."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from unstale.server import models
from unstale.server.endpoints import Call, Endpoint
from unstale.service import FleetService
from unstale.service.saved import SavedSearch


class ManySources:
    """Does what the table says; `editing` is held by whoever changes sources."""

    def __init__(self, service: FleetService, editing: asyncio.Lock) -> None:
        self._service, self._editing = service, editing

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        return [
            Endpoint(
                "POST",
                "/api/v1/hints",
                self.hints,
                "Say that sources may have changed, by id or address.",
                models.HINTED_AT,
                202,
                takes=models.WHICH,
            ),
            Endpoint(
                "POST",
                "/api/v1/edits",
                self.edits,
                "Change what is said of many sources, by id, address or search: the same for each, and their tags.",
                models.EDITED,
                takes=models.EDITS,
            ),
            Endpoint(
                "GET",
                "/api/v1/searches",
                self.searches,
                "The searches that were saved under a name.",
                models.SEARCHES,
            ),
            Endpoint(
                "PUT",
                "/api/v1/searches",
                self.save_searches,
                "Save searches in place of those that were.",
                models.SEARCHES,
                takes=models.SEARCHES,
            ),
            Endpoint(
                "POST",
                "/api/v1/removals",
                self.removals,
                "Forget sources, by id or address, all at once.",
                models.REMOVED,
                takes=models.WHICH,
            ),
        ]

    async def edits(self, call: Call) -> Any:
        """Change many alike; those that are not listed are counted."""
        body = call.body
        more, less, changes = body.get("add_tags", []), body.get("remove_tags", []), body.get("changes")

        def do() -> Any:
            ids, unknown = self._which(body)
            if ids and changes:
                self._service.edit(ids, changes)
            if ids and (more or less):
                self._service.tag(ids, more, less)
            return {"edited": len(ids), "unknown": unknown}

        async with self._editing:
            return await asyncio.to_thread(do)

    async def removals(self, call: Call) -> Any:
        """Forget many; those that are not listed are counted: what was to be gone is."""

        def do() -> Any:
            ids, unknown = self._which(call.body)
            return {"removed": self._service.remove(ids) if ids else 0, "unknown": unknown}

        async with self._editing:
            return await asyncio.to_thread(do)

    async def hints(self, call: Call) -> Any:
        """Make many due; those that are not listed are counted, not refused: a hub knows more than we follow."""

        def do() -> Any:
            ids, unknown = self._which(call.body)
            if ids:
                self._service.hint(ids)
            return {"hinted": len(ids), "unknown": unknown}

        return await asyncio.to_thread(do)

    async def searches(self, _: Call) -> Any:
        """Those that were saved."""
        return {"searches": [asdict(one) for one in await asyncio.to_thread(self._service.searches)]}

    async def save_searches(self, call: Call) -> Any:
        """Others in their place."""
        made = [SavedSearch(**one) for one in call.body["searches"]]
        await asyncio.to_thread(self._service.save_searches, made)
        return {"searches": [asdict(one) for one in made]}

    def _which(self, body: Any) -> tuple[list[int], int]:
        """The sources that are named by id or address, and how many of the names are nobody's."""
        addresses, numbers = body.get("addresses", []), {int(source) for source in body.get("sources", [])}
        found = [self._service.store.find(address) for address in addresses]
        there = [one.id for one in self._service.store.listings(sorted(numbers))]
        sought = self._service.found(body["search"]) if "search" in body else []
        ids = sorted({*there, *sought, *(source for source in found if source is not None)})
        return ids, len(numbers) - len(there) + found.count(None)
