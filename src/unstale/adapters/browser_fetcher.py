"""Polling pages that need a browser (extra `browser`): drawn by Chromium, clicked through, kept with their picture.

Rules of this file:
1. A page has a context of its own, which ends with the poll: no cookie, storage or worker outlives it.
2. The browser is a process apart and reaches the network through `BrowserGate` alone; a remote one reaches what its own
   machine lets it, and names are judged here before it is sent there.
3. A poll ends in its time, whatever the page does; a browser that does not let go of a page is ended and begun anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.browser_gate import BrowserGate
from unstale.errors import InputError, MissingExtraError, sentence
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.pictured import MEDIA_TYPE, with_picture
from unstale.ports import Fetched, Request

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright

#: pages after which a browser is begun anew, and seconds that closing may take
FRESH, CLOSING = 200, 5.0
#: what a window has unless its source says otherwise, and pixels of a picture at most in either direction
WIDTH, HEIGHT, TALLEST = 1280, 800, 8000
#: milliseconds of a second
_MS = 1000.0
_FLAGS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # This machine, too, only through the gate.
    "--proxy-bypass-list=<-loopback>",
    "--js-flags=--max-old-space-size=256",
)


@dataclass(frozen=True, slots=True)
class BrowserMeans:
    """Which browser: a `program` (empty: Playwright's own), or one elsewhere by its CDP `endpoint`; pages at a time."""

    program: str = ""
    endpoint: str = ""
    pages: int = 2
    #: whether Chromium's own sandbox is used; it cannot be for the superuser
    sandbox: bool = True


class BrowserFetcher:
    """Draws pages. The browser is begun with the first of them."""

    def __init__(
        self,
        gate: Gate | None = None,
        means: BrowserMeans | None = None,
        *,
        agent: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        self._gate, self._means, self._agent, self._now = gate or Gate(), means or BrowserMeans(), agent, now
        self._free, self._starting = asyncio.Semaphore(self._means.pages), asyncio.Lock()
        self._driver: Playwright | None = None
        self._browser: Browser | None = None
        self._way: BrowserGate | None = None
        #: pages that this browser has drawn, and those that are being drawn
        self._drawn = self._drawing = 0

    async def fetch(self, request: Request) -> Fetched:
        """Draw once; see `unstale.ports.Fetcher` for what is promised."""
        begun = self._now()
        try:
            place = web_address(request.address)
            self._gate.check_host(place.host)
        except InputError as error:
            return Fetched(Answer.FAILED, begun, reason=str(error))
        try:
            async with asyncio.timeout(request.seconds), self._free:
                return await self._draw(request, place.host, begun)
        except TimeoutError:
            reason = f"{place.host}: not drawn within {request.seconds:g} s"
        except (InputError, MissingExtraError) as error:
            reason = str(error)
        except Exception as error:
            # A driver of others: whatever it raises is a failure of this poll, in its first line.
            reason = f"{place.host}: {_said(error)}"
        return Fetched(Answer.FAILED, begun, reason=reason)

    async def close(self) -> None:
        """End the browser."""
        async with self._starting:
            await self._end()
            if self._driver is not None:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(self._driver.stop(), CLOSING)
                self._driver = None

    async def _draw(self, request: Request, host: str, begun: float) -> Fetched:
        browser, options = await self._ready(), request.options
        before = 0 if self._way is None else self._way.received
        context: BrowserContext | None = None
        try:
            context = await browser.new_context(
                viewport={"width": _pixels(options, "width", WIDTH), "height": _pixels(options, "height", HEIGHT)},
                accept_downloads=False,
                service_workers="block",
                user_agent=self._agent or None,
            )
            if request.headers:
                await self._send_home(context, request)
            tab = await context.new_page()
            if self._means.endpoint:
                await context.route("**/*", self._judge)
                await context.route_web_socket("**/*", self._judge_socket)
            status = await _arrive(tab, request.address)
            if not 200 <= status < 300:
                return Fetched(Answer.FAILED, begun, reason=f"{host}: it answered {status}", status=status)
            await _prepare(tab, options)
            too_much = f"{host}: it has more than {request.limit} bytes as it is drawn, raise its limit"
            if await _length(tab) > request.limit:
                return Fetched(Answer.FAILED, begun, reason=too_much, status=status)
            markup = (await tab.content()).encode("utf-8", "replace")
            picture = await self._picture(tab, options)
            body = with_picture(markup, picture)
            if len(body) > request.limit:
                return Fetched(Answer.FAILED, begun, reason=too_much, status=status)
            received = len(body) if self._way is None else self._way.received - before
            address = web_address(tab.url).text
            return Fetched(
                Answer.CHANGED, begun, body, MEDIA_TYPE, status=status, address=address, received=max(received, 0)
            )
        finally:
            self._drawing -= 1
            await self._leave(context)

    async def _picture(self, tab: Page, options: Any) -> bytes:
        if not options.get("whole_page", False):
            return await tab.screenshot(type="png", animations="disabled", caret="hide", timeout=0)
        size = await tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        width, height = (max(min(int(side), TALLEST), 1) for side in size)
        clip: Any = {"x": 0, "y": 0, "width": width, "height": height}
        return await tab.screenshot(type="png", full_page=True, clip=clip, animations="disabled", timeout=0)

    async def _judge(self, route: Any) -> None:
        """Let a remote browser ask only for what the gate permits by its name, as far as that can be told from here."""
        await (route.fallback() if await self._permitted(route.request.url) else route.abort("blockedbyclient"))

    async def _judge_socket(self, socket: Any) -> None:
        """The same for what pages and frames open; what workers open is not seen from here."""
        if await self._permitted("http" + socket.url.removeprefix("ws")):
            socket.connect_to_server()
        else:
            await socket.close()

    async def _permitted(self, address: str) -> bool:
        try:
            place = web_address(address)
            self._gate.check_host(place.host)
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(place.host.strip("[]"), None)
            return all(self._gate.permits(str(one[4][0])) for one in found)
        except (InputError, OSError, UnicodeError):
            return False

    async def _send_home(self, context: BrowserContext, request: Request) -> None:
        """Send the source's own headers to its own origin alone, which they may be secrets of, not where it leads."""
        home = web_address(request.address).origin

        async def sent(route: Any) -> None:
            if web_address(route.request.url).origin == home:
                answer = await route.fetch(headers={**route.request.headers, **request.headers}, max_redirects=0)
                await route.fulfill(response=answer)
            else:
                await route.fallback()

        await context.route(lambda place: place.startswith(("http://", "https://")), sent)

    async def _leave(self, context: BrowserContext | None) -> None:
        """End a page with all that it left; who does not let go of it takes the browser along."""
        if context is None:
            return
        try:
            await asyncio.wait_for(asyncio.shield(context.close()), CLOSING)
        except Exception:
            async with self._starting:
                await self._end()

    async def _ready(self) -> Browser:
        async with self._starting:
            worn = self._drawn >= FRESH and not self._drawing
            if self._browser is None or worn or not self._browser.is_connected():
                await self._end()
                self._browser = await self._begin()
            self._drawn += 1
            self._drawing += 1
            return self._browser

    async def _begin(self) -> Browser:
        try:
            from playwright.async_api import async_playwright
        except ImportError:
            raise MissingExtraError("Playwright", "browser") from None
        self._drawn = 0
        if self._driver is None:
            self._driver = await async_playwright().start()
        if self._means.endpoint:
            return await self._driver.chromium.connect_over_cdp(self._means.endpoint)
        if self._means.sandbox and hasattr(os, "geteuid") and os.geteuid() == 0:
            remedy = "run as another user, or set browser.sandbox = false"
            raise InputError(sentence("browser", "of the superuser", "has no sandbox against what pages run", remedy))
        self._way = BrowserGate(self._gate)
        server = await self._way.open()
        try:
            return await self._driver.chromium.launch(
                executable_path=self._means.program or None,
                chromium_sandbox=self._means.sandbox,
                args=list(_FLAGS),
                proxy={"server": server, "username": self._way.username, "password": self._way.password},
                # Nothing of ours that is secret is in the environment of what strangers' pages run in.
                env={name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
            )
        except Exception as error:
            if "executable doesn't exist" not in str(error).lower():
                raise
            remedy = "set browser.program, like /usr/bin/chromium, or run `playwright install chromium`"
            raise InputError(sentence("browser", "that pages are drawn with", "is not installed", remedy)) from None

    async def _end(self) -> None:
        browser, way, self._browser, self._way = self._browser, self._way, None, None
        if browser is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(browser.close(), CLOSING)
        if way is not None:
            await way.close()


async def _arrive(tab: Page, address: str) -> int:
    """Go there and wait until it is loaded; the status of the last answer, also where there is nothing to be drawn."""
    told: list[int] = []
    tab.on("response", lambda one: told.append(one.status) if one.request.is_navigation_request() else None)
    try:
        answer = await tab.goto(address, wait_until="load", timeout=0)
        return told[-1] if answer is None and told else 0 if answer is None else answer.status
    except Exception:
        if told and not 200 <= told[-1] < 400:
            return told[-1]
        raise


async def _length(tab: Page) -> int:
    """Characters of the page as it is now, counted in the browser: a few bytes of script make gigabytes.

    In a world of its own, where what the page made of its functions does not hold.
    """
    session = await tab.context.new_cdp_session(tab)
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]["id"]
    world = await session.send("Page.createIsolatedWorld", {"frameId": frame})
    asked = "document.documentElement ? document.documentElement.outerHTML.length : 0"
    given = {"expression": asked, "contextId": world["executionContextId"], "returnByValue": True}
    length: int = (await session.send("Runtime.evaluate", given))["result"].get("value", 0)
    await session.detach()
    return length


async def _prepare(tab: Page, options: Any) -> None:
    """Click and wait as the source's options say, in this order: for an element, each click, a while."""
    if wanted := options.get("wait_for"):
        await tab.wait_for_selector(str(wanted), state="visible", timeout=0)
    clicks = options.get("click", ())
    for one in [clicks] if isinstance(clicks, str) else clicks:
        await tab.click(str(one), timeout=0)
    if pause := float(options.get("wait", 0.0)):
        await tab.wait_for_timeout(pause * _MS)


def _pixels(options: Any, name: str, usual: int) -> int:
    return max(1, min(int(float(options.get(name, usual))), TALLEST))


def _said(error: Exception) -> str:
    """What a driver says, without what it says of addresses, which may be secret."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return line.partition(" at http")[0].partition("http")[0].strip() or type(error).__name__
