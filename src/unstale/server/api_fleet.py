"""The part of the API that is about the whole: how it stands, what it costs, what another budget would do."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from unstale.errors import InputError, sentence
from unstale.moments import moment
from unstale.server import shapes
from unstale.server.endpoints import Call, Endpoint
from unstale.server.shapes import maybe, number, record, several, text, whole
from unstale.server.slowly import Slowly
from unstale.service import FleetService, documents
from unstale.units import DAY, parse_duration

#: points of a history that one answer gives
POINTS = 1000

_SHARE, _SPAN = number(most=1.0), maybe(shapes.LENGTH)
PRICE = record(
    at=maybe(shapes.MOMENT),
    price=number(),
    budget_per_day=number(),
    fresh=_SHARE,
    even=maybe(_SHARE),
    polls=whole(0),
    changed=whole(0),
    failed=whole(0),
    spent=number(),
)
BUDGET = record(
    budget_per_day=number(above=0.0),
    set_here=shapes.FLAG,
    by=text(among=["default", "settings", "option", "command", "api"]),
    since=maybe(shapes.MOMENT),
    why=text(500),
    waiting=text(500),
)
PREVIEW = record(
    budget_per_day=number(above=0.0),
    price=number(),
    freshness=maybe(_SHARE),
    age=maybe(shapes.LENGTH),
    sources=whole(0),
    abandoned=whole(0),
    intervals=record(p5=_SPAN, p25=_SPAN, p50=_SPAN, p75=_SPAN, p95=_SPAN),
)
HOST = record(
    host=text(8192),
    sources=whole(0),
    paused=whole(0),
    failing=whole(0),
    spacing=shapes.LENGTH,
    concurrency=whole(0),
    budget_per_day=maybe(number()),
    windows=text(8192),
    surcharge=number(1.0),
)


class Fleet:
    """Does what the table says."""

    def __init__(self, service: FleetService, slowly: Slowly) -> None:
        self._service, self._slowly = service, slowly
        # One at a time: each takes a processor.
        self._planning = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        history = {"since": text(40), "points": whole(1, POINTS)}
        # Less or more could only be a slip: a poll in three years, a poll a microsecond.
        amount = number(1e-3, 1e11)
        return [
            Endpoint(
                "GET",
                "/api/v1/status",
                self.status,
                "How fresh the copies are, what it costs, which sources "
                "are worst: the object of `unstale status --json`.",
                {"type": "object"},
            ),
            Endpoint(
                "GET", "/api/v1/budget", self.budget, "What all polls together may cost, and who said so.", BUDGET
            ),
            Endpoint(
                "PUT",
                "/api/v1/budget",
                self.set_budget,
                "Say another budget, which holds from the next plan on; null: that of the settings again.",
                BUDGET,
                takes=record(budget_per_day=maybe(amount)),
            ),
            Endpoint(
                "GET",
                "/api/v1/plan",
                self.plan,
                "What a budget would do under the present beliefs.",
                PREVIEW,
                query={"budget_per_day": amount},
            ),
            Endpoint(
                "GET",
                "/api/v1/prices",
                self.prices,
                "The history of price and freshness, since a time or "
                "for a length of time like 1d; minutes are gathered into so many points.",
                record(prices=several(PRICE)),
                query=history,
            ),
            Endpoint(
                "GET",
                "/api/v1/hosts",
                self.hosts,
                "The hosts, what they are granted, how dear a poll is there, how many of their sources fail.",
                record(hosts=several(HOST)),
                query={"limit": whole(1, 10_000)},
            ),
        ]

    async def status(self, _: Call) -> Any:
        """The status, at most a moment old."""
        return documents.status(await self._slowly.get("status", self._service.status))

    async def budget(self, _: Call) -> Any:
        """The budget in force."""
        return documents.budget(await asyncio.to_thread(self._service.budget))

    async def set_budget(self, call: Call) -> Any:
        """Another budget, or the one of the settings again."""
        given = call.body["budget_per_day"]
        rate = None if given is None else given / DAY
        found = await asyncio.to_thread(self._service.set_budget, rate, "api")
        self._slowly.forget()
        return documents.budget(found)

    async def plan(self, call: Call) -> Any:
        """A preview; without a budget, of the present one."""
        given = call.query.get("budget_per_day")
        async with self._planning:
            rate = None if given is None else given / DAY
            return documents.preview(await asyncio.to_thread(self._service.preview, rate))

    async def prices(self, call: Call) -> Any:
        """A history."""
        since = _since(call.query.get("since", "1d"), self._service.clock())
        found = await asyncio.to_thread(self._service.course, since, call.query.get("points", POINTS))
        return {"prices": [documents.point(one) for one in found]}

    async def hosts(self, call: Call) -> Any:
        """The hosts with most sources first."""
        rows = await self._slowly.get("hosts", self._service.hosts)
        return {"hosts": [documents.host(one) for one in rows[: call.query.get("limit", 1000)]]}


def _since(given: str, now: float) -> float:
    at, _ = moment(given)
    if math.isfinite(at):
        return at
    try:
        return now - DAY * parse_duration(given, "since")
    except InputError:
        raise InputError(
            sentence(
                "since", ascii(given[:40]), "is neither a time nor a length of time", "write it like 2024-05-01 or 1d"
            )
        ) from None
