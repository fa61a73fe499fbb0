"""The cache between clients and origins: answer from the stock, or ask once for all who wait, and keep what may be."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched
from unstale.server.dates import read_date
from unstale.server.proxy import rules
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.origin import CONDITIONS, Asked, Origin, Served, passed
from unstale.server.proxy.pricing import Pricing
from unstale.server.proxy.replies import Reply, reply
from unstale.server.proxy.rules import Use
from unstale.server.proxy.stored import Stock, Stored, Watcher
from unstale.server.proxy.upstream import Upstream

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
#: what only the origin can judge: conditions that guard against overwriting
_ORIGINS_OWN = ("if-match", "if-unmodified-since")


class Cache:
    """A shared cache by RFC 9111 that knows nothing of servers.

    `learned` is the lifetime of an address in seconds, where a response does not tell one; `most` bounds the bytes
    of all stored responses, `largest` those of one. With `pricing`, what an origin leaves to us is asked for again
    when that pays. `watchers` hear what is kept and what no longer.
    """

    def __init__(
        self,
        upstream: Upstream,
        *,
        learned: Callable[[str], float | None] = lambda address: None,
        most: int = 256 * 2**20,
        largest: int = 16 * 2**20,
        pricing: Pricing | None = None,
        watchers: Sequence[Watcher] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._upstream, self._pricing, self._now = upstream, pricing, now
        self.stock = Stock(most, watchers=watchers if pricing is None else (pricing, *watchers))
        self._origin = Origin(upstream, self.stock, learned, largest, now, pricing is not None)
        self._coming: dict[str, asyncio.Future[None]] = {}
        self._behind: dict[str, asyncio.Task[None]] = {}

    async def answer(self, asked: Asked) -> Served | None:
        """What the client gets; None if it wants only what is stored, and nothing is. OSError if there is none."""
        if asked.method not in ("GET", "HEAD"):
            return await self._through(asked, "method")
        if "no-store" in asked.wish or any(name in asked.fields for name in _ORIGINS_OWN):
            return await self._through(asked, "request")
        if hit := self._from_stock(asked):
            return hit
        if "only-if-cached" in asked.wish:
            return None
        if asked.method == "HEAD":
            return await self._head(asked)
        if "no-cache" in asked.wish or any(name in asked.fields for name in ("range", *CONDITIONS)):
            return await self._ask(asked)
        return await self._together(asked)

    async def renew(self, address: str) -> Fetched:
        """Poll an address and keep what comes, whatever its lifetime; of several variants the newest stands for all.

        CHANGED if the body differs from the one that was held, UNCHANGED if not, else FAILED with a reason.
        """
        polled_at = self._now()
        held = [stored for stored in self.stock.variants(address) if stored.part is None]
        old = held[0] if held else None
        asked = Asked("GET", address, old.asked if old else Fields(), {})
        try:
            served = await self._take(asked)
        except OSError as error:
            return Fetched(Answer.FAILED, polled_at, reason=str(error))
        new = self.stock.find(address, asked.fields)
        if new is None or new.taken_at < polled_at or new.status >= 300:
            reason = f"the origin answered {served.status}, which is no copy to keep"
            return Fetched(Answer.FAILED, polled_at, reason=reason, status=served.status, address=address)
        same = old is not None and (old.status, old.body) == (new.status, new.body)
        modified = read_date(new.fields.first("last-modified"))
        return Fetched(
            Answer.UNCHANGED if same else Answer.CHANGED,
            polled_at,
            None if same else new.body,
            "" if same else new.fields.first("content-type") or "",
            new.fields.first("etag"),
            new.fields.first("last-modified"),
            () if same or modified is None else (modified,),
            status=new.status,
            address=address,
            received=0 if same else len(new.body),
        )

    async def close(self) -> None:
        """End what runs behind, and give back connections."""
        tasks = list(self._behind.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._upstream.close()

    def _from_stock(self, asked: Asked, how: str = "hit") -> Served | None:
        now = self._now()
        stored = self.stock.find(asked.address, asked.fields)
        use = rules.use(stored, asked.wish, now) if stored else Use.ASK
        if stored is not None and self._pricing is not None:
            use = self._judged(stored, use, asked, now)
        if stored is None or use is Use.ASK:
            return None
        found = reply(stored, asked.method, asked.fields, now)
        if found is not None and use is Use.ANSWER_AND_ASK:
            self._ask_behind(asked)
        return self._stored(found, stored, now, how) if found else None

    def _judged(self, stored: Stored, use: Use, asked: Asked, now: float) -> Use:
        """What to do with a stored response where the price has a say."""
        assert self._pricing is not None
        if asked.method == "GET":
            self._pricing.wanted(asked.address, now)
        if use is Use.ANSWER and not stored.told and "only-if-cached" not in asked.wish:
            return Use.ASK if self._pricing.pays(stored, now) else use
        if use is Use.ANSWER_AND_ASK:
            return use if self._pricing.pays(stored, now, behind=True) else Use.ANSWER
        return use

    def _stored(self, found: Reply, stored: Stored, now: float, how: str) -> Served:
        lasts = f"ttl={math.floor(stored.left(now))}" if stored.told or self._pricing is None else "detail=by-price"
        return Served(found.status, found.fields, found.body, f"{how}; {lasts}")

    def _ask_behind(self, asked: Asked) -> None:
        """Confirm a stale response that was just served; one at a time per address."""
        if asked.address not in self._behind:
            plain = replace(
                asked, method="GET", interim=None, fields=asked.fields.without({*CONDITIONS, "range", "if-range"})
            )
            task = asyncio.create_task(self._quietly(plain))
            self._behind[asked.address] = task
            task.add_done_callback(lambda _: self._behind.pop(asked.address, None))

    async def _quietly(self, asked: Asked) -> None:
        with suppress(OSError):  # The next client to ask meets it, and is told.
            await self._take(asked)

    async def _take(self, asked: Asked) -> Served:
        """Ask for the stock's sake alone: what is not kept is not read either."""
        served = await self._ask(asked, fails=True)
        try:
            if not isinstance(served.body, bytes) and served.how.endswith("stored"):
                async for _ in served.body:
                    pass
        finally:
            if served.answered is not None:
                await served.answered.close()
        return served

    async def _together(self, asked: Asked) -> Served:
        """Ask once for all who want the same; those who waited in vain ask for themselves."""
        coming = self._coming.get(asked.address)
        if coming is not None:
            await asyncio.shield(coming)
            return self._from_stock(asked, "fwd=miss; collapsed") or await self._ask(asked)
        coming = self._coming[asked.address] = asyncio.get_running_loop().create_future()
        try:
            return await self._ask(asked)
        finally:
            del self._coming[asked.address]
            coming.set_result(None)

    async def _ask(self, asked: Asked, fails: bool = False) -> Served:
        """Ask the origin, by condition if something is held. A stored response stands in for an origin that fails,
        unless `fails` says that the failure itself is wanted."""
        stored = self.stock.find(asked.address, asked.fields)
        priced = self._pricing is not None and stored is not None and not stored.told
        stale = stored is not None and (priced or stored.left(self._now()) <= 0.0)
        why = "stale" if stale else "request" if stored else "uri-miss"
        if stored is None and asked.address in self.stock:
            why = "vary-miss"
        held = [stored] if stored else [] if "range" in asked.fields else self.stock.variants(asked.address)
        if stored and stored.part:
            held, why = [], "partial"
        try:
            if stored and (served := await self._origin.complete(asked, stored)):
                return served
            confirmed, answered, asked_at = await self._origin.confirm(asked, held)
        except OSError:
            if stand_in := None if fails else self._stand_in(asked, stored):
                return stand_in
            raise
        now = self._now()
        if confirmed is not None:
            if found := reply(confirmed, asked.method, asked.fields, now):
                return Served(found.status, found.fields, found.body, f"fwd={why}; fwd-status=304; stored")
            return await self._through(asked, why)
        if answered.status in rules.FAILED and (stand_in := None if fails else self._stand_in(asked, stored)):
            await answered.close()
            return stand_in
        return await self._origin.deliver(asked, answered, asked_at, stored, why)

    def _stand_in(self, asked: Asked, stored: Stored | None) -> Served | None:
        now = self._now()
        if stored is None or not rules.stands_in(stored, asked.wish, now):
            return None
        found = reply(stored, asked.method, asked.fields, now)
        return self._stored(found, stored, now, "fwd=stale; detail=origin-failed") if found else None

    async def _head(self, asked: Asked) -> Served:
        """Ask the origin for the head, which confirms a stored response or tells that it is stale [RFC 9111 4.3.5]."""
        asked_at = self._now()
        stored = self.stock.find(asked.address, asked.fields)
        why = "stale" if stored else "uri-miss"
        try:
            answered = await self._upstream.ask("HEAD", asked.address, asked.fields.lines)
        except OSError:
            if stand_in := self._stand_in(asked, stored):
                return stand_in
            raise
        await answered.close()
        now = self._now()
        told = f"fwd={why}; fwd-status={answered.status}"
        if stored is not None and answered.status == 200:
            if stored.status == 200 and rules.agrees(stored, Fields.of(answered.lines)):
                fresh = self._origin.freshened(stored, asked, answered, asked_at)
                if found := reply(fresh, "HEAD", asked.fields, now):
                    return Served(found.status, found.fields, b"", f"{told}; stored")
            else:
                self.stock.drop(stored)
        return Served(answered.status, passed(Fields.of(answered.lines), now), b"", told)

    async def _through(self, asked: Asked, why: str) -> Served:
        """Pass a request on; where it may have changed something, forget what that makes doubtful [RFC 9111 4.4]."""
        asked_at = self._now()
        answered = await self._upstream.ask(asked.method, asked.address, asked.fields.lines, asked.body, asked.interim)
        fields = Fields.of(answered.lines)
        if asked.method not in _SAFE and 200 <= answered.status < 400:
            self.stock.forget(asked.address)
            for name in ("location", "content-location"):
                if said := fields.first(name):
                    self._forget_near(asked.address, said)
        told = f"fwd={why}; fwd-status={answered.status}"
        told_lifetime = rules.explicit_lifetime(fields, rules.control_of(fields), asked_at) is not None
        if asked.method == "POST" and answered.status == 200 and told_lifetime and _of_itself(asked.address, fields):
            return await self._origin.deliver(asked, answered, asked_at, None, why)
        return Served(answered.status, passed(fields, self._now()), answered.body, told, answered)

    def _forget_near(self, address: str, said: str) -> None:
        """Forget what an answer points to, if it is of the same origin: nobody may empty another's stock."""
        try:
            there = urljoin(address, said).partition("#")[0]
            if urlsplit(there)[:2] == urlsplit(address)[:2]:
                self.stock.forget(there)
        except ValueError:
            pass


def _of_itself(address: str, fields: Fields) -> bool:
    """Whether the answer to a POST is what a GET of the same address would bring [RFC 9110 section 9.3.3]."""
    said = fields.first("content-location")
    try:
        return said is not None and urljoin(address, said) == address
    except ValueError:
        return False
