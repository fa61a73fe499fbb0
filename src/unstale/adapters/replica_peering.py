"""Asking another replica what it holds: bounded, and read line by line as something a stranger wrote."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from unstale.adapters.addresses import web_address
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.replica_fetcher import ReplicaFetcher
from unstale.adapters.transfer import TOO_MUCH
from unstale.ports import Digest, Fetched, Request

#: bytes and lines of one answer, and seconds it may take
LARGEST, MOST, SECONDS = 4 * 2**20, 20_000, 10.0
#: characters of an address
LONGEST = 8192


class ReplicaPeering:
    """Asks replicas over HTTP; keeps the contract `Peering`. `name` is ours: what came through us is not taken back.

    `headers` go with every question, such as the token that a replica beyond this machine asks for.
    """

    def __init__(
        self,
        web: HttpFetcher,
        *,
        name: str = "",
        limit: int = 16 * 2**20,
        seconds: float = SECONDS,
        headers: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._web, self._limit, self._seconds, self._headers = web, limit, seconds, headers or {}
        self._copies = ReplicaFetcher(web, name=name, now=now)

    async def digest(self, peer: str, since: float = 0.0, after: int = 0, back: str = "") -> Digest:
        """One portion of what a replica holds."""
        here = web_address(peer)
        address = f"{here.text.rstrip('/')}/digest?since={max(since, 0.0):.3f}&after={after}"
        if back:
            address += f"&back={quote(back, safe='')}"
        reply = await self._web.look(Request(address, headers=self._headers, limit=LARGEST, seconds=self._seconds))
        if reply.reason:
            # A body that outgrew the limit is whole up to it: nobody needs so much to say so little.
            return Digest(reason=reply.reason, false=TOO_MUCH in reply.reason, received=reply.received)
        if reply.status != 200:
            reason = f"{here.host}: it answered {reply.status} when asked for its digest: does it share?"
            return Digest(reason=reason, received=reply.received)
        try:
            rows, now, further = read_digest(reply.body)
        except ValueError as error:
            return Digest(reason=f"{here.host}: its digest: {error}", false=True, received=reply.received)
        return Digest(tuple(rows), now, further, reply.received)

    async def copy(self, peer: str, source: str, since: float) -> Fetched:
        """A replica's copy of a source."""
        options = {"upstream": peer}
        found = await self._copies.fetch(
            Request(
                source, headers=self._headers, options=options, limit=self._limit, seconds=self._seconds, since=since
            )
        )
        # Bytes of its own: many are held until all have come, and would keep the room that others wait for.
        return found if found.body is None else replace(found, body=bytes(found.body))


def read_digest(body: bytes) -> tuple[list[tuple[str, float, bytes]], float, int | None]:
    """The rows of a digest, the time of who wrote it, and where to go on; ValueError says what is wrong.

    >>> read_digest(b'{"replica": "a", "now": 9.5, "next": null}\\n')
    ([], 9.5, None)
    """
    lines = body.split(b"\n")
    if len(lines) > MOST:
        raise ValueError(f"it has {len(lines)} lines")
    head = _object(lines[0])
    now, further = head.get("now"), head.get("next")
    if not _is_time(now) or not (further is None or (type(further) is int and 0 < further < 2**63)):
        raise ValueError("its first line is not one of a digest")
    rows = []
    for line in filter(None, lines[1:]):
        row = _object(line)
        source, as_of, sha256 = row.get("source"), row.get("as_of"), row.get("sha256")
        if not (isinstance(source, str) and 0 < len(source) <= LONGEST and source.isprintable() and _is_time(as_of)):
            raise ValueError("a line has no source or no time")
        if not (isinstance(sha256, str) and len(sha256) == 64):
            raise ValueError("a line has no SHA-256")
        rows.append((source, float(as_of), bytes.fromhex(sha256)))  # type: ignore[arg-type]
    return rows, float(now), further  # type: ignore[arg-type]


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("a line is no JSON") from None
    if not isinstance(found, dict):
        raise ValueError("a line is no object")
    return found


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0.0
