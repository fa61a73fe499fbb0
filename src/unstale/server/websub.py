"""Callbacks: a hub tells us that a source has changed [W3C WebSub 5.3, 7, 7.1], or anybody's webhook does.

The path of a source's callback is its secret, made from the replica's token: who does not know it cannot push.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from unstale.ports import Listing
from unstale.server.endpoints import NOT_KEPT, Call, Endpoint, Refused, refusal
from unstale.server.shapes import model, record, text
from unstale.service import FleetService

_METHODS = ("sha1", "sha256", "sha384", "sha512")


class Websub:
    """Callbacks for hubs, and for webhooks; with a `secret` what hubs post must be signed."""

    def __init__(self, service: FleetService, token: str, secret: str = "") -> None:
        self._service, self._token, self._secret = service, token.encode(), secret.encode()

    def endpoints(self) -> list[Endpoint]:
        """Where a source's callback is told."""
        return [
            Endpoint(
                "GET",
                "/api/v1/sources/{source}/websub",
                self.where,
                "The callback that a hub of this source may be given, and one for any webhook; needs the token.",
                model("Callback", record(callback=text(200), webhook=text(200))),
            )
        ]

    def routes(self) -> list[Route]:
        """The callbacks."""
        return [
            Route("/websub/{source:int}/{key}", self.called, methods=["GET", "POST"]),
            Route("/webhook/{source:int}/{key}", self.hooked, methods=["POST"]),
        ]

    def path(self, source: int, channel: str = "websub") -> str:
        """The path of a source's callback."""
        return f"/{channel}/{source}/{self._key(source, channel)}"

    async def where(self, call: Call) -> dict[str, str]:
        """The path, of a source that there is."""
        if not await asyncio.to_thread(self._service.store.listings, [call.source]):
            raise Refused(404, f"there is no source {call.source}")
        return {"callback": self.path(call.source), "webhook": self.path(call.source, "webhook")}

    async def called(self, request: Request) -> Response:
        """A hub that verifies, or has news."""
        source, found = request.path_params["source"], await self._found(request, "websub")
        if found is None:
            return refusal(404, "there is no such callback")
        if request.method == "POST":
            if self._secret and not self._signed(request.headers.get("x-hub-signature", ""), await request.body()):
                # A hub must not learn that its signature is wrong [7.1]: it is thanked, and nothing happens.
                return Response(status_code=202, headers=NOT_KEPT)
            await asyncio.to_thread(self._service.hint, [source], "websub")
            return Response(status_code=202, headers=NOT_KEPT)
        asked = request.query_params
        challenge = asked.get("hub.challenge", "")
        if asked.get("hub.mode") == "denied":
            return Response(status_code=204, headers=NOT_KEPT)
        if asked.get("hub.mode") in ("subscribe", "unsubscribe") and asked.get("hub.topic") == found.address:
            return PlainTextResponse(challenge[:1000], headers=NOT_KEPT)
        return refusal(404, "this callback is of another topic")

    async def hooked(self, request: Request) -> Response:
        """Anybody who was given the path says that the source has changed; what is posted is not looked at."""
        if await self._found(request, "webhook") is None:
            return refusal(404, "there is no such callback")
        await asyncio.to_thread(self._service.hint, [request.path_params["source"]], "webhook")
        return Response(status_code=202, headers=NOT_KEPT)

    async def _found(self, request: Request, channel: str) -> Listing | None:
        """The source whose callback it is, if the path is right."""
        source, key = request.path_params["source"], request.path_params["key"]
        same = hmac.compare_digest(key.encode("ascii", "replace"), self._key(source, channel).encode())
        found = await asyncio.to_thread(self._service.store.listings, [source]) if same and source < 2**63 else []
        return found[0] if found else None

    def _key(self, source: int, channel: str) -> str:
        return hmac.new(self._token, f"{channel} {source}".encode(), hashlib.sha256).hexdigest()[:40]

    def _signed(self, signature: str, body: bytes) -> bool:
        method, _, given = signature.partition("=")
        if method not in _METHODS:
            return False
        right = hmac.new(self._secret, body, method).hexdigest()
        return hmac.compare_digest(right.encode(), given.lower().encode("ascii", "replace"))
