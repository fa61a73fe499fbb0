"""Polling another replica's copy of a source: what is learned is what the source was when that replica looked.

Rules of this file:
1. `polled_at` is the time at which the first replica of the chain looked at the source. However many replicas a copy
   comes through, it is never made to look younger, and a circle of replicas learns nothing from itself.
2. Nothing older than what we hold takes its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

from unstale.adapters.addresses import web_address
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.http_meaning import fetched
from unstale.adapters.replica_status import CopyStatus, doubt, read_status
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

#: seconds between two looks at least, or this share of the copy's age if that is more; and the longest that a replica's
#: word for its own next look keeps us away, for its plans may change
SOONEST, SHARE, LATEST = 1.0, 0.1, 600.0


def copy_address(replica: str, source: str) -> str:
    """Where a replica serves its copy of a source.

    >>> copy_address("http://127.0.0.1:8600/", "https://example.org/?a=1")
    'http://127.0.0.1:8600/copy?source=https%3A%2F%2Fexample.org%2F%3Fa%3D1'
    """
    return f"{web_address(replica).text.rstrip('/')}/copy?source={quote(source, safe='')}"


class ReplicaFetcher:
    """Looks at sources through a replica: the one that the option `upstream` names, else the address is a copy's own.

    `name` is ours in Cache-Status: a copy that came through it is refused. Without one only the hops are bounded.
    """

    def __init__(self, web: HttpFetcher, *, name: str = "", now: Callable[[], float] = time.time) -> None:
        self._web, self._name, self._now = web, name, now

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        begun = self._now()
        try:
            upstream = request.options.get("upstream", "")
            address = copy_address(str(upstream), request.address) if upstream else request.address
            host = web_address(address).host
        except InputError as error:
            return Fetched(Answer.FAILED, begun, reason=str(error))
        reply = await self._web.look(replace(request, address=address))
        found = fetched(request, reply, begun)
        if found.answer is Answer.FAILED:
            return found
        status = read_status(reply.headers)
        if status is None:
            return _refused(found, host, "its answer has no Replica-Status: it is no replica, or an old one")
        if why := doubt(status, request.since, begun, self._name):
            return _refused(found, host, why)
        return replace(
            found,
            polled_at=min(status.as_of, begun),
            changed_at=(),
            via=status.way,
            not_before=_again(status, begun),
        )

    async def close(self) -> None:
        """Give back connections."""
        await self._web.close()


def _again(status: CopyStatus, now: float) -> float:
    """When that replica may have something new: after its own next look, which it dates in whole seconds."""
    soon = max(SOONEST, SHARE * (now - status.as_of))
    return now + min(max(status.expires + 1.0 - now, soon), LATEST)


def _refused(found: Fetched, host: str, why: str) -> Fetched:
    return Fetched(
        Answer.FAILED,
        found.polled_at,
        reason=f"{host}: {why}",
        status=found.status,
        address=found.address,
        received=found.received,
    )
