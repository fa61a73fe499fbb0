"""The way into the dashboard: its files for everybody, everything else for who has logged in or need not.

Rules of this file:
1. A session opens what its role may do by being turned into the replica's token; the guard behind decides as ever.
2. A browser writes only from our own pages: the same origin, and the session's word in a header.
3. A request that brings its own Authorization is none of ours.
4. Whatever changes something is written down: who did it, when, and what it was called; not what was sent, which may be
   secret. That goes to the log; what was done is kept in the store by who does it, under the name that is told here.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from unstale.logs import log
from unstale.server.auth import CHALLENGE
from unstale.server.copies import Receive, Scope, Send
from unstale.server.dashboard.files import SAID, table
from unstale.server.headers import Field
from unstale.server.problems import problem
from unstale.server.scopes import ScopedTokens, secret
from unstale.server.sessions import LASTING, Role, Sessions, TooMany
from unstale.server.shapes import stamp
from unstale.service.edits import acting

#: the word that a write must repeat
WORD = b"x-unstale-word"
#: bytes of a login, and seconds in which it must have come
LARGEST, PATIENCE = 4096, 10.0

_SAFE = ("GET", "HEAD", "OPTIONS")
_PLAIN, _SECURE = "unstale", "__Host-unstale"
Reply = tuple[int, list[Field], bytes]


class Door:
    """An ASGI application in front of the replica's. `home` is what may be done without logging in.

    `kept` says in words where the token is kept, for who is asked for it; `icons`: sites are shown with theirs. What is
    done here and nowhere else is told to `note`.
    """

    def __init__(
        self,
        app: Any,
        sessions: Sessions,
        token: str,
        *,
        home: Role | None = None,
        kept: str = "",
        scoped: ScopedTokens | None = None,
        icons: bool = False,
        note: Callable[[str], object] = lambda what: None,
    ) -> None:
        self._kept, self._scoped, self._icons, self._note = kept, scoped, icons, note
        self._app, self._sessions, self._token, self._home = app, sessions, token.encode(), home
        # Those who need not log in repeat a word too: another site cannot read it.
        self._word = secrets.token_urlsafe(32)
        self._own = {
            "/dashboard/session": ("GET", self._session),
            "/dashboard/login": ("POST", self._login),
            "/dashboard/logout": ("POST", self._logout),
            "/dashboard/people": ("GET", self._people),
            "/dashboard/people/end": ("POST", self._end),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is ours, pass on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked, method = dict(scope["headers"]), scope["method"]
        reply: Reply | None
        # What is answered here has not passed the replica's own door, which asks for the host that is meant.
        ours = scope["path"] in self._own or scope["path"] in table()
        if ours and (refused := self._app.misled(scope)) is not None:
            reply = refused
        elif (file := table().get(scope["path"])) is not None and method in ("GET", "HEAD"):
            same = asked.get(b"if-none-match") == file.etag
            reply = (
                304 if same else 200,
                [f for f in file.fields if not (same and f[0] == b"content-length")],
                b"" if same else file.body,
            )
        elif scope["path"] in self._own:
            way, does = self._own[scope["path"]]
            reply = (
                await does(scope, receive, asked)
                if method == way
                else problem(405, "this method is not for this path", (b"allow", way.encode()))
            )
        else:
            reply = self._let(scope, asked)
        if reply is None:
            written = method not in _SAFE and scope["path"].startswith(
                ("/api/", "/dashboard/receivers", "/dashboard/tokens")
            )
            if not written:
                await self._app(scope, receive, send)
                return
            who = self._name(asked)
            with acting(who):
                await self._app(scope, receive, _noting(who, scope, send))
            return
        status, fields, body = reply
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})

    def _let(self, scope: Scope, asked: dict[bytes, bytes]) -> Reply | None:
        """Add the token for who may have it; a refusal where a browser was led astray."""
        role, word = self._who(asked)
        if b"authorization" in asked or role is None:
            return None
        # Copies refuse writing themselves, whoever asks.
        if scope["path"].startswith(("/copies/", "/copy")):
            writes = False
        else:
            writes = scope["method"] not in _SAFE or secret(scope["path"])
        if writes and role != "operator":
            # Nobody who has not logged in is a reader who may not: the guard asks him who he is.
            known = self._sessions.of(_key(asked)) is not None and self._app.offers(scope)
            return problem(403, "a reader may only look: log in as operator") if known else None
        if writes and scope["method"] not in _SAFE:
            # Nothing that a program would send: it is asked for the token as ever.
            if WORD not in asked and b"sec-fetch-site" not in asked and b"origin" not in asked:
                return None
            if not (_same_origin(asked) and hmac.compare_digest(asked.get(WORD, b""), word.encode())):
                return problem(403, "this was not sent by the dashboard: reload it and try again")
        scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer " + self._token)]
        return None

    def _name(self, asked: dict[bytes, bytes]) -> str:
        session = self._sessions.of(_key(asked))
        if session is not None:
            return session.name
        given = asked.get(b"authorization")
        found = None if given is None or self._scoped is None else self._scoped.of(given)
        return "somebody here" if given is None else "token" if found is None else f"token {found.name}"

    async def _people(self, scope: Scope, receive: Receive, asked: dict[bytes, bytes]) -> Reply:
        """Who is logged in: for operators."""
        if self._who(asked)[0] != "operator":
            return problem(403, "only an operator sees who is logged in: log in as one")
        own = self._sessions.of(_key(asked))
        sessions = [
            {
                "mark": mark,
                "name": one.name,
                "role": one.role,
                "place": one.place,
                "since": stamp(one.since),
                "until": stamp(one.until),
                "own": one is own,
            }
            for mark, one in self._sessions.listed()
        ]
        return _told({"sessions": sessions[::-1]})

    async def _end(self, scope: Scope, receive: Receive, asked: dict[bytes, bytes]) -> Reply:
        """End a login, one's own or another's."""
        role, word = self._who(asked)
        if role != "operator":
            return problem(403, "only an operator ends logins: log in as one")
        if not (_same_origin(asked) and hmac.compare_digest(asked.get(WORD, b""), word.encode())):
            return problem(403, "this was not sent by the dashboard: reload it and try again")
        try:
            mark = json.loads(await asyncio.wait_for(_body(receive), PATIENCE))["mark"]
        except (ValueError, KeyError, TypeError, TimeoutError, RecursionError):
            return problem(400, 'send {"mark": "that of a login"}')
        ended = isinstance(mark, str) and self._sessions.end(mark)
        if ended:
            who = self._name(asked)
            log("edited", {"who": who, "what": f"ended login {mark}"})
            with acting(who):
                await asyncio.to_thread(self._note, f"ended login {mark}")
        return _told({"ended": ended})

    def _who(self, asked: dict[bytes, bytes]) -> tuple[Role | None, str]:
        session = self._sessions.of(_key(asked))
        return (self._home, self._word) if session is None else (session.role, session.csrf)

    async def _session(self, scope: Scope, receive: Receive, asked: dict[bytes, bytes]) -> Reply:
        role, word = self._who(asked)
        known = self._sessions.of(_key(asked)) is not None
        told = {"role": role, "word": word if role else "", "logged_in": known, "login": self._sessions.possible}
        return _told({**told, "kept": self._kept, "icons": self._icons})

    async def _login(self, scope: Scope, receive: Receive, asked: dict[bytes, bytes]) -> Reply:
        if not _same_origin(asked):
            return problem(403, "log in from the dashboard itself")
        try:
            given = json.loads(await asyncio.wait_for(_body(receive), PATIENCE))
            secret = given["secret"] if isinstance(given["secret"], str) else ""
        except (ValueError, KeyError, TypeError, TimeoutError, RecursionError):
            return problem(400, 'send {"secret": "the token or the password"}')
        try:
            entered = await self._sessions.login(secret, (scope.get("client") or ("",))[0], _key(asked))
        except TooMany as many:
            return problem(
                429, f"too many attempts: try again in {many.wait:.0f} s", (b"retry-after", b"%d" % (many.wait + 1))
            )
        if entered is None:
            return problem(401, "that is neither the token nor a password of this replica", CHALLENGE)
        key, session = entered
        # The browser tells how it sees us, whatever stands in between.
        secure = asked.get(b"origin", b"").startswith(b"https://")
        return _told({"role": session.role}, _cookie(key, int(LASTING), secure))

    async def _logout(self, scope: Scope, receive: Receive, asked: dict[bytes, bytes]) -> Reply:
        if not _same_origin(asked):
            return problem(403, "log out from the dashboard itself")
        self._sessions.logout(_key(asked))
        return _told({"role": self._home}, _cookie("", 0, False), _cookie("", 0, True))


def _noting(who: str, scope: Scope, send: Send) -> Send:
    """Send an answer, and log that something was changed if it says so."""

    async def noting(message: Any) -> None:
        if message["type"] == "http.response.start" and message["status"] < 400:
            log("edited", {"who": who, "what": f"{scope['method']} {scope['path']}"[:200]})
        await send(message)

    return noting


def _same_origin(asked: dict[bytes, bytes]) -> bool:
    """Whether a browser sent this from a page of ours; without either header it cannot be known, and is not."""
    site, origin = asked.get(b"sec-fetch-site"), asked.get(b"origin")
    if site is not None and site != b"same-origin":
        return False
    if origin is not None:
        return origin.partition(b"://")[2].lower() == asked.get(b"host", b"").lower() != b""
    return site is not None


def _key(asked: dict[bytes, bytes]) -> str:
    try:
        cookies = SimpleCookie(asked.get(b"cookie", b"")[:LARGEST].decode("latin-1"))
    except CookieError:
        return ""
    return next((cookies[name].value for name in (_SECURE, _PLAIN) if name in cookies), "")


def _cookie(key: str, lasting: int, secure: bool) -> Field:
    name, flag = (_SECURE, "; Secure") if secure else (_PLAIN, "")
    return b"set-cookie", f"{name}={key}; Path=/; Max-Age={lasting}; HttpOnly; SameSite=Strict{flag}".encode()


def _told(body: dict[str, Any], *more: Field) -> Reply:
    data = json.dumps(body).encode()
    kept = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(data)))
    return 200, [*kept, (b"cache-control", b"no-store"), *SAID, *more], data


async def _body(receive: Receive) -> bytes:
    data = bytearray()
    while True:
        message = await receive()
        data += message.get("body", b"")
        if len(data) > LARGEST:
            raise ValueError
        if not message.get("more_body") or message["type"] == "http.disconnect":
            return bytes(data)
