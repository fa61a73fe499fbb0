"""Who is told of changes, for who looks; and a test of each, for who may write."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.shapes import record, several, text, whole
from unstale.service import FleetService


class KnownReceivers(Protocol):
    """Whoever knows those who are told of changes. Names show no secret."""

    def names(self) -> list[str]:
        """Who they are."""

    async def tell(self, place: int, at: float) -> str:
        """Tell one of them that this is a test; why it was not taken, or nothing."""


class Receivers:
    """Does what the table says."""

    def __init__(self, service: FleetService, told: KnownReceivers) -> None:
        self._service, self._told = service, told
        # One at a time: a receiver that hangs is not asked again meanwhile.
        self._telling = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        at = "/dashboard/receivers"
        shape = record(receivers=several(text(2000)))
        return [
            Endpoint("GET", at, self.names, "Who is told of changes.", shape),
            Endpoint(
                "POST", at, self.test, "Send one a test.", record(reason=text(2000)), takes=record(receiver=whole(0))
            ),
        ]

    async def names(self, _: Call) -> Any:
        """All of them, in the order of the settings."""
        return {"receivers": await asyncio.to_thread(self._told.names)}

    async def test(self, call: Call) -> Any:
        """Tell one."""
        place = int(call.body["receiver"])
        if place >= len(await asyncio.to_thread(self._told.names)):
            raise Refused(404, f"there is no receiver {place}")
        async with self._telling:
            return {"reason": (await self._told.tell(place, self._service.clock()))[:2000]}
