"""HTTP polls that say which replica polls, and hear which others poll the same source (`unstale.replica_list`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from unstale.adapters.addresses import Gate
from unstale.adapters.flight import Flight, Replied
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.transfer import TransferReply
from unstale.ports import Ended, Request
from unstale.replica_list import ASKING, RECENT, read, written

Heard = Callable[[str, Sequence[str]], None]


class IntroducedFetcher(HttpFetcher):
    """An HTTP fetcher of the replica that serves at `here`; `heard` is told of a source the others, newest first.

    A source that keeps no list says nothing, and nobody is told.
    """

    def __init__(self, gate: Gate, *, here: str, heard: Heard, now: Callable[[], float] = time.time) -> None:
        super().__init__(gate, now=now)
        self._here, self._heard = written([here]), heard

    async def leave(self, request: Request) -> None:
        """Say that this replica polls no more."""
        await self.look(replace(request, headers={**request.headers, ASKING: f"{self._here}; leaving"}))

    def _begin(
        self, request: Request, replied: Replied | None, ended: Ended | None = None, at: float | None = None
    ) -> Flight:
        def heard(reply: TransferReply | Exception) -> None:
            named = None if isinstance(reply, Exception) else reply.headers.get(RECENT.lower())
            if named is not None:
                self._heard(request.address, read(named))
            if replied is not None:
                replied(reply)
            elif ended is not None:
                ended(flight.meant(reply))

        flight = super()._begin(replace(request, headers={ASKING: self._here, **request.headers}), heard, None, at)
        return flight
