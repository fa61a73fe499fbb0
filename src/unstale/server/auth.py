"""Who may write, who may read, how much they may send, and where a server without a token may listen."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Collection, MutableMapping
from typing import Any

from starlette.exceptions import HTTPException

from unstale.errors import InputError, require, sentence
from unstale.server.copies import Receive, Scope, Send
from unstale.server.problems import problem
from unstale.server.scopes import ScopedTokens, needed, secret

#: characters of a token at least: 128 bits of hexadecimal digits
SHORTEST_TOKEN = 32
#: bytes of a request's body, and of one with a list of sources
LARGEST_BODY, LARGEST_LIST = 2**20, 50 * 2**20
TOO_LARGE = f"a body may have {LARGEST_BODY} bytes at most ({LARGEST_LIST} with lists of sources): send less at a time"
#: names by which this machine calls itself
OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")

#: what every 401 says
CHALLENGE = (b"www-authenticate", b'Bearer realm="unstale"')
_SAFE = ("GET", "HEAD", "OPTIONS")
#: paths that tell nothing but whether we live; a hub's path is its own secret
_OPEN, _HUBS = ("/healthz", "/readyz"), ("/websub/", "/webhook/")
_LISTS = ("/api/v1/sources", "/api/v1/hints", "/api/v1/removals", "/api/v1/edits", "/api/v1/lists")
#: spellings of our own names that are remembered
_PASSED = 64


class Guard:
    """Lets requests pass that may; the others are refused before anything of their body is read.

    Writing needs `Authorization: Bearer TOKEN`, and so does reading if it is `closed`. `names` are the hosts that a
    request may name, all if empty: a browser that was led here by another site's name is sent away. `offered` says
    whether a path has a method: who asks for one that it has not is told that, whoever it is. `scoped` knows tokens
    that open a part.
    """

    def __init__(
        self,
        app: Any,
        token: str | None,
        *,
        closed: bool = False,
        names: Collection[str] = (),
        offered: Callable[[Scope], bool] = lambda scope: True,
        scoped: ScopedTokens | None = None,
    ) -> None:
        self._scoped = scoped
        self._app, self._token = app, None if token is None else token.encode()
        self._offered = offered
        self._closed, self._names = closed, frozenset(name.lower().encode() for name in names)
        #: Host fields as they were sent and let pass
        self._passed: set[bytes] = set()

    def at_once(self, scope: Scope) -> bool:
        """Whether a request for a copy can pass without a closer look, which nearly all can."""
        if self._closed:
            return False
        host = _host(scope)
        return host is not None and (not self._names or host in self._passed)

    def lets(self, host: str) -> bool:
        """The same of a request that names this one host."""
        return not self._closed and (not self._names or host.encode("latin-1") in self._passed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked, path, method = dict(scope["headers"]), scope["path"], scope["method"]
        limit = LARGEST_LIST if path in _LISTS else LARGEST_BODY
        refused = self.misled(scope) or (self._stranger(method, path, asked) if self._offered(scope) else None)
        length = asked.get(b"content-length", b"0")
        if refused is None and not (length.isdigit() and len(length) < 16 and int(length) <= limit):
            refused = problem(413, TOO_LARGE)
        if refused is not None:
            status, fields, body = refused
            await send({"type": "http.response.start", "status": status, "headers": fields})
            await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})
            return
        await self._app(scope, receive if method in ("GET", "HEAD") else _capped(receive, limit), send)

    def misled(self, scope: Scope) -> Any:
        """The refusal of a request that names a host which we are not, none, or several; None if it may pass."""
        host = _host(scope)
        if host is None:
            return problem(400, "a request must name one host: send one Host field")
        name, colon, port = host.lower().rpartition(b":")
        if not self._names or (name if colon and port.isdigit() else host.lower()) in self._names:
            if len(self._passed) < _PASSED:
                self._passed.add(host)
            return None
        return problem(421, "this replica does not go by the name that was asked for: add it to [server] names")

    def _stranger(self, method: str, path: str, asked: dict[bytes, bytes]) -> Any:
        """The refusal of a request that needs the token and has none."""
        # Copies refuse writing themselves, whoever asks.
        writes = (method not in _SAFE and not path.startswith("/cop")) or secret(path)
        if path in _OPEN or path.startswith(_HUBS) or not (writes or self._closed):
            return None
        authorization = asked.get(b"authorization", b"")
        if self._knows(authorization):
            return None
        if self._scoped is not None and (found := self._scoped.of(authorization)) is not None:
            if needed(method, path, not writes) in found.scopes:
                return None
            may = ", ".join(found.scopes)
            return problem(403, f"this token may not do that, its scopes are {may}: take one that may")
        what = "writing" if writes else "reading from another machine"
        why = f"{what} needs a token: send Authorization: Bearer and the token of this replica"
        if self._token is None:
            why = "this replica can only be read: start it with a token in UNSTALE_TOKEN to write"
        return problem(401, why, CHALLENGE)

    def _knows(self, authorization: bytes) -> bool:
        scheme, _, given = authorization.partition(b" ")
        # Always compared, so that a wrong token takes as long as a right one.
        same = hmac.compare_digest(given.strip(), self._token or b"")
        return same and self._token is not None and scheme.lower() == b"bearer"


def _host(scope: Scope) -> bytes | None:
    """The host that a request names, None unless it names one; before HTTP/1.1 it may name none."""
    found = None
    for name, value in scope["headers"]:
        if name == b"host":
            if found is not None:
                return None
            found = value
    return b"" if found is None and scope.get("http_version") == "1.0" else found


def _capped(receive: Receive, limit: int) -> Receive:
    """A body that was announced small, or not at all, ends where it grows too large."""
    total = 0

    async def capped() -> MutableMapping[str, Any]:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise HTTPException(413)
        return message

    return capped


def is_near(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return ipaddress.ip_address(host.partition("%")[0]).is_loopback


def check_binding(host: str, token: str | None) -> None:
    """Refuse a token that can be guessed, and to listen at an address beyond this machine without one."""
    if token is not None:
        require(
            len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable() and " " not in token,
            "UNSTALE_TOKEN",
            f"of {len(token)} characters",
            f"must have {SHORTEST_TOKEN} or more, without blanks",
            "make one with: python -c 'import secrets; print(secrets.token_hex())'",
        )
    if not is_near(host) and token is None:
        raise InputError(
            sentence(
                "listen",
                repr(host),
                "can be reached from other machines and needs a token",
                "set UNSTALE_TOKEN, or listen on 127.0.0.1",
            )
        )
