"""`/changes.atom` and `/changes.json`: what changed lately, for any feed reader.

Rules of this file:
1. What strangers wrote is text: it is escaped, characters that no XML may hold are left out, and no address but one of
   the web becomes a link.
2. An entry is named by its source and version alone, so that a reader who comes again finds none twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import json
import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

from starlette.responses import Response

from unstale.server.endpoints import NOT_KEPT, Call, Endpoint
from unstale.server.headers import matches
from unstale.server.shapes import text, whole
from unstale.server.slowly import Slowly
from unstale.service import FleetService
from unstale.service.documents import iso
from unstale.service.news import News, news

#: entries of a feed, unless asked for others, and at most
USUAL, MOST = 50, 200
_ATOM = "http://www.w3.org/2005/Atom"
_TITLE = "What changed"
#: characters that XML 1.0 cannot hold
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class NewsFeeds:
    """Answers both forms."""

    def __init__(self, service: FleetService, slowly: Slowly) -> None:
        self._service, self._slowly = service, slowly

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        meaning = "What changed lately, newest first, of all sources or of those with a tag: "
        asked: dict[str, Any] = {"tag": text(200), "limit": whole(1, MOST)}
        given: dict[str, Any] = {"fields": {"if-none-match": text(500)}, "query": asked}
        # The document describes what it is; it is written here, not from a record.
        shape: dict[str, Any] = {"type": "string"}
        return [
            Endpoint("GET", "/changes.atom", self.atom, meaning + "Atom.", shape, media_type=ATOM, **given),
            Endpoint(
                "GET", "/changes.json", self.json, meaning + "JSON Feed.", {"type": "object"}, media_type=JSON, **given
            ),
        ]

    async def atom(self, call: Call) -> Response:
        """As Atom."""
        return _answer(await asyncio.to_thread(as_atom, await self._found(call)), ATOM, call)

    async def json(self, call: Call) -> Response:
        """As JSON Feed."""
        return _answer(json.dumps(as_json(await self._found(call))).encode(), JSON, call)

    async def _found(self, call: Call) -> list[News]:
        tag, limit = call.query.get("tag"), call.query.get("limit", USUAL)
        # Computed once for all who ask in the same moment; a tag that nobody has costs no more than one.
        found = await self._slowly.get(f"news {tag or ''}", lambda: news(self._service.store, MOST, tag))
        return found[:limit]


ATOM, JSON = "application/atom+xml", "application/feed+json"


def _answer(body: bytes, media_type: str, call: Call) -> Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    fields = {**NOT_KEPT, "Cache-Control": "private, no-cache", "ETag": etag}
    listed = call.fields.get("if-none-match")
    if listed is not None and matches(listed, etag):
        return Response(status_code=304, headers=fields)
    return Response(body, headers={**fields, "Content-Type": media_type})


def name(one: News) -> str:
    """The lasting name of a change.

    >>> name(News(7, "https://example.org/", "", (), 3, 0.0, (), False))
    'urn:unstale:source:7:version:3'
    """
    return f"urn:unstale:source:{one.source}:version:{one.version}"


def shown(one: News) -> str:
    """A change as HTML that holds nothing but text."""
    return f"<pre>{html.escape(_clean(_lines(one)))}</pre>"


def _lines(one: News) -> str:
    return "\n".join([f"{kind} {line}" for kind, line in one.lines] + (["…"] if one.more else []))


def link(one: News) -> str | None:
    """Where the source itself is, if a browser can go there."""
    return one.address if one.address.lower().startswith(("http://", "https://")) else None


def as_atom(found: Sequence[News]) -> bytes:
    """An Atom feed [RFC 4287]."""
    root = ElementTree.Element("feed", xmlns=_ATOM)

    def put(parent: ElementTree.Element, tag: str, content: str | None = None, **attributes: str) -> None:
        made = ElementTree.SubElement(parent, tag, {key: _clean(value) for key, value in attributes.items()})
        made.text = None if content is None else _clean(content)

    put(root, "id", "urn:unstale:changes")
    put(root, "title", _TITLE)
    put(root, "updated", iso(found[0].at if found else 0.0))
    author = ElementTree.SubElement(root, "author")
    put(author, "name", "Unstale")
    for one in found:
        entry = ElementTree.SubElement(root, "entry")
        put(entry, "id", name(one))
        put(entry, "title", one.title)
        put(entry, "updated", iso(one.at))
        if (place := link(one)) is not None:
            put(entry, "link", href=place)
        for tag in one.tags:
            put(entry, "category", term=tag)
        put(entry, "content", shown(one), type="html")
    made: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return made


def as_json(found: Sequence[News]) -> dict[str, Any]:
    """A JSON Feed, version 1.1."""
    items = []
    for one in found:
        item: dict[str, Any] = {
            "id": name(one),
            "title": _clean(one.title),
            "content_html": shown(one),
            "content_text": _clean(_lines(one)),
            "date_published": iso(one.at),
            "tags": list(one.tags),
        }
        place = link(one)
        items.append(item if place is None else item | {"url": place})
    return {"version": "https://jsonfeed.org/version/1.1", "title": _TITLE, "items": items}


def _clean(content: str) -> str:
    return _NO_XML.sub("", content)
