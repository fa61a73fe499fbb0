"""`GET /copies/{id}` and `GET /copy?source=ADDRESS`: copies, as fresh as the store knows them when they are sent.

With `/_meta` behind the path: what is known of the copy, under the same bounds, without its bytes.

Rules of this file:
1. Every request asks whether the store has moved. What is kept in memory (`held`) only saves work.
2. A request's bounds are met from the copy, else by one poll, else refused with 504. Nothing older is sent silently.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from unstale.errors import InputError, StoreError
from unstale.ports import Head, ReadStore
from unstale.server import bounds, encodings, headers
from unstale.server.conditions import Reply, reply
from unstale.server.headers import Field, TextField
from unstale.server.heads import Heads
from unstale.server.held import MEMORY, Coded, HeldCopies, HeldCopy, coded
from unstale.server.meta import meta
from unstale.server.outlooks import KnownCopy, Outlooks
from unstale.server.problems import problem
from unstale.server.shelf import Asker

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
PlainReply = tuple[int, list[TextField], Coded]

#: seconds that a request waits for a poll
PATIENCE = 10.0
#: seconds that somebody waits who only pressed a browser's reload button
RELOAD = 2.0
#: a poll that was under way when the request came may have begun so many seconds before
UNDER_WAY = 30.0
#: what Cache-Status says of a copy that is older than was asked for, and sent because the client said how old it may be
UNMET = b"bound-unmet"
#: copies that were polled again and are looked at together while requests wait
RENEWED = 32
#: requests that may wait for polls at a time
WAITING = 200
#: parameters of a query that are read
_PARAMETERS = 16
#: header fields of a request that are read
_READ = frozenset(
    b"accept-encoding cache-control if-match if-modified-since if-none-match if-range if-unmodified-since range "
    b"sec-fetch-mode upgrade-insecure-requests".split()
)
#: what a server says that can send a stretch of a copy as it is
STRETCHES = "unstale.stretches"
#: behind the path of a copy: only what is known of it
META = "/_meta"
_ALLOW = (b"allow", b"GET, HEAD")


class Copies:
    """An ASGI application. Without an asker it serves what is there and polls for nobody."""

    def __init__(
        self,
        shelf: ReadStore,
        clock: Callable[[], float],
        *,
        name: str = "unstale",
        asker: Asker | None = None,
        patience: float = PATIENCE,
        memory: int = MEMORY,
    ) -> None:
        self._shelf, self._clock, self._asker = shelf, clock, asker
        self._name = headers.structured_name(name)
        self._patience = patience
        self._outlooks, self._held = Outlooks(shelf, clock, self._name.decode()), HeldCopies(shelf, memory)
        self._heads = Heads(shelf, self._polled)
        self._waiting = 0
        #: answers by their status, and copies that were read since `take` was last called, by source
        self.served: dict[int, int] = {}
        self._read: dict[int, int] = {}

    def take(self) -> dict[int, int]:
        """How often each source was read since the last time."""
        counts, self._read = self._read, {}
        return counts

    def _polled(self, heads: Sequence[Head]) -> None:
        """Of what was polled since, all that requests need next, read together: one by one costs ten times as much."""
        self._outlooks.renew(heads)
        self._renew(heads)

    def _renew(self, heads: Sequence[Head]) -> None:
        """Copies as they stand now, some at a time, so that requests need not wait for all."""
        self._held.renew(heads[:RENEWED])
        if len(heads) > RENEWED:
            asyncio.get_running_loop().call_soon(self._renew, heads[RENEWED:])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the path is one of ours."""
        try:
            status, fields, body = await self._answer(scope)
        except InputError as error:
            status, fields, body = problem(400, str(error))
        except StoreError as error:
            status, fields, body = problem(500, str(error))
        self.served[status] = self.served.get(status, 0) + 1
        await send({"type": "http.response.start", "status": status, "headers": fields})
        if scope["method"] == "HEAD":
            body = b""
        elif STRETCHES not in scope.get("extensions", ()):
            body = bytes(body)
        await send({"type": "http.response.body", "body": body})

    def at_hand(self, source: int, accept: str, if_none_match: str | None) -> PlainReply | None:
        """The newest copy for whoever asks for nothing else, as `__call__` answers; None unless it is all in memory."""
        head = self._heads.of(source)
        held = None if head is None else self._held.at_hand(source, head)
        if head is None or held is None:
            return None
        now, sent = self._clock(), held.ready(accept)
        seen = self._outlooks.known(source, head, now)
        return None if sent is None or seen is None else self._plain(source, held, sent, seen, now, if_none_match)

    async def plain(self, source: int, accept: str, if_none_match: str | None) -> PlainReply | None:
        """The same, after whatever must be looked up for it; None if there is no copy."""
        if (reply := self.at_hand(source, accept, if_none_match)) is not None:
            return reply
        head = self._heads.of(source)
        held = self._held.of(source, head) if head is not None and head.version else None
        if head is None or held is None:
            return None
        now = self._clock()
        sent = await self._held.coded(source, held, accept)
        seen = self._outlooks.known(source, head, now) or await self._outlooks.look(source, head, now)
        return self._plain(source, held, sent, seen, now, if_none_match)

    def _plain(
        self, source: int, held: HeldCopy, sent: Coded, seen: KnownCopy, now: float, if_none_match: str | None
    ) -> PlainReply:
        times, status = held.times, 200
        age, hit, standing = times.moving(now, seen.believed, seen.said)
        fields = [*times.fixed, ("age", age), ("cache-status", hit), ("replica-status", standing)]
        if if_none_match is not None and headers.matches(if_none_match, sent.etag):
            status = 304
        fields += sent.texts_304 if status == 304 else sent.texts
        self._read[source] = self._read.get(source, 0) + 1
        self.served[status] = self.served.get(status, 0) + 1
        return status, fields, sent

    async def _answer(self, scope: Scope) -> Reply:
        if scope["method"] not in ("GET", "HEAD"):
            return problem(405, "copies can only be read: use GET or HEAD", _ALLOW)
        asked: dict[bytes, str] = {}
        for name, text in scope["headers"]:
            if name not in _READ:
                continue
            asked[name] = f"{asked[name]}, {text.decode('latin-1')}" if name in asked else text.decode("latin-1")
        query = _query(scope["query_string"]) if scope["query_string"] else {}
        more: list[Field] = []
        path, about = scope["path"].removesuffix(META), scope["path"].endswith(META)
        if path == "/copy":
            address = query.pop("source", "")
            source = self._shelf.find(address) if address else None
            if source is None:
                return problem(404, "no source has this address: give it as ?source=, percent-encoded, as it is listed")
            more = [(b"content-location", b"/copies/%d" % source)]
        else:
            source = source_of(path.removeprefix("/copies/"))
            if source is None:
                return problem(404, "a copy's path is /copies/ and the id of its source, a whole number")
        cache_control = asked.get(b"cache-control", "")
        wish = bounds.read(cache_control, query) if cache_control or query else bounds.NONE
        head = self._heads.of(source)
        if head is None:
            return problem(404, f"there is no source {source}")
        now = self._clock()
        if wish.version is not None and not about:
            return await self._version(source, wish.version, scope["method"], asked, more, now)
        detail = b""
        if wish is not bounds.NONE:
            met = await self._meet(source, head, wish, asked, now)
            if not isinstance(met, bytes):
                return met
            detail, head, now = met, self._heads.of(source) or head, self._clock()
        if not head.version:
            return problem(503, f"source {source} has no copy yet", _retry(head, now))
        if about:
            return await self._about(source, head, wish.version or head.version, now)
        if scope["method"] == "GET":
            self._read[source] = self._read.get(source, 0) + 1
        return await self._newest(source, head, scope["method"], asked, more, now, detail)

    async def _meet(
        self, source: int, head: Head, wish: bounds.Bounds, asked: dict[bytes, str], begun: float
    ) -> Reply | bytes:
        """What to say along with the copy if it may be sent, nothing if it meets the bounds; else the refusal."""
        broken, now = _unmet(wish, head, begun), begun
        if not broken:
            return b""
        # What a browser's reload button sends is a wish, not a program's bound. Where the connection is not secure it
        # does not say how it was pressed, but asks to be led to a secure one.
        mode = asked.get(b"sec-fetch-mode")
        reload = mode in ("navigate", "no-cors") or (mode is None and b"upgrade-insecure-requests" in asked)
        after: Head | None = None
        if not wish.only_if_cached and self._asker is not None and self._waiting < WAITING:
            self._waiting += 1
            deadline = begun + (min(RELOAD, self._patience) if reload else self._patience)
            try:
                after = await self._asker.ask(source, deadline)
                if after is not None and not after.failures and 0.0 < begun - after.checked < UNDER_WAY:
                    # It was under way when the request came: the next one begins after it.
                    now = self._clock()
                    if _unmet(wish, after, now, now - begun):
                        after = await self._asker.ask(source, deadline) or after
            finally:
                self._waiting -= 1
            now = self._clock()
            if after is not None:
                head = after
                broken = _unmet(wish, head, now, None if head.failures else now - begun)
                if not broken:
                    return b""
        if reload and head.version:
            return UNMET
        late = now - headers.expires_at(head)
        if wish.stale_if_error is not None and head.version and late <= wish.stale_if_error and not wish.only_if_cached:
            return UNMET
        why = "" if after is None else ", and the poll for it failed" if after.failures else ", and a poll did not help"
        more = [_retry(head, now), (b"cache-status", self._name + b"; fwd=request")]
        if head.version:
            # What could be had without the bound. Not as Age, which would speak of this refusal.
            more.append((b"replica-status", b"as-of=@%d, version=%d" % (head.checked, head.version)))
        return problem(504, broken + why, *more)

    async def _newest(
        self,
        source: int,
        head: Head,
        method: str,
        asked: dict[bytes, str],
        more: list[Field],
        now: float,
        detail: bytes,
    ) -> Reply:
        held = self._held.of(source, head)
        if held is None:
            return problem(503, f"source {source} has no copy yet", _retry(head, now))
        sent = await self._held.coded(source, held, asked.get(b"accept-encoding", ""))
        seen = self._outlooks.known(source, head, now) or await self._outlooks.look(source, head, now)
        fields = held.times.at(now, seen.believed, detail)
        fields += sent.about
        fields += more
        return reply(sent.etag, sent.body, fields, method, asked)

    async def _about(self, source: int, head: Head, version: int, now: float) -> Reply:
        (edition,) = self._shelf.editions([(source, version)])
        if edition is None:
            return problem(404, f"version {version} of source {source} is not kept")
        seen = await self._outlooks.look(source, head, now)
        return meta(head, edition, now, seen.believed)

    async def _version(
        self, source: int, version: int, method: str, asked: dict[bytes, str], more: list[Field], now: float
    ) -> Reply:
        (edition,), packed = self._shelf.editions([(source, version)]), self._shelf.packed(source, version)
        if edition is None or packed is None:
            those = ", ".join(map(str, self._shelf.versions(source))) or "none"
            return problem(404, f"version {version} of source {source} is not kept: there are {those}")
        coding = encodings.choose(asked.get(b"accept-encoding", ""), edition.size, len(packed))
        sent = await coded(packed, edition, coding, headers.content(source, edition))
        fields = headers.kept(edition, now, self._name) + sent.about + more
        return reply(sent.etag, sent.body, fields, method, asked)


def source_of(text: str) -> int | None:
    """The source that a copy's path names; None if it names none.

    >>> source_of("12"), source_of("012"), source_of("²"), source_of("")
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 and text[0] != "0" else None


def _unmet(wish: bounds.Bounds, head: Head, now: float, waited: float | None = None) -> str:
    return wish.unmet(now, head.checked, headers.expires_at(head) - now, head.version, waited)


def _query(text: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=_PARAMETERS)
    except ValueError:
        raise InputError(f"the query must have at most {_PARAMETERS} parameters: leave some out") from None
    return dict(pairs)


def _retry(head: Head, now: float) -> Field:
    """Retry-After: when the next poll is due, at least a second and at most a day from now."""
    return b"retry-after", b"%d" % min(max(head.due - now + 1.0, 1.0), 86_400.0)
