"""What the dashboard shows beyond the API: the sorted table, a belief over time, differences, the log, replicas."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from unstale.server import endpoints, shapes
from unstale.server.api_sources import Sources
from unstale.server.dashboard.icons import Icons
from unstale.server.dashboard.reader import Reader
from unstale.server.dashboard.receivers import KnownReceivers, Receivers
from unstale.server.dashboard.tokens import Tokens
from unstale.server.dashboard.trials import Trials, Tries
from unstale.server.endpoints import NOT_KEPT, Call, Endpoint, Refused
from unstale.server.headers import names, well_formed
from unstale.server.models import SOURCE
from unstale.server.shapes import maybe, number, record, several, stamp, text, whole
from unstale.server.slowly import Slowly
from unstale.service import FleetService, documents, history_documents
from unstale.service.compared import FORMS, compared
from unstale.service.difference import readable
from unstale.service.noise import noise
from unstale.service.pictures import picture_of, pictures_compared
from unstale.service.records import SourceView
from unstale.service.search import parse

Say = Callable[[], Mapping[str, Any]]

SORTS = ["id", "fresh", "age", "change_rate", "interval", "due", "changed", "weight", "failures"]
#: seconds that the first look at the table waits for it to be sorted
FIRST = 0.25
#: copies whose way is told
WAYS = 500

_TABLE = record(sources=several(SOURCE), total=maybe(whole(0)), sorted=shapes.FLAG, as_of=maybe(shapes.MOMENT))
_POINT = record(at=maybe(shapes.MOMENT), change_rate=number(), low=number(), high=number())
_DIFFERENCE = record(
    lines=several(several(text(1000), 2, 2)),
    rows=several({}),
    cut=shapes.FLAG,
    same=shapes.FLAG,
    old=whole(0),
    new=whole(1),
    form=text(among=list(FORMS)),
    forms=several(text(among=list(FORMS))),
)
_NOTHING: Mapping[str, Any] = {}
#: kinds of content that browsers show as pages
_KINDS = ("text/html", "application/xhtml+xml", "image/svg+xml")
#: what a page of a stranger may do: be read, with its own styles. It has no origin, runs nothing, asks for nothing.
FRAMED = {
    **NOT_KEPT,
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def can_be_framed(media_type: str) -> bool:
    """Whether content is one that browsers show as a page.

    >>> can_be_framed("text/html; charset=utf-8"), can_be_framed("text/csv"), can_be_framed("text/html\\r\\nX: y")
    (True, False, False)
    """
    return well_formed(media_type) and media_type.partition(";")[0].strip().lower() in _KINDS


class Views:
    """Does what the table says. `replicas` tells what the settings say of others."""

    def __init__(self, service: FleetService, replicas: Say) -> None:
        self._service, self._replicas = service, replicas
        self._reader, self._sources, self._slowly = Reader(service), Sources(service, None), Slowly()
        # One at a time: a comparison takes a processor.
        self._comparing = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        one = "/dashboard/sources/{source}"
        wanted = {
            "search": text(500),
            "sort": text(among=SORTS),
            "down": shapes.FLAG,
            "offset": whole(0, 100_000),
            "limit": whole(1, 200),
        }
        pair = {"old": whole(0), "new": whole(1), "form": text(among=list(FORMS))}
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
                f"{one}/noise",
                self.noise,
                "What differs each time, of a source that changes at nearly every poll.",
                anything,
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
            Endpoint(
                "GET",
                f"{one}/frame",
                self.framed,
                "One version as a page, for a frame in which nothing of it runs or asks for anything.",
                query={"version": whole(1)},
                needs=frozenset(["version"]),
            ),
            Endpoint(
                "GET",
                f"{one}/picture",
                self.picture,
                "The picture of a version, or where it differs from that of an old one.",
                query={"version": whole(1), "old": whole(1)},
                needs=frozenset(["version"]),
            ),
            Endpoint("GET", "/dashboard/log", self.log, "The newest polls.", anything, query={"limit": whole(1, 1000)}),
            Endpoint("GET", "/dashboard/hosts", self.hosts, "Hosts and what they are granted.", anything),
            Endpoint("GET", "/dashboard/replicas", self.replicas, "Peers, and the ways copies came.", anything),
        ]

    async def table(self, call: Call) -> Any:
        """A part of all sources, sorted; until they have been read for the first time, in the order of their ids."""
        asked = dict(call.query)
        terms = parse(asked.pop("search", ""))
        columns = await self._reader.ready(FIRST)

        def read() -> Any:
            if columns is None:
                word = next((str(one.value) for one in terms if one.name == "text" and not one.negated), "")
                ids = self._service.store.search(word, limit=asked.get("limit", 50))
                return {"sources": self._rows(self._service.views(ids)), "total": None, "sorted": False, "as_of": None}
            ids, total = columns.find(terms, **asked)
            return {
                "sources": self._rows(columns.views(ids)),
                "total": total,
                "sorted": True,
                "as_of": stamp(columns.moment.now),
            }

        return await asyncio.to_thread(read)

    def _rows(self, found: Sequence[SourceView]) -> list[dict[str, Any]]:
        titles = self._service.titles(found)
        return [documents.source(one, titles) for one in found]

    async def belief(self, call: Call) -> Any:
        """The change rate that was believed after each of the newest polls, with its interval."""
        await self._sources.known(call.source)

        def read() -> Any:
            return {"points": [history_documents.belief(one) for one in self._service.beliefs(call.source)]}

        return await asyncio.to_thread(read)

    async def noise(self, call: Call) -> Any:
        """What could be left out."""
        await self._sources.known(call.source)
        async with self._comparing:
            return documents.noise(await asyncio.to_thread(noise, self._service.store, call.source))

    async def difference(self, call: Call) -> Any:
        """Two versions compared; without an old one, the new one as it is."""
        old, new = int(call.query.get("old", 0)), int(call.query["new"])

        def read() -> Any:
            found = {version: self._service.store.copy(call.source, version) for version in (old, new) if version}
            for version, copy in found.items():
                if copy is None:
                    raise Refused(404, f"version {version} of source {call.source} is not kept")
                if not readable(copy.body.data, copy.body.media_type):
                    raise Refused(415, f"version {version} is not text: take it from /copies/{call.source}")
            bodies = [copy.body for copy in found.values() if copy is not None]
            (kind,) = (one.kind for one in self._service.store.listings([call.source]))
            told = compared(bodies[0] if old else None, bodies[-1], kind, call.query.get("form"))
            return told | {"old": old, "new": new}

        async with self._comparing:
            return await asyncio.to_thread(read)

    async def framed(self, call: Call) -> Any:
        """A version that browsers show as a page, under a policy that lets it be looked at and do nothing."""
        version = int(call.query["version"])
        copy = await asyncio.to_thread(self._service.store.copy, call.source, version)
        if copy is None:
            raise Refused(404, f"version {version} of source {call.source} is not kept")
        if not can_be_framed(copy.body.media_type):
            raise Refused(415, f"version {version} is not a page: take it from /copies/{call.source}")
        response = Response(copy.body.data, headers=FRAMED)
        # As it was sent, and not as Starlette would complete it; that it can be sent was asked above.
        response.headers["content-type"] = copy.body.media_type
        return response

    async def picture(self, call: Call) -> Any:
        """A picture, PNG; of two versions, the new one with what differs in red."""

        def read() -> tuple[bytes, float]:
            found = []
            for version in (int(call.query[name]) for name in ("old", "version") if name in call.query):
                copy = self._service.store.copy(call.source, version)
                if copy is None or (one := picture_of(copy.body)) is None:
                    raise Refused(404, f"version {version} of source {call.source} has no picture")
                found.append(one)
            return (found[0], 0.0) if len(found) == 1 else pictures_compared(found[0], found[1])

        async with self._comparing:
            data, share = await asyncio.to_thread(read)
        policy = {"Content-Security-Policy": "sandbox; default-src 'none'", "Unstale-Differs": f"{share:.6f}"}
        return Response(data, headers={**NOT_KEPT, **policy, "Content-Type": "image/png"})

    async def log(self, call: Call) -> Any:
        """The newest polls with the addresses of their sources."""

        found = await asyncio.to_thread(self._service.log, call.query.get("limit", 200))
        return {"events": [history_documents.log_line(one) for one in found]}

    async def hosts(self, _: Call) -> Any:
        """The thousand hosts with most trouble, then most sources."""
        rows = await self._slowly.get("hosts", self._service.hosts)
        rows = sorted(rows, key=lambda one: (-one.failing, -one.sources, one.name))[:1000]
        return {"hosts": [documents.host(one) for one in rows]}

    async def replicas(self, _: Call) -> Any:
        """Peers as the engine last told of them, and the ways by which the newest copies came here."""

        def read() -> Any:
            peers, own = self._service.engine().peers, dict(self._replicas())
            ways: Counter[str] = Counter()
            heads = self._service.store.heads(sorted({one.source for one in self._service.store.recent(WAYS)}))
            for edition in self._service.store.editions([(head.source, head.version) for head in heads]):
                if edition is not None and edition.via:
                    ways[", ".join(names(edition.via))] += 1
            told = [
                {"way": [name.strip().strip('"') for name in way.split(",")], "copies": count}
                for way, count in ways.most_common(20)
            ]
            return own | {"peers": [dict(one) for one in peers], "ways": told}

        return await asyncio.to_thread(read)


def views(
    service: FleetService,
    *,
    replicas: Say = lambda: _NOTHING,
    tries: Tries | None = None,
    told: KnownReceivers | None = None,
    icons: bool = False,
) -> list[Route]:
    """The routes of the dashboard, to be served beside the API's; nothing can be tried without `tries` and `told`.

    `icons` has those of sites fetched by `tries`, and shown.
    """
    more = Tokens(service).endpoints()
    more += [] if tries is None or not icons else Icons(service, tries).endpoints()
    more += [] if tries is None else Trials(service, tries).endpoints()
    more += [] if told is None else Receivers(service, told).endpoints()
    return endpoints.routes([*Views(service, replicas).endpoints(), *more])
