"""One origin's answers: asked for by condition where something is held, and kept on their way to the client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from unstale.frozen import dataclass
from unstale.server.dates import as_date
from unstale.server.proxy import rules
from unstale.server.proxy.fields import Directives, Fields
from unstale.server.proxy.replies import reply
from unstale.server.proxy.stored import Stock, Stored, selecting
from unstale.server.proxy.upstream import Answered, Interim, Upstream

#: bytes of a storable body that are read before the client gets its first, so that others can wait for the whole
AHEAD = 2**20
#: seconds that stand for no end
ENDLESS = 31_536_000.0
#: by which a client or a cache asks whether what it holds is still good
CONDITIONS = ("if-none-match", "if-modified-since")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a client, ready to be sent on; `wish` are its directives."""

    method: str
    address: str
    fields: Fields
    wish: Directives
    body: bytes | None = None
    #: hears of interim answers to this request
    interim: Interim | None = None


@dataclass(frozen=True, slots=True)
class Served:
    """The answer for a client. `how` is what Cache-Status says of it; a body that is not there yet is iterated."""

    status: int
    fields: Fields
    body: bytes | AsyncIterator[bytes]
    how: str
    #: the answer it is passed on from: to be closed when the body is taken or no longer wanted, and then has trailers
    answered: Answered | None = None


class Origin:
    """Asks for a cache and fills its stock; `largest` bounds the bytes of one stored body."""

    def __init__(
        self,
        upstream: Upstream,
        stock: Stock,
        learned: Callable[[str], float | None],
        largest: int,
        now: Callable[[], float],
        priced: bool = False,
    ) -> None:
        self._upstream, self._stock, self._learned, self._priced = upstream, stock, learned, priced
        self._largest, self._now = largest, now

    async def confirm(self, asked: Asked, held: list[Stored]) -> tuple[Stored | None, Answered, float]:
        """The held response that a 304 confirmed, freshened, or None and the answer; and when it was asked for."""
        conditions: tuple[tuple[str, str], ...] = ()
        if len(held) == 1 and held[0].selecting == selecting([n for n, _ in held[0].selecting], asked.fields):
            conditions = rules.validators(held[0].fields)
        elif not any(name in asked.fields for name in CONDITIONS):
            # Another variant may be the answer to this request too: its entity tag asks.
            tags = [tag for stored in held if (tag := stored.fields.first("etag"))]
            conditions = (("if-none-match", ", ".join(tags)),) if tags else ()
        fields = Fields((*asked.fields.without(CONDITIONS).lines, *conditions)) if conditions else asked.fields
        asked_at = self._now()
        answered = await self._upstream.ask(asked.method, asked.address, fields.lines, None, asked.interim)
        if answered.status != 304 or not conditions:
            return None, answered, asked_at
        await answered.close()
        meant = [stored for stored in held if rules.confirms(stored, Fields.of(answered.lines))]
        if len(meant) != 1:
            # It confirms something we do not hold; only the whole answer helps.
            plain = replace(asked, fields=asked.fields.without(CONDITIONS))
            return None, await self._upstream.ask("GET", asked.address, plain.fields.lines), asked_at
        return self.freshened(meant[0], asked, answered, asked_at), answered, asked_at

    def _guess(self, address: str, fields: Fields) -> float | None:
        """How long an answer lasts that does not say so: as learned; while the price decides, until it does not pay."""
        return ENDLESS if self._priced and rules.validators(fields) else self._learned(address)

    def freshened(self, stored: Stored, asked: Asked, answered: Answered, asked_at: float) -> Stored:
        """A stored response that an answer confirmed, with its new fields, and kept."""
        fresh = rules.freshened(
            stored,
            Fields.of(answered.lines),
            asked_at=asked_at,
            taken_at=self._now(),
            request=asked.fields,
            learned=self._guess(asked.address, stored.fields),
        )
        self._stock.put(fresh)
        return fresh

    async def complete(self, asked: Asked, stored: Stored) -> Served | None:
        """The whole, of which the beginning is stored, by asking for the rest [RFC 9111 3.3]; None if that fails.

        Parts belong together if their strong entity tags are equal [RFC 9110 15.3.7.3]; without one the origin may
        still send the whole.
        """
        part, etag = stored.part, stored.fields.first("etag") or ""
        if part is None or part.first or part.total is None or part.last + 1 >= part.total:
            return None
        if any(name in asked.fields for name in ("range", *CONDITIONS)):
            return None
        strong = [("if-range", etag)] if etag.startswith('"') else []
        lines = asked.fields.having(("range", f"bytes={part.last + 1}-"), *strong).lines
        asked_at = self._now()
        answered = await self._upstream.ask("GET", asked.address, lines, None, asked.interim)
        fields, taken_at = Fields.of(answered.lines), self._now()
        if answered.status == 200:
            return await self.deliver(asked, answered, asked_at, stored, "partial")
        rest = rules.part_of(fields) if answered.status == 206 else None
        fits = rest is not None and (rest.first, rest.last, rest.total) == (part.last + 1, part.total - 1, part.total)
        if not (strong and fits and fields.first("etag") == etag and part.total <= self._largest):
            await answered.close()
            return None
        body = stored.body + b"".join([chunk async for chunk in answered.body])
        merged = fields.without({"content-range"}).having(("content-length", str(len(body))))
        kept = rules.to_store(asked.address, 200, asked.fields, merged, asked_at=asked_at, taken_at=taken_at)
        done = rules.whole(kept, body) if kept is not None and len(body) == part.total else None
        if done is not None:
            self._stock.put(done)
        elif len(body) != part.total:
            return None
        told = "fwd=partial; fwd-status=206" + ("; stored" if done else "")
        return Served(200, passed(merged, taken_at), body, told)

    async def deliver(self, asked: Asked, answered: Answered, asked_at: float, old: Stored | None, why: str) -> Served:
        """The answer as it came; kept on the way if it may be, and in place of what it replaces."""
        status, fields = answered.status, Fields.of(answered.lines)
        taken_at = self._now()
        told = f"fwd={why}; fwd-status={status}"
        learned = self._guess(asked.address, fields)
        kept = rules.to_store(
            asked.address, status, asked.fields, fields, asked_at=asked_at, taken_at=taken_at, learned=learned
        )
        if kept is None:
            if old is not None and status < 500 and status != 304:
                self._stock.drop(old)
            return Served(status, passed(fields, taken_at), answered.body, told, answered)
        ahead, size = [], 0
        pieces = answered.body
        async for chunk in pieces:
            ahead.append(chunk)
            size += len(chunk)
            if size > AHEAD:
                long = self._kept_on_the_way(kept, ahead, pieces)
                return Served(status, passed(fields, taken_at), long, f"{told}; stored", answered)
        body = b"".join(ahead)
        done = rules.whole(kept, body)
        if done is not None:
            self._stock.put(done)
        served = Served(status, passed(fields, taken_at), body, told + ("; stored" if done else ""), answered)
        # The client may hold the very response that we now hold too.
        if done is not None and status == 200 and any(name in asked.fields for name in CONDITIONS):
            found = reply(done, "GET", asked.fields.without({"range"}), taken_at)
            if found is not None and found.status == 304:
                return replace(served, status=304, fields=found.fields.without({"age"}), body=b"", answered=None)
        return served

    async def _kept_on_the_way(
        self, kept: Stored, chunks: list[bytes], rest: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """A long body: on to the client as it comes, and into the stock at its end if it is not too long for it."""
        for chunk in tuple(chunks):
            yield chunk
        size = sum(map(len, chunks))
        async for chunk in rest:
            size += len(chunk)
            if size <= self._largest:
                chunks.append(chunk)
            else:
                chunks.clear()
            yield chunk
        if chunks and (done := rules.whole(kept, b"".join(chunks))):
            self._stock.put(done)


def passed(fields: Fields, now: float) -> Fields:
    """What goes on to the client of an answer that was just received."""
    passed = fields.end_to_end()
    return passed if "date" in passed else passed.having(("date", as_date(now)))
