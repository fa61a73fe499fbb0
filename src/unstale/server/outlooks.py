"""How likely copies are still fresh, asked for by many requests at once and looked up together.

One look costs hundreds of microseconds, a thousand in one hardly more: requests of the same few milliseconds share it,
and a copy's probability is kept until it can have moved.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from unstale.core.learning.outlook import WIDTH, fresh_now
from unstale.logs import log
from unstale.ports import Catalogue, Head
from unstale.server.headers import Believed

#: a probability may be so much off, or a second out of date
ERROR, SECOND = 0.02, 1.0
#: seconds between two looks, which bounds what they cost: a tenth of a processor
PAUSE = 0.005
#: seconds beyond which nobody tells gaps between changes apart
LONGEST_GAP = 1e9
#: sources whose probability is remembered
MOST = 50_000


class KnownCopy(NamedTuple):
    """What is believed of a copy, the observation it follows from, until when it is good enough, and as it is told."""

    latest: int
    until: float
    believed: Believed
    said: str


class Outlooks:
    """The probability that a copy equals its source now."""

    def __init__(self, shelf: Catalogue, clock: Callable[[], float], name: str) -> None:
        self._shelf, self._clock, self._name = shelf, clock, name
        self._known: dict[int, KnownCopy] = {}
        self._asked: dict[int, asyncio.Future[tuple[float, float]]] = {}
        #: when we last looked, on the loop's clock
        self._looked = -math.inf
        # The first look may compile for a second: not while somebody waits.
        fresh_now(shelf.columns_of([], WIDTH), clock())

    def known(self, source: int, head: Head, now: float) -> KnownCopy | None:
        """Of one copy, if it was looked up and cannot have moved by more than 0.02 since, or in this second."""
        known = self._known.get(source)
        return known if known is not None and known.latest == head.latest and now < known.until else None

    async def look(self, source: int, head: Head, now: float) -> KnownCopy:
        """Of one copy, looked up together with all that are asked for in these milliseconds.

        Freshness falls at most at the change rate, and at most by 1/e of the share by which its age grows: so long a
        probability is kept.
        """
        waiting = self._asked.get(source)
        if waiting is None:
            loop = asyncio.get_running_loop()
            if not self._asked:
                loop.call_at(max(loop.time(), self._looked + PAUSE), self._look)
            waiting = self._asked[source] = loop.create_future()
        fresh, change_rate = await asyncio.shield(waiting)
        return self._keep(head, now, fresh, change_rate)

    def renew(self, heads: Sequence[Head]) -> None:
        """Look up at once those of these copies that were known before they were polled."""
        some = {head.source: head for head in heads if head.source in self._known}
        if some:
            now = self._clock()
            for source, (fresh, change_rate) in self._found(list(some), now).items():
                self._keep(some[source], now, fresh, change_rate)

    def _keep(self, head: Head, now: float, fresh: float, change_rate: float) -> KnownCopy:
        kept = max(SECOND, ERROR / max(change_rate, 1e-9), ERROR * (now - head.checked))
        gap = min(max(1.0 / max(change_rate, 1e-9), 1.0), LONGEST_GAP)
        believed = Believed(fresh, gap, self._name)
        known = self._known[head.source] = KnownCopy(head.latest, now + kept, believed, believed.said())
        return known

    def _found(self, sources: list[int], now: float) -> dict[int, tuple[float, float]]:
        standing = self._shelf.columns_of(sources, WIDTH)
        fresh, rate = fresh_now(standing, now)
        return dict(zip(standing.source.tolist(), zip(fresh.tolist(), rate.tolist(), strict=True), strict=True))

    def _look(self) -> None:
        asked, self._asked = self._asked, {}
        self._looked = asyncio.get_running_loop().time()
        if len(self._known) > MOST:
            self._known.clear()
        try:
            found = self._found(list(asked), self._clock())
        except Exception as error:  # every request that waits must hear of it
            log("request_failed", {"path": "outlook"}, error)
            for waiting in asked.values():
                waiting.set_exception(error)
            return
        for source, waiting in asked.items():
            waiting.set_result(found.get(source, (0.0, 0.0)))
