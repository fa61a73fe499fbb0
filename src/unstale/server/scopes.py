"""What a token with a few scopes opens: which scope a request needs, and whose token it brings.

Rules of this file:
1. Whatever is not named here needs the replica's own token: changing receivers, people, tokens and hubs among them.
2. A token that has ended opens nothing, and is looked up in the store at every request: ending one counts at once.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from unstale.service import FleetService
from unstale.service.tokens import PREFIX, ScopedToken, digest_of


class ScopedTokens:
    """The tokens of a store, by what a request says in Authorization."""

    def __init__(self, service: FleetService, clock: Callable[[], float]) -> None:
        self._service, self._clock = service, clock

    def of(self, authorization: bytes) -> ScopedToken | None:
        """The token that a request brings, if it is one that was made and has not ended."""
        scheme, _, given = authorization.partition(b" ")
        given = given.strip()
        if scheme.lower() != b"bearer" or not given.startswith(PREFIX.encode()):
            return None
        digest, now = digest_of(given.decode("latin-1")), self._clock()
        same = [one for one in self._service.tokens() if hmac.compare_digest(one.digest, digest)]
        return next((one for one in same if one.since <= now < one.until), None)


def secret(path: str) -> bool:
    """Whether even looking at a path is for operators: a hub's callback, which tokens there are, who changed what."""
    return path.endswith("/websub") or path.startswith(("/dashboard/tokens", "/api/v1/audit"))


def needed(method: str, path: str, safe: bool) -> str | None:
    """The scope that a request needs; None if none is enough.

    >>> needed("GET", "/api/v1/status", True), needed("POST", "/api/v1/sources/3/poll", False)
    ('read', 'poll')
    >>> needed("PATCH", "/api/v1/sources/3", False), needed("PUT", "/dashboard/receivers", False)
    ('edit', None)
    """
    if secret(path):
        return None
    if safe:
        return "read"
    if not path.startswith("/api/v1/"):
        return None
    hints = path.endswith(("/hint", "/poll")) or path == "/api/v1/hints"
    return "poll" if hints and method == "POST" else "edit"
