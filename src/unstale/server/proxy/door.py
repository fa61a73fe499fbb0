"""Who may use the proxy: the same door as for copies, and what belongs to it stays here.

Rules of this file:
1. Beyond this machine the token is needed, as for reading copies. It may come as Authorization or, from clients that
   were told of a proxy, as Proxy-Authorization.
2. The token is ours: it never goes on to an origin. Other credentials are between the client and the origin.
3. On this machine a request must name a host that is ours, or a browser could be led here by another site's name.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection

from unstale.frozen import dataclass
from unstale.server.headers import Field
from unstale.server.problems import problem
from unstale.server.proxy.fields import Fields


@dataclass(frozen=True, slots=True)
class Door:
    """`closed` asks everybody for the token; `names` are the hosts that a request may name, all if empty."""

    token: str | None = None
    closed: bool = False
    names: Collection[str] = ()

    def refusal(self, host: str, fields: Fields, *, proxied: bool = False) -> tuple[int, list[Field], bytes] | None:
        """Why a request may not come in, None if it may; `proxied` ones came from a client that knows it speaks to a
        proxy."""
        if self.names and not proxied:
            name, _, port = host.rpartition(":")
            if host not in self.names and not (port.isdigit() and name in self.names):
                return problem(421, "this proxy does not go by the name that was asked for: add it to [server] names")
        if not self.closed or any(self._ours(fields.first(name)) for name in ("proxy-authorization", "authorization")):
            return None
        why = "the proxy needs a token from another machine: send Authorization: Bearer and the token of this proxy"
        status, asking = (407, b"proxy-authenticate") if proxied else (401, b"www-authenticate")
        return problem(status, why, (asking, b'Bearer realm="unstale"'))

    def stripped(self, fields: Fields) -> Fields:
        """What of a request's fields is not for us."""
        return fields.without({"authorization"}) if self._ours(fields.first("authorization")) else fields

    def _ours(self, authorization: str | None) -> bool:
        scheme, _, given = (authorization or "").partition(" ")
        # Always compared, so that a wrong token takes as long as a right one.
        same = hmac.compare_digest(given.strip().encode("latin-1"), (self.token or "").encode())
        return same and self.token is not None and scheme.lower() == "bearer"
