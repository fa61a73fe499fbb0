"""The part of the API that is about sources: list, add, change, remove, look into, hint, poll."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from unstale.errors import InputError, sentence
from unstale.server import models, shapes
from unstale.server.endpoints import GUARDED, IF_MATCH, NOT_KEPT, Call, Endpoint, Refused, Tagged, tag
from unstale.server.shapes import several, stamp, text, whole
from unstale.server.shelf import Asker
from unstale.server.told_sources import ToldSources
from unstale.service import FleetService, documents, history_documents
from unstale.units import DAY, parse_duration

#: sources that one answer lists, and that one request adds
LISTED, ADDED = 1000, 500_000
#: seconds that a request may wait for a poll
PATIENCE = 60.0
_ALL = 2**62
_WAIT = shapes.like(r"[0-5]?[0-9](\.[0-9]{1,3})?s|60s|1min", 10, "10s")


class Sources:
    """Does what the table says."""

    def __init__(self, service: FleetService, asker: Asker | None) -> None:
        self._service, self._asker, self._told = service, asker, ToldSources(service)
        # One edit at a time, so that what a client expects is still so when its change is made.
        self.editing = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        at, one = "/api/v1/sources", "/api/v1/sources/{source}"
        searching = {
            "search": text(500),
            "text": text(500),
            "host": text(253),
            "kind": text(),
            "paused": shapes.FLAG,
            "after": whole(0, 2**62),
            "limit": whole(1, LISTED),
        }
        return [
            Endpoint(
                "GET",
                at,
                self.search,
                "Sources after an id, by a search like `tag:news failing fresh<0.5`, or by address, host, kind or "
                "whether they are paused; "
                "`after` of the answer asks for those that follow.",
                models.SOURCES,
                query=searching,
            ),
            Endpoint(
                "POST",
                at,
                self.add,
                "Add sources; with replace, known addresses take what is said anew.",
                models.ADDED,
                201,
                query={"replace": shapes.FLAG},
                takes=several(models.NEW, ADDED, 1),
            ),
            Endpoint("GET", one, self.one, "One source, and what is known of its copy.", models.ONE, tagged=True),
            Endpoint(
                "PATCH",
                one,
                self.edit,
                "Change what is said of a source; options are merged, null takes one away. With If-Match only if "
                "nobody has changed it since it was read.",
                models.ONE,
                takes=models.CHANGES,
                fields=GUARDED,
                tagged=True,
            ),
            Endpoint(
                "DELETE",
                one,
                self.remove,
                "Forget a source, its copies and what it taught.",
                status=204,
                fields=GUARDED,
            ),
            Endpoint(
                "GET",
                f"{one}/observations",
                self.observations,
                "What its polls taught, newest first.",
                models.OBSERVATIONS,
                query={"limit": whole(1, LISTED)},
            ),
            Endpoint(
                "GET",
                f"{one}/versions",
                self.versions,
                "Its kept versions, newest first; each is at /copies/ID?version=N.",
                models.VERSIONS,
            ),
            Endpoint(
                "GET",
                f"{one}/entries",
                self.entries,
                "The entries of a feed, newest first, also those that it has dropped; "
                "`before` of the answer asks for those that follow.",
                models.ENTRIES,
                query={"limit": whole(1, LISTED), "before": whole(1, _ALL)},
            ),
            Endpoint("GET", f"{one}/explain", self.explain, "Why it is polled as often as it is.", models.EXPLANATION),
            Endpoint(
                "POST", f"{one}/hint", self.hint, "Say that it may have changed: it is due now.", models.HINTED_AT, 202
            ),
            Endpoint(
                "POST",
                f"{one}/poll",
                self.poll,
                "Have it polled, and wait for what comes of it.",
                models.POLLED,
                query={"wait": _WAIT},
            ),
        ]

    async def search(self, call: Call) -> Any:
        """A part of the list."""
        asked = {"limit": 100, **call.query}
        search = asked.pop("search", "")
        page = None if search else self._told.at_once(asked)
        if page is None:
            page = await asyncio.to_thread(self._told.read, asked, search)
        return Response(page, 200, NOT_KEPT, "application/json")

    async def one(self, call: Call) -> Any:
        """One source with its copy."""
        return await asyncio.to_thread(self._one, call.source)

    async def add(self, call: Call) -> Any:
        """Add all or none."""
        replacing = bool(call.query.get("replace", False))
        ids = await asyncio.to_thread(lambda: self._service.add(call.body, replacing=replacing))
        return {"ids": ids}

    async def edit(self, call: Call) -> Any:
        """Change a source, and tell how it stands."""
        async with self.editing:
            await self._expected(call)
            if not await asyncio.to_thread(self._service.edit, [call.source], call.body):
                raise _unknown(call.source)
            return await self.one(call)

    async def remove(self, call: Call) -> Any:
        """Forget a source."""
        async with self.editing:
            await self._expected(call)
            if not await asyncio.to_thread(self._service.remove, [call.source]):
                raise _unknown(call.source)

    async def _expected(self, call: Call) -> None:
        """Refuse a change of what a client has seen otherwise."""
        if IF_MATCH in call.fields:
            found = await asyncio.to_thread(self._service.store.listings, [call.source])
            if not found:
                raise _unknown(call.source)
            call.expects(tag(documents.listing(found[0])))

    async def observations(self, call: Call) -> Any:
        """The newest polls."""
        await self.known(call.source)
        found = await asyncio.to_thread(self._service.observations, call.source, call.query.get("limit", 100))
        return {"observations": [{"token": one.token} | history_documents.observation(one) for one in found]}

    async def versions(self, call: Call) -> Any:
        """What is kept of it."""
        await self.known(call.source)
        found = await asyncio.to_thread(self._service.versions, call.source)
        return {"versions": [history_documents.version(one) for one in found]}

    async def entries(self, call: Call) -> Any:
        """What a feed told of; nothing of what is no feed."""
        await self.known(call.source)
        asked = call.query.get("limit", 100), call.query.get("before")
        return history_documents.entries(await asyncio.to_thread(self._service.entries, call.source, *asked))

    async def explain(self, call: Call) -> Any:
        """One sentence and its numbers."""
        await self.known(call.source)
        return documents.explanation(await asyncio.to_thread(self._service.explain, call.source))

    async def hint(self, call: Call) -> Any:
        """Make it due."""
        await self.known(call.source)
        await asyncio.to_thread(self._service.hint, [call.source])
        return {"hinted": 1, "unknown": 0}

    async def poll(self, call: Call) -> Any:
        """Ask the engine, through the store."""
        await self.known(call.source)
        if self._asker is None:
            raise Refused(403, "this replica only reads its store: start it with a token in UNSTALE_TOKEN")
        wait = DAY * parse_duration(call.query.get("wait", "10s"), "wait")
        if not 0.0 <= wait <= PATIENCE:
            raise InputError(sentence("wait", f"{wait:g} s", f"must be {PATIENCE:g} s at most", "ask again later"))
        head = await self._asker.ask(call.source, self._service.clock() + wait)
        if head is None:
            return {"polled": False, "answered": False, "version": 0, "checked_at": None}
        return {
            "polled": True,
            "answered": head.failures == 0,
            "version": head.version,
            "checked_at": stamp(head.checked),
        }

    def _one(self, source: int) -> Tagged:
        found = self._service.views([source])
        if not found:
            raise _unknown(source)
        newest = next(iter(self._service.store.versions(source)), 0)
        (edition,) = self._service.store.editions([(source, newest)])
        kept = None if edition is None else history_documents.version(edition)
        told = documents.source(found[0], self._service.titles(found)) | {"version": newest, "copy": kept}
        return Tagged(told, tag(documents.listing(found[0].listing)))

    async def known(self, source: int) -> None:
        """Refuse a source that is not there."""
        if not await asyncio.to_thread(self._service.store.listings, [source]):
            raise _unknown(source)


def _unknown(source: int) -> Refused:
    return Refused(404, f"there is no source {source}")
