"""`--proxy` of `unstale serve` and `unstale run`: a pull-through proxy, alone or with an engine that polls for it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unstale.errors import InputError, StoreError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Listing, Request

if TYPE_CHECKING:
    from unstale.adapters.sqlite_store import SqliteStore
    from unstale.cli.compose import Application
    from unstale.server.proxy.app import Proxy
    from unstale.server.proxy.door import Door

KIND = "proxied"
#: what is stored lives so many intervals, if its origin does not say: the engine renews it before
SLACK = 1.5


def origins(texts: Sequence[str]) -> dict[str, str]:
    """Hosts and their origins from `ORIGIN`, which answers for every host, or `HOST=ORIGIN`; a bare `HOST` is its own.

    >>> origins(["http://127.0.0.1:8000", "example.org", "b.example=https://a.example"])
    {'*': 'http://127.0.0.1:8000', 'example.org': 'http://example.org', 'b.example': 'https://a.example'}
    """
    found: dict[str, str] = {}
    for text in texts:
        host, equals, origin = text.partition("=")
        if not equals:
            host, origin = ("*", text) if "://" in text else (text, f"http://{text}")
        if host in found:
            what = "for all hosts" if host == "*" else f"for {host!r}"
            raise InputError(sentence("proxy", what, "is given twice", "name one origin for each host"))
        found[host] = origin
    return found


async def run(
    texts: Sequence[str],
    host: str,
    port: int,
    *,
    name: str,
    allow_networks: Sequence[str],
    token: str | None,
    stop: asyncio.Event | None,
    names: Sequence[str] = (),
    budget: float | None = None,
    stock: str | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve a pull-through proxy for these origins until `stop` is set, or the process is asked to end.

    `names` are further ones by which clients on this machine may call it. With a `budget`, what origins leave to us is
    asked for again when that pays, so many times a second; `stock` is a file that outlives the process.
    """
    from unstale.adapters.addresses import Gate
    from unstale.adapters.dialling import dialler
    from unstale.adapters.http_upstream import HttpUpstream
    from unstale.adapters.sqlite_stock import SqliteStock
    from unstale.cli.listening import until_ended
    from unstale.server.proxy.app import Proxy
    from unstale.server.proxy.durable import Durable
    from unstale.server.proxy.pricing import Pricing
    from unstale.server.proxy.wire import serve
    from unstale.server.serving import place

    host, port = place(host, port)
    gate, known = Gate(allow_networks), origins(texts)
    entrance = door(host, token, (*known, *names))
    pricing = Pricing(budget, time.time()) if budget is not None else None
    proxy = Proxy(
        HttpUpstream(gate),
        known,
        name=name,
        pricing=pricing,
        durable=Durable(SqliteStock(stock), pricing) if stock else None,
        door=entrance,
        dial=dialler(gate),
    )
    with until_ended(stop) as stop:
        try:
            await serve(proxy, host, port, stop=stop, ready=ready)
        finally:
            await proxy.close()


def door(host: str, token: str | None, names: Sequence[str]) -> Door:
    """The same door as copies have: on this machine by its names, beyond it with the token."""
    from unstale.server.auth import OWN_NAMES, check_binding, is_near
    from unstale.server.proxy.door import Door

    check_binding(host, token)
    near = is_near(host)
    shown = f"[{host}]" if ":" in host else host
    return Door(token, not near, frozenset(name.lower() for name in (*OWN_NAMES, shown, *names)) if near else ())


async def within(
    application: Application,
    texts: Sequence[str],
    listen: str,
    stop: asyncio.Event,
    say: Callable[[str], None],
    *,
    telling: float = 60.0,
) -> None:
    """Serve a pull-through proxy in the engine's process: what clients ask for joins its fleet, and is polled for them.

    What keeps it from serving is said in one line, and the engine goes on.
    """
    from unstale.adapters.addresses import Gate
    from unstale.adapters.dialling import dialler
    from unstale.adapters.http_upstream import HttpUpstream
    from unstale.adapters.sqlite_stock import SqliteStock
    from unstale.cli.compose import open_store
    from unstale.cli.listening import address
    from unstale.cli.settings import is_shared
    from unstale.cli.token import token_of
    from unstale.server.proxy.app import Proxy
    from unstale.server.proxy.durable import Durable
    from unstale.server.proxy.wire import serve
    from unstale.server.serving import place

    settings = application.settings
    token, known, gate = token_of(settings), origins(texts), Gate(settings.http.allow_networks)
    try:
        host, port = place(*address(listen))
        entrance = door(host, token, (*known, *settings.server.names))
        # Beside a store that is a file, so that a restart finds what was kept.
        rows = None if is_shared(settings.store) else SqliteStock(f"{settings.store}.proxy")
    except (InputError, StoreError) as error:
        say(f"{error}; going on without the proxy")
        await stop.wait()
        return
    # A connection of its own: the engine notices what others have written.
    joining = Joining(open_store(settings), application.clock.now)
    proxy = Proxy(
        HttpUpstream(gate),
        known,
        fleet=joining,
        telling=telling,
        durable=Durable(rows) if rows is not None else None,
        door=entrance,
        dial=dialler(gate),
        lifetime=lambda where: joining.lifetime(where, application),
    )
    application.fetchers.use(KIND, Renewing(proxy))

    def ready(number: int) -> None:
        say(f"serving {', '.join(texts)} at http://{host}:{number}/")

    try:
        await serve(proxy, host, port, stop=stop, ready=ready)
    finally:
        await proxy.close()
        await joining.close()


class Renewing:
    """Polls what the proxy holds through the proxy itself, so that it holds what came; keeps the contract `Fetcher`."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def fetch(self, request: Request) -> Fetched:
        """Look once; a body that the store cannot know yet goes to it even if the proxy has it already."""
        try:
            fetched = await asyncio.wait_for(self._proxy.renew(request.address), request.seconds)
        except TimeoutError:
            return Fetched(Answer.FAILED, time.time(), reason=f"no answer within {request.seconds:g} s")
        held = [one for one in self._proxy.cache.stock.variants(request.address) if one.part is None]
        known = request.etag is not None or request.last_modified is not None
        if fetched.answer is Answer.FAILED or not held or (fetched.body is None and known):
            return fetched
        # What is kept is as the origin packed it: its type says so.
        coding = held[0].fields.first("content-encoding")
        media_type = f"application/{coding}" if coding else held[0].fields.first("content-type") or ""
        return replace(fetched, answer=Answer.CHANGED, body=held[0].body, media_type=media_type)

    async def close(self) -> None:
        """The proxy is closed by who serves it."""


class Joining:
    """What clients ask for joins the fleet, weighs as many requests as it gets a day, and leaves when they cease.

    Keeps the proxy's contract `Fleet`. Sources that somebody has listed otherwise are left alone.
    """

    def __init__(self, store: SqliteStore, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        self._writing: set[asyncio.Task[None]] = set()
        #: ids and rates by address
        self.known: dict[str, int] = {}
        listed = store.listings(store.search(kind=KIND, limit=2**62))
        self.known = {one.address: one.id for one in listed}
        self._rates = {one.address: one.weight for one in listed}
        self._weights = dict(self._rates)

    def wanted(self, requests: Mapping[str, int], seconds: float) -> None:
        """Take in what was asked for, beside the loop."""
        task = asyncio.get_running_loop().create_task(self._take_in(dict(requests), seconds))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    def lifetime(self, address: str, application: Application) -> float | None:
        """How long what is stored of an address may be used: somewhat longer than until the engine renews it."""
        scheduler, source = application.engine.scheduler, self.known.get(address)
        if source is None:
            return None
        row = int(np.searchsorted(scheduler.ids, source))
        if row >= len(scheduler.ids) or scheduler.ids[row] != source:
            return None
        interval = float(scheduler.learner.columns.interval[row])
        return SLACK * interval if 0.0 < interval < math.inf else None

    async def close(self) -> None:
        """Let what is being written end, and give back the store."""
        await asyncio.gather(*self._writing, return_exceptions=True)
        self._store.close()

    async def _take_in(self, requests: dict[str, int], seconds: float) -> None:
        try:
            await asyncio.to_thread(self.take_in, requests, seconds)
        except StoreError:
            # The engine tells of a store that fails; these requests are lost, which rates can bear.
            return

    def take_in(self, requests: Mapping[str, int], seconds: float) -> None:
        """Add, weigh and remove, as these requests of the last `seconds` say."""
        from unstale.addresses import host_of
        from unstale.server.requests import SHARE, folded

        self._rates = folded(self._rates, requests, seconds)
        gone = [address for address in self.known if address not in self._rates]
        if gone:
            self._store.remove([self.known.pop(address) for address in gone])
        listings = []
        for address, rate in self._rates.items():
            held = self._weights.get(address, 0.0)
            stranger = address not in self.known and self._store.find(address) is not None
            if not stranger and abs(rate - held) > SHARE * held:
                self._weights[address] = rate
                listings.append(Listing(address, KIND, rate, host=host_of(address)))
        if listings:
            ids = self._store.add(listings, self._now(), duplicates="replace")
            self.known |= {one.address: source for one, source in zip(listings, ids, strict=True)}
        self._weights = {address: self._weights[address] for address in self.known if address in self._weights}
