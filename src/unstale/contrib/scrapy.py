"""Scrapy as the one who polls: the engine says what is due, Scrapy downloads it, the engine records and learns.

Rules of this file:
1. The engine is the usual one, in Scrapy's own loop: budget, host limits, beliefs and records are written once.
2. Scrapy dials: its settings hold for certificates, robots.txt and proxies, and `allow_networks` guards nothing here.
3. A claim that Scrapy never got to is given back, never recorded as a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from dataclasses import field
from typing import Any, Self

from unstale.adapters.http_meaning import fetched
from unstale.adapters.transfer import TransferReply
from unstale.addresses import host_of
from unstale.cli.choose import opened
from unstale.cli.compose import Application, alone, config_of, content_of, rules_of
from unstale.cli.settings import Settings, load
from unstale.engine.host_limits import HostLimits
from unstale.engine.judge import judge_aside
from unstale.engine.loop import Engine
from unstale.errors import InputError, MissingExtraError, UnstaleError
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Request

try:
    import scrapy
    from scrapy import signals
    from scrapy.exceptions import CloseSpider
    from scrapy.utils.asyncgen import as_async_generator
except ImportError:
    raise MissingExtraError("scrapy", "scrapy") from None

#: statuses that come to us instead of being errors; redirects only where they must not be followed
_TOLD = [304, *range(400, 600)]
_REDIRECTS = [301, 302, 303, 307, 308]


@dataclass(slots=True)
class ScrapyExchange:
    """One poll on its way through Scrapy: `reply` comes back from it, `changed` is what the engine makes of that."""

    begun: float
    headers_at: float | None = None
    reply: asyncio.Future[TransferReply] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    changed: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class KeptFresh:
    """A mixin for spiders that poll what is due in a store, and tell the store what came of it.

    `parse` gets a response only if its source has changed, or was never seen before. The spider goes on until Scrapy
    ends it: Ctrl-C, or CLOSESPIDER_TIMEOUT. What `parse` yields is Scrapy's business, further requests as well: they
    are no sources and cost no budget. Without a file named, the nearest unstale.toml holds.

        class News(KeptFresh, scrapy.Spider):
            name = "news"

            def parse(self, response):
                yield {"title": response.css("title::text").get()}
    """

    #: the settings and the store, as `--config` and `--store` name them
    unstale_config: str | None = None
    unstale_store: str | None = None

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **options: Any) -> Self:
        """As Scrapy makes spiders; ours also wants to know when headers came and when it is over."""
        spider: Self = super().from_crawler(crawler, *args, **options)  # type: ignore[misc]
        crawler.signals.connect(spider._headed, signals.headers_received)
        crawler.signals.connect(spider._closed, signals.spider_closed)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        """A request for every poll that the engine begins, for as long as it goes on."""
        self._line: asyncio.Queue[Any] = asyncio.Queue()
        self._stop = asyncio.Event()
        self._keeping = asyncio.create_task(self._keep())
        self._keeping.add_done_callback(lambda _: self._line.put_nowait(None))
        try:
            while (request := await self._line.get()) is not None:
                yield request
            await self._keeping
        except UnstaleError as error:
            self.logger.error("%s", error)  # type: ignore[attr-defined]
            raise CloseSpider("unstale_failed") from None
        finally:
            self._stop.set()

    async def _keep(self) -> None:
        settings = load(self.unstale_config, store=self.unstale_store)
        with opened(settings):
            # A store that does not exist is a mistake, not an empty fleet.
            pass
        with alone(settings):
            self._polling = Polling(settings, self)
            try:
                await self._polling.run(self._stop)
            finally:
                with opened(settings) as store:
                    store.give_back(config_of(settings).owner)

    def ask(self, request: Request, exchange: ScrapyExchange) -> None:
        """Hand a poll over to Scrapy."""
        headers = {**request.headers, **_conditions(request)}
        meta = {
            "exchange": exchange,
            "dont_retry": True,
            "dont_cache": True,
            "allow_offsite": True,
            "handle_httpstatus_list": _TOLD,
            "download_timeout": request.seconds,
            "download_maxsize": request.limit,
        }
        if request.headers:
            # What we send along is for this host, and Scrapy would take most of it elsewhere.
            meta |= {"dont_redirect": True, "handle_httpstatus_list": _TOLD + _REDIRECTS}
        self._line.put_nowait(
            scrapy.Request(
                request.address, self._answered, headers=headers, meta=meta, errback=self._failed, dont_filter=True
            )
        )

    async def _answered(self, response: Any) -> AsyncIterator[Any]:
        exchange: ScrapyExchange = response.meta["exchange"]
        now = self._polling.clock.now()
        # Not when it was asked for: Scrapy may have let it wait.
        exchange.begun = max(exchange.begun, (exchange.headers_at or now) - response.meta.get("download_latency", 0.0))
        if not exchange.reply.done():
            exchange.reply.set_result(_reply(response))
        if await exchange.changed:
            found = self.parse(response)  # type: ignore[attr-defined]
            if inspect.isawaitable(found):
                found = await found
            async for one in as_async_generator(found or ()):
                yield one

    def _failed(self, failure: Any) -> None:
        exchange: ScrapyExchange = failure.request.meta["exchange"]
        if not exchange.reply.done():
            address = failure.request.url
            # Only the kind of error: its text may hold an address with a secret in it.
            reason = f"{host_of(address)}: Scrapy had no answer ({type(failure.value).__name__})"
            exchange.reply.set_result(TransferReply(address=address, reason=reason))

    def _headed(self, request: Any) -> None:
        if isinstance(exchange := request.meta.get("exchange"), ScrapyExchange):
            exchange.headers_at = self._polling.clock.now()

    async def _closed(self) -> None:
        """What Scrapy no longer asks is given back; then the engine ends."""
        if hasattr(self, "_keeping"):
            self._stop.set()
            if hasattr(self, "_polling"):
                self._polling.drop()
            with contextlib.suppress(UnstaleError):
                # Whoever waits in `start` has told it already.
                await self._keeping


class Polling(Application):
    """An engine with everything around it, whose polls of the web go through a spider."""

    def __init__(self, settings: Settings, spider: KeptFresh) -> None:
        super().__init__(settings)
        self._spider, self._open = spider, dict[str, ScrapyExchange]()
        self.fetchers.use("http", self)
        self.engine = Engine(
            self.executor,
            config_of(settings),
            self.clock,
            self._look,
            content=content_of,
            host_limits=HostLimits(rules_of(settings)),
            tell=self._heard,
            aside=self.fetchers.sandbox,
        )

    async def _look(self, claim: Claim) -> Fetched:
        changed = False
        try:
            seen = await self.fetchers.look(claim)
            with contextlib.suppress(InputError):
                # The engine judges it again, and says what was wrong with it.
                answer, _ = await judge_aside(claim, seen, content_of(claim), self.fetchers.sandbox)
                changed = answer is Answer.CHANGED
            return seen
        finally:
            if (exchange := self._open.pop(claim.address, None)) is not None:
                exchange.changed.set_result(changed)

    async def fetch(self, request: Request) -> Fetched:
        """Look once, through Scrapy; see `unstale.ports.Fetcher` for what is promised."""
        # At most one poll of a source is on its way, so its address names the exchange.
        exchange = self._open[request.address] = ScrapyExchange(self.clock.now())
        self._spider.ask(request, exchange)
        reply = await exchange.reply
        return fetched(request, reply, exchange.begun)

    async def close(self) -> None:
        """Scrapy closes its connections itself."""

    def drop(self) -> None:
        """End what Scrapy has not answered, without an outcome."""
        for exchange in self._open.values():
            exchange.reply.cancel()


def _conditions(request: Request) -> dict[str, str]:
    held = {"If-None-Match": request.etag, "If-Modified-Since": request.last_modified}
    return {name: value for name, value in held.items() if value}


def _reply(response: Any) -> TransferReply:
    headers = {
        name.decode("latin-1").lower(): values[-1].decode("latin-1")
        for name, values in response.headers.items()
        if values
    }
    return TransferReply(response.status, headers, response.body, response.url, len(response.body))
