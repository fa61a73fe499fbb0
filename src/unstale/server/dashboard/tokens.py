"""Tokens for programs: listed, made and ended by operators. One is told once, when it is made."""

from __future__ import annotations

import asyncio
from typing import Any

from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.shapes import record, several, stamp, text, whole
from unstale.service import FleetService
from unstale.service.tokens import SCOPES, ScopedToken, made_token

_DAY = 86_400.0


class Tokens:
    """Does what the table says."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._saving = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        at, anything = "/dashboard/tokens", {"type": "object"}
        scopes = several(text(among=list(SCOPES)), len(SCOPES), 1)
        new = record(name=text(80, least=1), scopes=scopes, days=whole(1, 3650))
        mark = record(mark=text(64, least=1))
        return [
            Endpoint("GET", at, self.all, "Tokens for programs, without what they are.", anything),
            Endpoint("POST", at, self.make, "Make one; it is told this once.", anything, 201, takes=new),
            Endpoint("POST", f"{at}/removals", self.end, "End one.", anything, takes=mark),
        ]

    async def all(self, _: Call) -> Any:
        """What they may do, and until when."""
        found = await asyncio.to_thread(self._service.tokens)
        return {"tokens": [_shown(one) for one in found], "scopes": SCOPES}

    async def make(self, call: Call) -> Any:
        """A new one; those that have ended are forgotten."""
        now = self._service.clock()
        until = now + _DAY * call.body["days"]
        token, made = made_token(call.body["name"], call.body["scopes"], now, until)
        async with self._saving:
            kept = [one for one in await asyncio.to_thread(self._service.tokens) if one.until > now]
            await asyncio.to_thread(self._service.save_tokens, [*kept, made])
        return {**await self.all(call), "token": token}

    async def end(self, call: Call) -> Any:
        """One that opens nothing any more."""
        async with self._saving:
            kept = await asyncio.to_thread(self._service.tokens)
            left = [one for one in kept if one.mark != call.body["mark"]]
            if len(left) == len(kept):
                raise Refused(404, "there is no token of this mark")
            await asyncio.to_thread(self._service.save_tokens, left)
        return await self.all(call)


def _shown(one: ScopedToken) -> dict[str, Any]:
    return {
        "name": one.name,
        "mark": one.mark,
        "scopes": list(one.scopes),
        "since": stamp(one.since),
        "until": stamp(one.until),
    }
