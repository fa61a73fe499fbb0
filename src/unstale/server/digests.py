"""`GET /digest`: which sources a replica has copies of, as of when, and the SHA-256 of each, for other replicas.

JSON lines: first who speaks, the time here and from where to go on, then one line a source, ids rising. Addresses are
told, so it is there only if the operator wants to share.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unstale.errors import InputError, StoreError, sentence
from unstale.ports import Shelf
from unstale.server.encodings import accepted, gzipped
from unstale.server.endpoints import refusal
from unstale.units import plain_number

#: sources told in one answer
MOST = 5000
#: characters of an address to ask in turn
LONGEST = 200
MEDIA_TYPE = "application/jsonl"


def digest_route(
    shelf: Shelf, clock: Callable[[], float], name: str, called: Callable[[str], None] = lambda back: None
) -> Route:
    """The route; `name` is this replica's. `called` hears where whoever asks wants to be asked in turn."""

    async def digest(request: Request) -> Response:
        """Everything since a time, in portions."""
        try:
            since, after = _number(request, "since"), _number(request, "after")
        except InputError as error:
            return refusal(400, str(error))
        try:
            body = await asyncio.to_thread(_written, shelf, clock(), name, since, int(after))
        except StoreError as error:
            return refusal(503, str(error))
        if back := request.query_params.get("back", ""):
            called(back[:LONGEST])
        fields = {
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Server": "unstale",
            "Vary": "accept-encoding",
        }
        if "gzip" in accepted(request.headers.get("accept-encoding", "")):
            fields["Content-Encoding"], body = "gzip", gzipped(body)
        return Response(body, 200, fields, MEDIA_TYPE)

    return Route("/digest", digest)


def _written(shelf: Shelf, now: float, name: str, since: float, after: int) -> bytes:
    rows = shelf.announced(since, after, MOST)
    further = rows[-1].source if len(rows) == MOST else None
    lines = [json.dumps({"replica": name, "now": now, "next": further})]
    lines += [
        json.dumps({"source": one.address, "as_of": one.as_of, "version": one.version, "sha256": one.digest.hex()})
        for one in rows
    ]
    return ("\n".join(lines) + "\n").encode()


def _number(request: Request, name: str) -> float:
    text = request.query_params.get(name, "0")
    value = plain_number(text[:40])
    if value is None or not 0.0 <= value < 2**53:
        remedy = "give seconds since 1970" if name == "since" else "give the `next` of the answer before"
        raise InputError(sentence(name, repr(text[:40]), "must be a number, 0 or more", remedy))
    return value
