"""The part of the API that is about sources: list, add, change, remove, look into, hint, poll."""

from __future__ import annotations

import asyncio
from typing import Any

from unstale.errors import InputError, sentence
from unstale.kinds import NAMES
from unstale.server import shapes
from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.shapes import maybe, number, record, several, stamp, text, whole
from unstale.server.shelf import Asker
from unstale.service import FleetService, documents
from unstale.units import DAY, parse_duration

#: sources that one answer lists, that one request adds, and that one hints at
LISTED, ADDED, HINTED = 1000, 500_000, 10_000
#: seconds that a request may wait for a poll
PATIENCE = 60.0

_LENGTH = number(most=3.2e9)
_SAID = {
    "weight": number(most=1e12),
    "cost": number(most=1e12, above=0.0),
    "host": text(253),
    "min_interval": _LENGTH,
    "max_interval": maybe(number(most=3.2e9, above=0.0)),
    "paused": shapes.FLAG,
    "options": {"type": "object"},
}
NEW = record(["address"], address=text(8192, least=1), kind=text(among=list(NAMES)), **_SAID)
CHANGES = {**record([], **_SAID), "minProperties": 1}
IDS = several(whole(1))
SOURCE = record(
    id=whole(1),
    address=text(8192),
    kind=text(),
    host=text(8192),
    weight=number(),
    cost=number(),
    min_interval=shapes.LENGTH,
    max_interval=maybe(shapes.LENGTH),
    paused=shapes.FLAG,
    options={"type": "object"},
    added_at=maybe(shapes.MOMENT),
    checked_at=maybe(shapes.MOMENT),
    changed_at=maybe(shapes.MOMENT),
    due_at=maybe(shapes.MOMENT),
    failures=whole(0),
    fresh=number(most=1.0),
    age=maybe(shapes.LENGTH),
    change_rate=number(),
    change_rate_low=number(),
    change_rate_high=number(),
    change_interval=maybe(shapes.LENGTH),
    interval=maybe(shapes.LENGTH),
    waits_for=text(40),
    surcharge=number(1.0),
    reason=text(2000),
)
VERSION = record(version=whole(1), taken_at=maybe(shapes.MOMENT), media_type=text(1000), size=whole(0), sha256=text(64))
ONE = record(**SOURCE["properties"], version=whole(0), copy=maybe(VERSION))
OBSERVATION = record(
    token=whole(1),
    polled_at=maybe(shapes.MOMENT),
    answer=text(among=["unchanged", "changed", "failed"]),
    elapsed=maybe(shapes.ANY_NUMBER),
    modified_at=maybe(shapes.MOMENT),
    received=whole(0),
    reason=text(1000),
)
POLLED = record(polled=shapes.FLAG, answered=shapes.FLAG, version=whole(0), checked_at=maybe(shapes.MOMENT))


class Sources:
    """Does what the table says."""

    def __init__(self, service: FleetService, asker: Asker | None) -> None:
        self._service, self._asker = service, asker

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        at, one = "/api/v1/sources", "/api/v1/sources/{source}"
        searching = {
            "text": text(500),
            "host": text(253),
            "kind": text(),
            "paused": shapes.FLAG,
            "after": whole(0, 2**62),
            "limit": whole(1, LISTED),
        }
        found = record(sources=several(SOURCE), after=maybe(whole(1)))
        observed = record(observations=several(OBSERVATION))
        hinting = record([], sources=several(whole(1), HINTED), addresses=several(text(8192), HINTED))
        hinted = record(hinted=whole(0), unknown=whole(0))
        return [
            Endpoint(
                "GET",
                at,
                self.search,
                "Sources after an id, by address, host, kind or whether they are paused; "
                "`after` of the answer asks for those that follow.",
                found,
                query=searching,
            ),
            Endpoint(
                "POST",
                at,
                self.add,
                "Add sources; with replace, known addresses take what is said anew.",
                record(ids=IDS),
                201,
                query={"replace": shapes.FLAG},
                takes=several(NEW, ADDED, 1),
            ),
            Endpoint("GET", one, self.one, "One source, and what is known of its copy.", ONE),
            Endpoint(
                "PATCH",
                one,
                self.edit,
                "Change what is said of a source; options are merged, null takes one away.",
                ONE,
                takes=CHANGES,
            ),
            Endpoint("DELETE", one, self.remove, "Forget a source, its copies and what it taught.", status=204),
            Endpoint(
                "GET",
                f"{one}/observations",
                self.observations,
                "What its polls taught, newest first.",
                observed,
                query={"limit": whole(1, LISTED)},
            ),
            Endpoint(
                "GET",
                f"{one}/versions",
                self.versions,
                "Its kept versions, newest first; each is at /copies/ID?version=N.",
                record(versions=several(VERSION)),
            ),
            Endpoint("GET", f"{one}/explain", self.explain, "Why it is polled as often as it is.", {"type": "object"}),
            Endpoint("POST", f"{one}/hint", self.hint, "Say that it may have changed: it is due now.", hinted, 202),
            Endpoint(
                "POST",
                f"{one}/poll",
                self.poll,
                "Have it polled, and wait for what comes of it.",
                POLLED,
                query={"wait": text(20)},
            ),
            Endpoint(
                "POST",
                "/api/v1/hints",
                self.hints,
                "Say that sources may have changed, by id or address.",
                hinted,
                202,
                takes=hinting,
            ),
        ]

    async def search(self, call: Call) -> Any:
        """A part of the list."""
        asked = {"limit": 100, **call.query}

        def read() -> Any:
            ids = self._service.store.search(**asked)
            more = ids[-1] if len(ids) == asked["limit"] else None
            return {"sources": [documents.source(one) for one in self._service.views(ids)], "after": more}

        return await asyncio.to_thread(read)

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
        if not await asyncio.to_thread(self._service.edit, [call.source], call.body):
            raise _unknown(call.source)
        return await self.one(call)

    async def remove(self, call: Call) -> Any:
        """Forget a source."""
        if not await asyncio.to_thread(self._service.remove, [call.source]):
            raise _unknown(call.source)

    async def observations(self, call: Call) -> Any:
        """The newest polls."""
        await self.known(call.source)
        found = await asyncio.to_thread(self._service.observations, call.source, call.query.get("limit", 100))
        return {"observations": [{"token": one.token} | documents.observation(one) for one in found]}

    async def versions(self, call: Call) -> Any:
        """What is kept of it."""
        await self.known(call.source)
        found = await asyncio.to_thread(self._service.versions, call.source)
        return {"versions": [documents.version(one) for one in found]}

    async def explain(self, call: Call) -> Any:
        """One sentence and its numbers."""
        await self.known(call.source)
        return documents.explanation(await asyncio.to_thread(self._service.explain, call.source))

    async def hint(self, call: Call) -> Any:
        """Make it due."""
        await self.known(call.source)
        await asyncio.to_thread(self._service.hint, [call.source])
        return {"hinted": 1, "unknown": 0}

    async def hints(self, call: Call) -> Any:
        """Make many due; those that are not listed are counted, not refused: a hub knows more than we follow."""
        addresses, numbers = call.body.get("addresses", []), call.body.get("sources", [])

        def do() -> Any:
            found = [self._service.store.find(address) for address in addresses]
            there = [one.id for one in self._service.store.listings([int(source) for source in numbers])]
            ids = sorted({*there, *(source for source in found if source is not None)})
            if ids:
                self._service.hint(ids)
            return {"hinted": len(ids), "unknown": len(numbers) - len(there) + found.count(None)}

        return await asyncio.to_thread(do)

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

    def _one(self, source: int) -> dict[str, Any]:
        found = self._service.views([source])
        if not found:
            raise _unknown(source)
        newest = next(iter(self._service.store.versions(source)), 0)
        edition = self._service.store.edition(source, newest)
        kept = None if edition is None else documents.version(edition)
        return documents.source(found[0]) | {"version": newest, "copy": kept}

    async def known(self, source: int) -> None:
        """Refuse a source that is not there."""
        if not await asyncio.to_thread(self._service.store.listings, [source]):
            raise _unknown(source)


def _unknown(source: int) -> Refused:
    return Refused(404, f"there is no source {source}")
