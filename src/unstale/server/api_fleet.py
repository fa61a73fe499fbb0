"""The part of the API that is about the whole: how it stands, what it costs, what another budget would do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from unstale.errors import InputError, sentence
from unstale.moments import moment
from unstale.ports import Price
from unstale.server import shapes
from unstale.server.books import Books, Slowly
from unstale.server.endpoints import Call, Endpoint
from unstale.server.shapes import finite, maybe, number, record, several, stamp, text, whole
from unstale.units import DAY, parse_duration

#: points of a history that one answer gives
POINTS = 1000

_SHARE, _SPAN = number(most=1.0), maybe(shapes.LENGTH)
PRICE = record(
    at=maybe(shapes.MOMENT),
    price=number(),
    budget_per_day=number(),
    fresh=_SHARE,
    even=_SHARE,
    polls=whole(0),
    changed=whole(0),
    failed=whole(0),
    spent=number(),
)
BUDGET = record(budget_per_day=number(above=0.0), set_here=shapes.FLAG)
PREVIEW = record(
    budget_per_day=number(above=0.0),
    price=number(),
    freshness=_SHARE,
    age=maybe(shapes.LENGTH),
    sources=whole(0),
    abandoned=whole(0),
    intervals=record(p5=_SPAN, p25=_SPAN, p50=_SPAN, p75=_SPAN, p95=_SPAN),
)
HOST = record(host=text(8192), sources=whole(0), paused=whole(0), failing=whole(0))


class Fleet:
    """Does what the table says."""

    def __init__(self, books: Books, clock: Callable[[], float]) -> None:
        self._books, self._clock, self._slowly = books, clock, Slowly()
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
            Endpoint("GET", "/api/v1/budget", self.budget, "What all polls together may cost.", BUDGET),
            Endpoint(
                "PUT",
                "/api/v1/budget",
                self.set_budget,
                "Overrule the budget of the settings from the next plan on; null: no longer.",
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
                "The hosts and how many of their sources are paused or fail.",
                record(hosts=several(HOST)),
                query={"limit": whole(1, 10_000)},
            ),
        ]

    async def status(self, _: Call) -> Any:
        """The status, at most a moment old."""
        return await self._slowly.get("status", self._books.status)

    async def budget(self, _: Call) -> Any:
        """The budget in force."""
        budget, here = await asyncio.to_thread(self._books.budget)
        return {"budget_per_day": DAY * budget, "set_here": here}

    async def set_budget(self, call: Call) -> Any:
        """Another budget, or the one of the settings again."""
        given = call.body["budget_per_day"]
        await asyncio.to_thread(self._books.set_budget, None if given is None else given / DAY)
        return await self.budget(call)

    async def plan(self, call: Call) -> Any:
        """A preview; without a budget, of the present one."""
        given = call.query.get("budget_per_day")
        budget = (await asyncio.to_thread(self._books.budget))[0] if given is None else given / DAY
        async with self._planning:
            return await asyncio.to_thread(self._books.preview, budget)

    async def prices(self, call: Call) -> Any:
        """A history."""
        since = _since(call.query.get("since", "1d"), self._clock())
        found = await asyncio.to_thread(self._books.prices, since)
        return {"prices": gathered(found, call.query.get("points", POINTS))}

    async def hosts(self, call: Call) -> Any:
        """The hosts with most sources first."""
        rows = await self._slowly.get("hosts", self._books.hosts)
        rows = sorted(rows, key=lambda one: (-one.sources, one.name))[: call.query.get("limit", 1000)]
        return {"hosts": [dict(zip(HOST["properties"], astuple(one), strict=True)) for one in rows]}


def gathered(prices: Sequence[Price], points: int) -> list[dict[str, Any]]:
    """A history in at most so many points: each tells its last price, its mean freshness, and what was done in it."""
    size = max(-(-len(prices) // points), 1)
    return [
        {
            "at": stamp(some[-1].at),
            "price": some[-1].price,
            "budget_per_day": DAY * some[-1].budget,
            "fresh": min(math.fsum(one.fresh for one in some) / len(some), 1.0),
            "even": min(math.fsum(one.even for one in some) / len(some), 1.0),
            "polls": sum(one.polls for one in some),
            "changed": sum(one.changed for one in some),
            "failed": sum(one.failed for one in some),
            "spent": finite(max(math.fsum(one.spent for one in some), 0.0)),
        }
        for some in (prices[i : i + size] for i in range(0, len(prices), size))
    ]


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
