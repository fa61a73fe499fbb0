"""What the dashboard shows beyond the API: the sorted table, a belief over time, differences, the log, replicas."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
from starlette.routing import Route

from unstale.core.learning.outlook import WIDTH, outlook
from unstale.keeper.outcomes import Answer
from unstale.keeper.replay import Polls, Taught, blank, replay
from unstale.ports import LEARNER, Observation
from unstale.server import endpoints, shapes
from unstale.server.api_sources import SOURCE, Sources
from unstale.server.books import Books, Slowly
from unstale.server.dashboard.columns import STATES, Reader
from unstale.server.dashboard.differing import difference, lines_of, readable
from unstale.server.endpoints import Call, Endpoint, Refused
from unstale.server.shapes import finite, maybe, number, record, several, stamp, text, whole

Say = Callable[[], Mapping[str, Any]]
Rules = Callable[[str], Mapping[str, Any]]

SORTS = ["id", "fresh", "age", "change_rate", "interval", "due", "changed", "weight", "failures"]
#: seconds that the first look at the table waits for it to be sorted
FIRST = 0.25
#: polls that a belief is followed over, copies whose way is told
POLLS, WAYS = 300, 500

_TABLE = record(sources=several(SOURCE), total=maybe(whole(0)), sorted=shapes.FLAG, as_of=maybe(shapes.MOMENT))
_POINT = record(at=maybe(shapes.MOMENT), change_rate=number(), low=number(), high=number())
_DIFFERENCE = record(lines=several(several(text(1000), 2, 2)), cut=shapes.FLAG, old=whole(0), new=whole(1))
_NOTHING: Mapping[str, Any] = {}


class Views:
    """Does what the table says. `rules` tells what a host is granted, `replicas` what the settings say of others."""

    def __init__(self, books: Books, clock: Callable[[], float], rules: Rules, replicas: Say) -> None:
        self._books, self._clock, self._rules, self._replicas = books, clock, rules, replicas
        self._reader, self._sources, self._slowly = Reader(books, clock), Sources(books, clock, None), Slowly()
        # One at a time: a comparison takes a processor.
        self._comparing = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        one = "/dashboard/sources/{source}"
        wanted = {
            "text": text(200),
            "host": text(253),
            "state": text(among=list(STATES)),
            "sort": text(among=SORTS),
            "down": shapes.FLAG,
            "offset": whole(0, 100_000),
            "limit": whole(1, 200),
        }
        pair = {"old": whole(0), "new": whole(1)}
        anything: dict[str, Any] = {"type": "object"}
        return [
            Endpoint("GET", "/dashboard/table", self.table, "Sources in any order.", _TABLE, query=wanted),
            Endpoint(
                "GET",
                f"{one}/belief",
                self.belief,
                "What was believed after each poll.",
                record(points=several(_POINT)),
            ),
            Endpoint(
                "GET",
                f"{one}/difference",
                self.difference,
                "How two versions differ, or one version whole.",
                _DIFFERENCE,
                query=pair,
                needs=frozenset(["new"]),
            ),
            Endpoint("GET", "/dashboard/log", self.log, "The newest polls.", anything, query={"limit": whole(1, 1000)}),
            Endpoint("GET", "/dashboard/hosts", self.hosts, "Hosts and what they are granted.", anything),
            Endpoint("GET", "/dashboard/replicas", self.replicas, "Peers, and the ways copies came.", anything),
        ]

    async def table(self, call: Call) -> Any:
        """A part of all sources, sorted; until they have been read for the first time, in the order of their ids."""
        asked = dict(call.query)
        columns = await self._reader.ready(FIRST)

        def read() -> Any:
            if columns is None:
                plain = {name: asked[name] for name in ("text", "host") if asked.get(name)}
                ids = self._books.search(limit=asked.get("limit", 50), **plain)
                return {"sources": self._rows(ids), "total": None, "sorted": False, "as_of": None}
            ids, total = columns.find(**asked)
            return {"sources": self._rows(ids), "total": total, "sorted": True, "as_of": stamp(columns.at)}

        return await asyncio.to_thread(read)

    def _rows(self, ids: list[int]) -> list[dict[str, Any]]:
        place = {source: i for i, source in enumerate(ids)}
        return sorted(self._sources.described(ids), key=lambda row: place[row["id"]])

    async def belief(self, call: Call) -> Any:
        """The change rate that was believed after each of the newest polls, with its interval."""
        await self._sources.known(call.source)

        def read() -> Any:
            told = self._books.observations(call.source, POLLS)[::-1]
            standing = self._books.columns_of([call.source], WIDTH)
            return {"points": believed(told, standing.settings)}

        return await asyncio.to_thread(read)

    async def difference(self, call: Call) -> Any:
        """Two versions compared; without an old one, the new one as it is."""
        old, new = int(call.query.get("old", 0)), int(call.query["new"])

        def read() -> Any:
            found = {version: self._books.copy(call.source, version) for version in (old, new) if version}
            for version, copy in found.items():
                if copy is None:
                    raise Refused(404, f"version {version} of source {call.source} is not kept")
                if not readable(copy.body.data, copy.body.media_type):
                    raise Refused(415, f"version {version} is not text: take it from /copies/{call.source}")
            bodies = [copy.body.data for copy in found.values() if copy is not None]
            if old:
                return difference(bodies[0], bodies[-1]) | {"old": old, "new": new}
            lines, cut = lines_of(bodies[0])
            return {"lines": [[" ", line] for line in lines], "cut": cut, "old": 0, "new": new}

        async with self._comparing:
            return await asyncio.to_thread(read)

    async def log(self, call: Call) -> Any:
        """The newest polls with the addresses of their sources."""

        def read() -> Any:
            rows = self._books.recent(call.query.get("limit", 200))
            names = {one.id: one.address for one in self._books.listings(sorted({row.source for row in rows}))}
            return {
                "events": [
                    {
                        "token": row.token,
                        "event": f"poll.{row.answer.value}",
                        "at": stamp(row.polled_at),
                        "source": row.source,
                        "address": names.get(row.source, ""),
                    }
                    for row in rows
                ]
            }

        return await asyncio.to_thread(read)

    async def hosts(self, _: Call) -> Any:
        """The thousand hosts with most sources."""
        rows = await self._slowly.get("hosts", self._books.hosts)
        rows = sorted(rows, key=lambda one: (-one.failing, -one.sources, one.name))[:1000]
        names = ("host", "sources", "paused", "failing")
        return {"hosts": [dict(zip(names, astuple(one), strict=True)) | dict(self._rules(one.name)) for one in rows]}

    async def replicas(self, _: Call) -> Any:
        """Peers as the engine last told of them, and the ways by which the newest copies came here."""

        def read() -> Any:
            engine, own = self._books.engine(), dict(self._replicas())
            ways: Counter[str] = Counter()
            for head in self._books.heads(sorted({one.source for one in self._books.recent(WAYS)})):
                edition = self._books.edition(head.source, head.version)
                if edition is not None and edition.via:
                    ways[edition.via] += 1
            told = [
                {"way": [name.strip().strip('"') for name in way.split(",")], "copies": count}
                for way, count in ways.most_common(20)
            ]
            return own | {"peers": engine.get("peers") or [], "ways": told}

        return await asyncio.to_thread(read)


def believed(told: list[Observation], settings: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """What polls taught, oldest first, after each answer, as today's fleet would read them.

    Today's prior and clock are used throughout, so that the curve shows this source and not what others taught.
    """
    points = []
    taught = blank(1, WIDTH)
    for one in told:
        if one.answer is Answer.FAILED:
            continue
        modified = np.nan if one.modified is None else one.modified
        polls = Polls(
            np.zeros(1, np.int64),
            np.array([one.polled_at]),
            np.ones(1, np.bool_),
            np.array([one.answer is Answer.CHANGED]),
            np.array([modified]),
            np.ones(1, np.int64),
        )
        taught = replay(polls, taught, {1: settings.get(LEARNER, b"")})
        seen = outlook(_Held(taught, settings), one.polled_at)
        points.append(
            {
                "at": stamp(one.polled_at),
                "change_rate": finite(seen.change_rate[0]),
                "low": finite(seen.low[0]),
                "high": finite(seen.high[0]),
            }
        )
    return points


class _Held:
    """What one source has taught, as an outlook reads it."""

    def __init__(self, taught: Taught, settings: Mapping[str, bytes]) -> None:
        self.beliefs, self.last, self.found, self.settings = taught.rows, taught.last, taught.found, settings


def views(
    books: Books, clock: Callable[[], float], *, rules: Rules = lambda host: _NOTHING, replicas: Say = lambda: _NOTHING
) -> list[Route]:
    """The routes of the dashboard, to be served beside the API's."""
    return endpoints.routes(Views(books, clock, rules, replicas).endpoints())
