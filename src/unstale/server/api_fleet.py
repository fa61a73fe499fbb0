"""The part of the API that is about the whole: how it stands, what it costs, what another budget would do."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from unstale.errors import InputError, sentence
from unstale.moments import moment
from unstale.server import models, shapes
from unstale.server.endpoints import GUARDED, Call, Endpoint, Tagged, tag
from unstale.server.shapes import whole
from unstale.server.slowly import Slowly
from unstale.service import FleetService, documents, history_documents
from unstale.service.records import Budget
from unstale.units import DAY, parse_duration

#: points of a history that one answer gives
POINTS = 1000


class FleetRoutes:
    """Does what the table says."""

    def __init__(self, service: FleetService, slowly: Slowly) -> None:
        self._service, self._slowly = service, slowly
        # One at a time: each takes a processor.
        self._planning = asyncio.Lock()
        # One budget at a time, so that what a client expects is still so when it is said.
        self._saying = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        history = {"since": shapes.SINCE, "points": whole(1, POINTS)}
        return [
            Endpoint(
                "GET",
                "/api/v1/status",
                self.status,
                "How fresh the copies are, what it costs, which sources "
                "are worst: the object of `unstale status --json`. With `known` as it was last found, at once.",
                models.STATUS,
                query={"known": shapes.FLAG},
            ),
            Endpoint(
                "GET",
                "/api/v1/budget",
                self.budget,
                "What all polls together may cost, and who said so.",
                models.BUDGET,
                tagged=True,
            ),
            Endpoint(
                "PUT",
                "/api/v1/budget",
                self.set_budget,
                "Say another budget, which holds from the next plan on; null: that of the settings again.",
                models.BUDGET,
                takes=models.NEW_BUDGET,
                fields=GUARDED,
                tagged=True,
            ),
            Endpoint(
                "GET",
                "/api/v1/plan",
                self.plan,
                "What a budget would do under the present beliefs.",
                models.PREVIEW,
                query={"budget_per_day": models.AMOUNT},
            ),
            Endpoint(
                "GET",
                "/api/v1/prices",
                self.prices,
                "The history of price and freshness, since a time or "
                "for a length of time like 1d; minutes are gathered into so many points.",
                models.PRICES,
                query=history,
            ),
            Endpoint(
                "GET",
                "/api/v1/hosts",
                self.hosts,
                "The hosts, what they are granted, how dear a poll is there, how many of their sources fail.",
                models.HOSTS,
                query={"limit": whole(1, 10_000)},
            ),
        ]

    async def status(self, call: Call) -> Any:
        """The status, at most a moment old; with `known` the one that was found last, at once."""
        known = call.query.get("known", False)
        return documents.status(await self._slowly.get("status", self._service.status, known=known))

    async def budget(self, _: Call) -> Any:
        """The budget in force."""
        return _tagged(await asyncio.to_thread(self._service.budget))

    async def set_budget(self, call: Call) -> Any:
        """Another budget, or the one of the settings again."""
        given = call.body["budget_per_day"]
        rate = None if given is None else given / DAY
        async with self._saying:
            call.expects(_tagged(await asyncio.to_thread(self._service.budget)).etag)
            found = await asyncio.to_thread(self._service.set_budget, rate, "api")
        self._slowly.forget()
        return _tagged(found)

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
        return {"prices": [history_documents.point(one) for one in found]}

    async def hosts(self, call: Call) -> Any:
        """The hosts with most sources first."""
        rows = await self._slowly.get("hosts", self._service.hosts)
        return {"hosts": [documents.host(one) for one in rows[: call.query.get("limit", 1000)]]}


def _tagged(one: Budget) -> Tagged:
    """A budget and the ETag of what was said of it: not of whether it waits for a restart."""
    told = documents.budget(one)
    return Tagged(told, tag({name: told[name] for name in ("budget_per_day", "by", "since")}))


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
