"""What stands before all: copies on the shortest way, everything else through the ASGI application behind.

Most requests ask for the newest copy and for nothing else. They need no login, as long as everybody may read. They are
answered here, out of what is kept ready of the copy. Whatever is unusual in a request leaves it to the application
behind, which answers the same to the plain ones, byte by byte.
"""

from __future__ import annotations

from typing import Any

from unstale.errors import UnstaleError
from unstale.server.auth import Guard
from unstale.server.copies import Copies, source_of
from unstale.server.rsgi import PIECE, AsgiCall, RequestFields, RequestScope, RsgiExchange, answered

_COPIES = "/copies/"


class Front:
    """An RSGI application: copies as `guard` lets them be read, the rest as `app` answers it."""

    def __init__(self, app: Any, copies: Copies, guard: Guard) -> None:
        self._app, self._copies, self._guard = app, copies, guard

    async def __rsgi__(self, scope: RequestScope, exchange: RsgiExchange) -> None:
        """Answer one request."""
        if scope.path.startswith(_COPIES) and scope.method == "GET" and not scope.query_string:
            header = scope.headers
            hosts, accepts = header.get_all("host"), header.get_all("accept-encoding")
            held = header.get_all("if-none-match")
            # What is repeated is looked at more closely.
            if (
                len(hosts) == 1
                and len(accepts) < 2
                and len(held) < 2
                and self._guard.lets(hosts[0])
                and not _unusual(header)
                and (source := source_of(scope.path[len(_COPIES) :])) is not None
            ):
                accept, condition = accepts[0] if accepts else "", held[0] if held else None
                try:
                    # Nearly all is at hand: then nothing is waited for.
                    reply = self._copies.at_hand(source, accept, condition)
                    if reply is None:
                        reply = await self._copies.plain(source, accept, condition)
                except UnstaleError:
                    # Why is told where everything is told.
                    reply = None
                if reply is not None:
                    status, fields, sent = reply
                    if status == 304:
                        exchange.response_empty(status, fields)
                    elif len(sent.body) <= PIECE:
                        exchange.response_bytes(status, fields, sent.body)
                    else:
                        await answered(exchange, status, fields, sent.whole)
                    return
        call = AsgiCall(scope, exchange)
        await self._app(call.scope(), call.receive, call.send)


def _unusual(header: RequestFields) -> bool:
    """Whether a request has a field that makes it more than plain, also one that cannot be read."""
    return (
        "cache-control" in header
        or "if-match" in header
        or "if-modified-since" in header
        or "if-unmodified-since" in header
        or "range" in header
    )
