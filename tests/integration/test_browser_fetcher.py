"""Pages that need a browser: drawn, clicked through, kept with their picture, and never past the gate."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from support.browsing import CHROMIUM
from support.patience import BUSY
from unstale.adapters.addresses import Gate
from unstale.adapters.browser_content import BrowserContent
from unstale.adapters.browser_fetcher import BrowserFetcher, BrowserMeans
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.pictured import apart, with_picture
from unstale.ports import Body, Fetched, Request
from unstale.service.compared import compared
from unstale.service.pictures import picture_of, pictures_compared

if not Path(CHROMIUM).exists():
    pytest.skip(f"there is no {CHROMIUM}: install Debian's chromium", allow_module_level=True)
pytest.importorskip("playwright.async_api", reason="install playwright")
Image = pytest.importorskip("PIL.Image", reason="install pillow")

SHOP = b"""<title>Shop</title>
<body style="margin:0;background:white"><button id=more>more</button><p id=out></p><script>
document.getElementById('more').onclick = () => setTimeout(() => {
  document.getElementById('out').textContent = 'Price: ' + (6 * 7); document.body.style.background = 'lime'; }, 50);
for (const place of ['http://127.0.0.2:%d/inner', 'http://0x7f000002:%d/inner']) {
  fetch(place).then(() => { document.title = 'reached'; }, () => {});
  new Image().src = place; try { new WebSocket(place.replace('http', 'ws')); } catch {} }
</script>"""


#: hidden from readers, and the page says that it is nothing
HUGE = b"""<body><script>document.body.appendChild(new Comment('a'.repeat(3e7)));
Object.defineProperty(Element.prototype, 'outerHTML', { get: () => '' })</script>"""


class Site:
    """What was asked for, by host and path, and the secrets that came along."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.secrets: list[tuple[str, str]] = []
        self.port = 0

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        if path == "/shop":
            return 200, SHOP.replace(b"%d", str(self.port).encode()), {}
        if path == "/away":
            return 302, b"", {"Location": f"http://127.0.0.3:{self.port}/other"}
        if path == "/busy":
            return 200, b"<script>for (;;) {}</script>", {}
        if path == "/huge":
            return 200, HUGE, {}
        return (404, b"", {}) if path == "/gone" else (200, b"<p>other</p>", {})


@contextmanager
def serving(site: Site) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = str(self.headers["Host"]).partition(":")[0]
            site.asked.append((host, self.path))
            if "X-Secret" in self.headers:
                site.secrets.append((host, self.path))
            code, body, fields = site.answer(self.path)
            self.send_response(code)
            for name, value in {**fields, "Content-Type": "text/html", "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    site.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{site.port}"
    finally:
        server.shutdown()
        server.server_close()


def drawn(
    *requests: Request, networks: tuple[str, ...] = ("127.0.0.1/32", "127.0.0.3/32"), program: str = CHROMIUM
) -> list[Fetched]:
    """What a browser makes of these, one after the other."""

    async def draw() -> list[Fetched]:
        means = BrowserMeans(program, sandbox=False)
        fetcher = BrowserFetcher(Gate(networks), means, agent="unstale test", now=lambda: 7.0)
        try:
            return [await fetcher.fetch(request) for request in requests]
        finally:
            await fetcher.close()

    return asyncio.run(draw())


def test_a_page_is_clicked_through_and_kept_with_its_picture_and_goes_nowhere_else() -> None:
    site, patient = Site(), 60.0 * BUSY
    with serving(site) as origin:
        options: dict[str, Any] = {"wait_for": "#more", "click": ["#more"], "wait": 0.5, "width": 300, "height": 200}
        secret = {"X-Secret": "s3cret"}
        plain, clicked, again, away, gone, huge, busy, inner = drawn(
            Request(f"{origin}/shop", options={"width": 300, "height": 200}, seconds=patient),
            Request(f"{origin}/shop", options=options, seconds=patient, headers=secret),
            Request(f"{origin}/shop", options=options, seconds=patient),
            Request(f"{origin}/away", seconds=patient, headers=secret),
            Request(f"{origin}/gone", seconds=patient),
            Request(f"{origin}/huge", seconds=patient, limit=2**20),
            Request(f"{origin}/busy", seconds=3.0),
            Request(f"http://127.0.0.2:{site.port}/inner", seconds=patient),
        )
    assert [one.answer for one in (plain, clicked, again, away)] == [Answer.CHANGED] * 4
    assert clicked.body is not None
    assert plain.body is not None
    assert again.body is not None
    markup, picture = apart(clicked.body)
    assert b"Price: 42" in markup
    assert b"<title>Shop</title>" in markup, "nothing else was reached"
    assert picture is not None
    assert Image.open(io.BytesIO(picture)).size == (300, 200)
    content = BrowserContent()
    assert content(clicked.body, clicked.media_type) == content(again.body, again.media_type) == b"more\nPrice: 42"
    assert content(plain.body, plain.media_type) == b"more"
    assert clicked.polled_at == 7.0
    assert clicked.received > 0

    # What the gate does not permit is not reached, by whatever name; and a secret goes to its own origin alone.
    assert {host for host, _ in site.asked} == {"127.0.0.1", "127.0.0.3"}
    assert ("127.0.0.3", "/other") in site.asked
    assert {host for host, _ in site.secrets} == {"127.0.0.1"}
    assert away.address == f"http://127.0.0.3:{site.port}/other"
    assert (gone.answer, gone.status, gone.reason) == (Answer.FAILED, 404, "127.0.0.1: it answered 404")
    assert huge.reason == "127.0.0.1: it has more than 1048576 bytes as it is drawn, raise its limit"
    assert busy.answer is Answer.FAILED
    assert busy.reason == "127.0.0.1: not drawn within 3 s"
    assert "is not public" in inner.reason

    # The pictures show what the words show.
    old, new = (Body(one.body or b"", one.media_type) for one in (plain, clicked))
    found = [picture_of(one) or b"" for one in (old, new)]
    shown, share = pictures_compared(*found)
    assert share > 0.9, "the page became green"
    assert Image.open(io.BytesIO(shown)).size == (300, 200)
    assert pictures_compared(found[0], found[0])[1] == 0.0
    told = compared(old, new, "browser")
    assert ["+", "Price: 42"] in told["lines"]
    assert "unstale-picture" not in str(compared(old, new, "browser", "source")["lines"])


@contextmanager
def elsewhere(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Chromium that somebody else has started, and the address of its DevTools protocol."""
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
    ]
    with subprocess.Popen(
        [CHROMIUM, *flags, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as it:
        told, end = folder / "DevToolsActivePort", time.monotonic() + 60.0 * BUSY
        while not (told.exists() and "\n" in told.read_text()):
            assert time.monotonic() < end
            time.sleep(0.05)
        try:
            yield f"http://127.0.0.1:{told.read_text().split()[0]}", it
        finally:
            it.kill()


def test_a_browser_elsewhere_draws_the_same_goes_nowhere_else_and_is_left_as_it_was(tmp_path: Path) -> None:
    """By its CDP endpoint; when it is gone, polls fail, and when it is back, they do not."""
    site, patient = Site(), 60.0 * BUSY
    options: dict[str, Any] = {"wait_for": "#more", "click": ["#more"], "wait": 2.0, "width": 300, "height": 200}

    async def draw(endpoint: str, browser: subprocess.Popen[bytes]) -> list[Fetched]:
        means = BrowserMeans(endpoint=endpoint)
        fetcher = BrowserFetcher(Gate(("127.0.0.1/32", "127.0.0.3/32")), means, agent="unstale test", now=lambda: 7.0)
        asked = (
            Request(f"{origin}/shop", options=options, seconds=patient),
            Request(f"{origin}/away", seconds=patient, headers={"X-Secret": "s3cret"}),
            Request(f"{origin}/gone", seconds=patient),
        )
        try:
            found = [await fetcher.fetch(request) for request in asked]
            open_ = json.loads(urlopen(f"{endpoint}/json/list").read())
            assert [page["url"] for page in open_ if page["type"] == "page"] == ["about:blank"], "its own page alone"
            browser.kill()
            await asyncio.to_thread(browser.wait)
            return [*found, await fetcher.fetch(Request(f"{origin}/shop", seconds=patient))]
        finally:
            await fetcher.close()

    with serving(site) as origin, elsewhere(tmp_path / "profile") as (endpoint, browser):
        shop, away, gone, lost = asyncio.run(draw(endpoint, browser))
    assert shop.body is not None, shop.reason
    markup, picture = apart(shop.body)
    assert b"Price: 42" in markup
    assert b"<title>Shop</title>" in markup, "nothing else was reached"
    assert picture is not None
    assert Image.open(io.BytesIO(picture)).size == (300, 200)
    assert away.address == f"http://127.0.0.3:{site.port}/other"
    assert {host for host, _ in site.asked} == {"127.0.0.1", "127.0.0.3"}
    assert {host for host, _ in site.secrets} == {"127.0.0.1"}
    assert (gone.answer, gone.status) == (Answer.FAILED, 404)
    assert lost.answer is Answer.FAILED
    assert lost.reason.startswith("127.0.0.1: "), lost.reason


def test_without_a_browser_it_is_told_what_to_do() -> None:
    (answer,) = drawn(Request("http://127.0.0.1:9/", "browser"), program="/nowhere/chromium")
    assert answer.answer is Answer.FAILED
    assert "is not installed: set browser.program" in answer.reason


def test_what_is_no_picture_is_none() -> None:
    hostile = with_picture(b"<p>", b"<svg onload=alert(1)>")
    assert picture_of(Body(hostile, "text/html")) is None
    with pytest.raises(InputError, match="cannot be read"):
        pictures_compared(b"\x89PNG\r\n\x1a\n" + b"x" * 99, b"\x89PNG\r\n\x1a\n")
