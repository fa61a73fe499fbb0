"""The replica's ASGI application: copies on the short way, everything else through Starlette."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from unstale.errors import UnstaleError
from unstale.logs import log
from unstale.ports import ReadStore
from unstale.server.api import api, health
from unstale.server.auth import TOO_LARGE, Guard
from unstale.server.copies import PATIENCE, Copies, Receive, Scope, Send
from unstale.server.endpoints import refusal
from unstale.server.live import Live
from unstale.server.scopes import ScopedTokens
from unstale.server.shelf import Asker
from unstale.service import FleetService

_SENTENCES = {
    404: "nothing is here: copies are at /copies/ID",
    405: "this method is not for this path: see Allow",
    413: TOO_LARGE,
}


class App:
    """An ASGI application; `close` ends the streams of those who listen."""

    def __init__(self, copies: Copies, rest: Starlette, live: Live | None, guard: Callable[..., Guard]) -> None:
        self.copies, self._rest, self._live = copies, rest, live
        self.guard = guard(self._inside, self.offers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if _of_a_copy(scope) and self.guard.at_once(scope):
            await self.copies(scope, receive, send)
        else:
            await self.guard(scope, receive, send)

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _of_a_copy(scope):
            await self.copies(scope, receive, send)
        else:
            await self._rest(scope, receive, send)

    def offers(self, scope: Scope) -> bool:
        """Whether there is such a method at such a path; a path that is not there refuses for itself."""
        found = [] if _of_a_copy(scope) else [route.matches(scope)[0] for route in self._rest.routes]
        return Match.FULL in found or Match.PARTIAL not in found

    def misled(self, scope: Scope) -> Any:
        """The refusal of a request that names a host which we are not, for those who answer before us."""
        return self.guard.misled(scope)

    def close(self) -> None:
        """End what lasts."""
        if self._live is not None:
            self._live.close()


def _of_a_copy(scope: Scope) -> bool:
    path: str = scope.get("path", "")
    return scope["type"] == "http" and (path.startswith("/copies/") or path in ("/copy", "/copy/_meta"))


def replica(
    shelf: ReadStore,
    *,
    name: str = "unstale",
    asker: Asker | None = None,
    token: str | None = None,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
    service: FleetService | None = None,
    poller: Asker | None = None,
    secret: str = "",
    closed: bool = False,
    names: Collection[str] = (),
    more: Sequence[BaseRoute] = (),
    scoped: ScopedTokens | None = None,
) -> App:
    """What serves a store: copies, and the API if there is a `service`; `more` routes come beside ours.

    `name` is this replica's in Cache-Status; without `asker` nothing is polled for a reader, `poller` polls for those
    who may write, which nobody may without `token`. `secret` signs what hubs post. `closed` asks readers for the token
    too, `names` are the hosts that a request may name (all if empty), `scoped` knows tokens that open a part.
    """
    copies = Copies(shelf, clock, name=name, asker=asker, patience=patience)
    live = None if service is None else Live(service)
    own = [] if service is None else api(service, poller, copies.served, token=token, secret=secret, live=live)
    starlette = Starlette(
        routes=[*health(shelf, clock), *own, *more],
        exception_handlers={HTTPException: _refused, UnstaleError: _failed, Exception: _failed},
    )
    # Addresses are exact: a slash too many is another path.
    starlette.router.redirect_slashes = False
    return App(
        copies,
        starlette,
        live,
        lambda app, offered: Guard(app, token, closed=closed, names=names, offered=offered, scoped=scoped),
    )


async def _refused(_: Request, error: Exception) -> Response:
    code = error.status_code if isinstance(error, HTTPException) else 500
    response = refusal(code, _SENTENCES.get(code, "the request cannot be served"))
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


async def _failed(request: Request, error: Exception) -> Response:
    if not isinstance(error, UnstaleError):
        log("request_failed", {"path": request.url.path}, error)
    return refusal(500, str(error) if isinstance(error, UnstaleError) else "something went wrong in the server")
