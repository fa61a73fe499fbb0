"""Lists of sources that come in one piece: looked through before anything is added, and added whole."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

from unstale.errors import InputError, sentence
from unstale.ports import Listing, tags_of
from unstale.secrecy import shown_address
from unstale.server.endpoints import Call, Endpoint
from unstale.server.list_models import LIST, LIST_TAKEN
from unstale.service import FleetService

#: sources and problems that one answer tells of
TOLD = 200


class Lists:
    """Does what the table says."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        # One at a time: a long list takes a processor.
        self._reading = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        return [
            Endpoint(
                "POST",
                "/api/v1/lists",
                self.take,
                "Read a list of sources as people keep them: addresses one a line, CSV, JSON lines, OPML, a sitemap, "
                "or what another monitor exported, in `base64` if it is no text. Nothing is added unless `add` is "
                "said, and nothing of a list with bad lines unless `keep_good` is.",
                LIST_TAKEN,
                takes=LIST,
            )
        ]

    async def take(self, call: Call) -> Any:
        """What a list holds, and what of it is new; with `add`, it is."""
        async with self._reading:
            return await asyncio.to_thread(self._take, call.body)

    def _take(self, body: dict[str, Any]) -> Any:
        parsed = self._service.terms.lists(_content(body))
        listings = [_tagged(one, body.get("tags", [])) for one in parsed.listings]
        new = {one.address for one in self._service.unlisted(listings)}
        fine = not parsed.problems or body.get("keep_good", False)
        added = bool(listings) and body.get("add", False) and fine
        if added:
            self._service.take(listings, replacing=body.get("replace", False))
        return {
            "sources": len(listings),
            "new": len(new),
            "added": added,
            "first": [_shown(one, one.address in new) for one in listings[:TOLD]],
            "problems": [{"line": line, "reason": reason[:2000]} for line, reason in parsed.problems[:TOLD]],
            "bad": len(parsed.problems),
            "unused": [one[:200] for one in parsed.unused[:TOLD]],
        }


def _content(body: dict[str, Any]) -> bytes:
    if not body.get("base64"):
        return str(body["content"]).encode("utf-8", "replace")
    try:
        return base64.b64decode(body["content"], validate=True)
    except ValueError:
        raise InputError(sentence("content", "given", "is no base64", "encode it anew")) from None


def _tagged(one: Listing, tags: list[str]) -> Listing:
    if not tags:
        return one
    return replace(one, options={**one.options, "tags": list(dict.fromkeys([*tags_of(one.options), *tags]))})


def _shown(one: Listing, new: bool) -> dict[str, Any]:
    return {
        "address": shown_address(one.address),
        "kind": one.kind,
        "title": str(one.options.get("title", ""))[:300],
        "tags": tags_of(one.options),
        "new": new,
    }
