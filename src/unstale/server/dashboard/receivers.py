"""Who is told of changes, for who looks; set up, edited, removed and tried, for who may write.

Rules of this file:
1. No address is ever told: of one in the environment its name, of one that is sealed that it is.
2. What is set up here is kept by name; an address that is not said again stays what it was.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from unstale.errors import InputError
from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.shapes import FLAG, record, several, text, whole
from unstale.service import FleetService
from unstale.service.receivers import NewsReceiver

_NAME = text(80, least=1)
_TEXTS = several(text(200, least=1), 50)
_SAID = record(
    ["name", "via"],
    name=_NAME,
    via=text(among=["notify", "webhook"]),
    address=text(2000),
    tags=_TEXTS,
    sources=several(text(2000, least=1), 50),
    hours=_TEXTS,
    first=FLAG,
    title=text(4000),
    text=text(4000),
)


class KnownReceivers(Protocol):
    """Whoever knows those who are told of changes. Names show no secret."""

    def names(self) -> list[str]:
        """Those of the settings file."""

    async def tell(self, place: int, at: float) -> str:
        """Tell one that this is a test, those of the settings first; why it was not taken, or nothing."""

    def checked(self, said: NewsReceiver) -> NewsReceiver:
        """A receiver as it may be kept, its secret by name or sealed; InputError if it could never be told."""


class Receivers:
    """Does what the table says."""

    def __init__(self, service: FleetService, told: KnownReceivers) -> None:
        self._service, self._told = service, told
        # One at a time: a receiver that hangs is not asked again meanwhile.
        self._telling, self._saving = asyncio.Lock(), asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        at, anything = "/dashboard/receivers", {"type": "object"}
        return [
            Endpoint("GET", at, self.all, "Who is told of changes.", anything),
            Endpoint(
                "POST", at, self.test, "Send one a test.", record(reason=text(2000)), takes=record(receiver=whole(0))
            ),
            Endpoint("PUT", at, self.keep, "Have one told: a new one, or one by its name anew.", anything, takes=_SAID),
            Endpoint(
                "POST", f"{at}/removals", self.remove, "Have one told no more.", anything, takes=record(name=_NAME)
            ),
        ]

    async def all(self, _: Call) -> Any:
        """Those of the settings, in their order, and those that were set up here."""
        own = await asyncio.to_thread(self._service.receivers)
        return {"receivers": await asyncio.to_thread(self._told.names), "own": [_shown(one) for one in own]}

    async def test(self, call: Call) -> Any:
        """Tell one."""
        place, here = int(call.body["receiver"]), await self.all(call)
        if place >= len(here["receivers"]) + len(here["own"]):
            raise Refused(404, f"there is no receiver {place}")
        async with self._telling:
            return {"reason": (await self._told.tell(place, self._service.clock()))[:2000]}

    async def keep(self, call: Call) -> Any:
        """Add one, or replace the one of this name."""
        said = call.body
        async with self._saving:
            known = {one.name: one for one in await asyncio.to_thread(self._service.receivers)}
            before = known.get(said["name"])
            address = said.get("address", "").strip() or ("" if before is None else before.address)
            if not address:
                raise InputError("address of the receiver is missing: say where it is told, or the name of a variable")
            made = NewsReceiver(
                said["name"],
                said["via"],
                address,
                tuple(said.get("tags", ())),
                tuple(said.get("hours", ())),
                said.get("first", False),
                said.get("title", ""),
                said.get("text", ""),
                tuple(said.get("sources", ())),
            )
            known[made.name] = await asyncio.to_thread(self._told.checked, made)
            await asyncio.to_thread(self._service.save_receivers, list(known.values()))
        return await self.all(call)

    async def remove(self, call: Call) -> Any:
        """Forget one."""
        async with self._saving:
            kept = await asyncio.to_thread(self._service.receivers)
            left = [one for one in kept if one.name != call.body["name"]]
            if len(left) == len(kept):
                raise Refused(404, "there is no receiver of this name")
            await asyncio.to_thread(self._service.save_receivers, left)
        return await self.all(call)


def _shown(one: NewsReceiver) -> dict[str, Any]:
    """A receiver without what is secret of it."""
    return {
        "name": one.name,
        "via": one.via,
        "address": one.address if one.address.startswith("$") else "sealed",
        "tags": list(one.tags),
        "sources": list(one.sources),
        "hours": list(one.hours),
        "first": one.first,
        "title": one.title,
        "text": one.text,
    }
