"""WebSub: a hub tells us that a source has changed, which is a hint [W3C WebSub 5.3, 7, 7.1].

The path of a source's callback is its secret, made from the replica's token: who does not know it cannot hint.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from unstale.server.endpoints import NOT_KEPT, Call, Endpoint, Refused, refusal
from unstale.server.shapes import model, record, text
from unstale.service import FleetService

_METHODS = ("sha1", "sha256", "sha384", "sha512")


class Websub:
    """Callbacks for hubs; with a `secret` what they post must be signed."""

    def __init__(self, service: FleetService, token: str, secret: str = "") -> None:
        self._service, self._token, self._secret = service, token.encode(), secret.encode()

    def endpoints(self) -> list[Endpoint]:
        """Where a source's callback is told."""
        return [
            Endpoint(
                "GET",
                "/api/v1/sources/{source}/websub",
                self.where,
                "The callback that a hub of this source may be given; needs the token.",
                model("Callback", record(callback=text(200))),
            )
        ]

    def routes(self) -> list[Route]:
        """The callbacks."""
        return [Route("/websub/{source:int}/{key}", self.called, methods=["GET", "POST"])]

    def path(self, source: int) -> str:
        """The path of a source's callback."""
        return f"/websub/{source}/{self._key(source)}"

    async def where(self, call: Call) -> dict[str, str]:
        """The path, of a source that there is."""
        if not await asyncio.to_thread(self._service.store.listings, [call.source]):
            raise Refused(404, f"there is no source {call.source}")
        return {"callback": self.path(call.source)}

    async def called(self, request: Request) -> Response:
        """A hub that verifies, or has news."""
        source, key = request.path_params["source"], request.path_params["key"]
        same = hmac.compare_digest(key.encode("ascii", "replace"), self._key(source).encode())
        found = await asyncio.to_thread(self._service.store.listings, [source]) if same and source < 2**63 else []
        if not found:
            return refusal(404, "there is no such callback")
        if request.method == "POST":
            if self._secret and not self._signed(request.headers.get("x-hub-signature", ""), await request.body()):
                # A hub must not learn that its signature is wrong [7.1]: it is thanked, and nothing happens.
                return Response(status_code=202, headers=NOT_KEPT)
            await asyncio.to_thread(self._service.hint, [source])
            return Response(status_code=202, headers=NOT_KEPT)
        asked = request.query_params
        challenge = asked.get("hub.challenge", "")
        if asked.get("hub.mode") == "denied":
            return Response(status_code=204, headers=NOT_KEPT)
        if asked.get("hub.mode") in ("subscribe", "unsubscribe") and asked.get("hub.topic") == found[0].address:
            return PlainTextResponse(challenge[:1000], headers=NOT_KEPT)
        return refusal(404, "this callback is of another topic")

    def _key(self, source: int) -> str:
        return hmac.new(self._token, b"websub %d" % source, hashlib.sha256).hexdigest()[:40]

    def _signed(self, signature: str, body: bytes) -> bool:
        method, _, given = signature.partition("=")
        if method not in _METHODS:
            return False
        right = hmac.new(self._secret, body, method).hexdigest()
        return hmac.compare_digest(right.encode(), given.lower().encode("ascii", "replace"))
