"""The JSON side of the replica: whether it is alive, the API with its document, metrics, and callbacks for hubs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from unstale.errors import InputError, StoreError
from unstale.ports import ReadStore
from unstale.server import bounds, endpoints, openapi
from unstale.server.api_fleet import FleetRoutes
from unstale.server.api_lists import Lists
from unstale.server.api_many import ManySources
from unstale.server.api_sources import Sources
from unstale.server.api_terms import TermsRoutes
from unstale.server.endpoints import Call, Endpoint, as_json
from unstale.server.endpoints import refusal as refusal
from unstale.server.live import Live
from unstale.server.metrics import Metrics
from unstale.server.news import NewsFeeds
from unstale.server.shapes import text, whole
from unstale.server.shelf import Asker
from unstale.server.slowly import Slowly
from unstale.server.websub import Websub
from unstale.service import FleetService


def health(shelf: ReadStore, clock: Callable[[], float]) -> list[BaseRoute]:
    """Whether the replica lives, and whether what it reads is recent."""

    async def healthz(_: Request) -> Response:
        return as_json({"status": "ok"})

    async def readyz(request: Request) -> Response:
        """Whether the store can be read and, with max_age, whether any source has answered within it."""
        try:
            # One rule for lengths of time: those of a copy's bounds.
            wish = bounds.read("", dict(request.query_params))
        except InputError as error:
            return refusal(400, str(error))
        try:
            heard, now = shelf.answered_at(), clock()
        except StoreError as error:
            return refusal(503, str(error))
        if wish.max_age is not None and now - heard > wish.max_age:
            since = "ever" if math.isinf(heard) else f"for {now - heard:.0f} s"
            return refusal(503, f"no source has answered {since}, max_age allows {wish.max_age:g} s: is the engine up?")
        return as_json({"status": "ok", "heard": None if math.isinf(heard) else heard})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def api(
    service: FleetService,
    asker: Asker | None,
    served: Mapping[int, int],
    *,
    token: str | None = None,
    secret: str = "",
    live: Live | None = None,
    slowly: Slowly | None = None,
) -> list[BaseRoute]:
    """Everything under /api/v1, /metrics, and the callbacks of hubs if there is a token to make them from."""
    # One for all: whoever asks in the same moment is told the same.
    slowly = slowly or Slowly()
    sources = Sources(service, asker)
    table: list[Endpoint] = [
        *FleetRoutes(service, slowly).endpoints(),
        *TermsRoutes(service, slowly).endpoints(),
        *sources.endpoints(),
        *ManySources(service, sources.editing).endpoints(),
        *Lists(service).endpoints(),
        *NewsFeeds(service, slowly).endpoints(),
    ]
    more: list[BaseRoute] = [Route("/metrics", Metrics(service, served, slowly).tell)]
    if live is not None:
        table.append(
            Endpoint(
                "GET",
                "/api/v1/events",
                live.listen,
                "What goes on, each second and with every change, as server-sent events named changed and status. Who "
                "says the id of the last event that came, as `since` or Last-Event-ID, is told all changes since; "
                "some may come twice, and an event missed says if some are too long ago.",
                # Of one event.
                {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string"}}},
                media_type="text/event-stream",
                query={"since": whole(0)},
                fields={"last-event-id": text(20)},
            )
        )
    if token is not None:
        websub = Websub(service, token, secret)
        table += websub.endpoints()
        more += websub.routes()

    async def document(_: Call) -> object:
        return openapi.openapi(table, version("unstale"), openapi.COPIES | openapi.METRICS | openapi.HEALTH)

    table.append(Endpoint("GET", "/api/v1/openapi.json", document, "This document.", {"type": "object"}))
    return [*endpoints.routes(table), *more]
