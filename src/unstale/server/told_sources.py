"""Pages of the list of sources, as JSON, out of what was told of each source a moment ago.

Rules of this file:
1. A source is told as it was only while nothing at all was committed, and for a second: so long its freshness and age
   may be out of date, as in the header of a copy. Where the store cannot say whether it has moved nothing is kept.
2. What is kept is told byte by byte as it would be told anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from unstale.frozen import dataclass
from unstale.service import FleetService, documents

#: seconds for which a source is told as it was
SECOND = 1.0
#: sources that may be listed at all
_ALL = 2**62


@dataclass(slots=True)
class ToldLately:
    """What was told under one mark of the store: ids by what was asked, and sources as JSON."""

    mark: bytes | None = None
    since: float = -math.inf
    pages: dict[tuple[tuple[str, Any], ...], list[int]] = field(default_factory=dict)
    sources: dict[int, bytes] = field(default_factory=dict)


class ToldSources:
    """Pages of the list. Any thread may ask."""

    def __init__(self, service: FleetService) -> None:
        self._service, self._told = service, ToldLately()

    def at_once(self, asked: Mapping[str, Any]) -> bytes | None:
        """The page for who asks so, if nothing need be read for it."""
        told = self._now()
        ids = told.pages.get(_key(asked))
        if ids is None or any(source not in told.sources for source in ids):
            return None
        return _answer(told, ids, asked["limit"])

    def read(self, asked: Mapping[str, Any], search: str = "") -> bytes:
        """The page for who asks so; with `search`, of those sources alone that it means."""
        told, service = self._now(), self._service
        if search:
            # What fulfils both, some at a time.
            found = set(service.found(search))
            ids = [one for one in service.store.search(**{**asked, "limit": _ALL}) if one in found][: asked["limit"]]
        else:
            ids = told.pages[_key(asked)] = service.store.search(**asked)
        new = [source for source in ids if source not in told.sources]
        if new:
            seen = service.views(new)
            titles = service.titles(seen)
            told.sources.update({one.listing.id: written(documents.source(one, titles)) for one in seen})
        return _answer(told, ids, asked["limit"])

    def _now(self) -> ToldLately:
        """What was told and still holds."""
        told, mark, now = self._told, self._service.store.mark(), self._service.clock()
        if mark is None or mark != told.mark or not told.since <= now < told.since + SECOND:
            # Who still fills the one before fills it for itself.
            told = self._told = ToldLately(mark, now)
        return told


def written(thing: object) -> bytes:
    """JSON as all answers of the API are written."""
    return json.dumps(thing, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _answer(told: ToldLately, ids: list[int], most: int) -> bytes:
    # A source that went away meanwhile is left out.
    sources = b",".join([told.sources[source] for source in ids if source in told.sources])
    return b'{"sources":[%s],"after":%s}' % (sources, b"%d" % ids[-1] if len(ids) == most else b"null")


def _key(asked: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(asked.items()))
