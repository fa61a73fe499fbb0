"""The walk of somebody who follows a page: add, first copy, change, told, difference, noise left out, quiet."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.browsing import CHROMIUM, Tab, chromium, running
from support.patience import BUSY
from support.shown import shown
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.settings import Http, OnChange, Settings
from unstale.cli.settings_tables import Defaults, Server

if not Path(CHROMIUM).exists():
    pytest.skip(f"there is no {CHROMIUM}: install Debian's chromium", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="install playwright")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="install axe-playwright-python")


class Site:
    """A page that says how often it was asked, and news that somebody writes; and its feed."""

    def __init__(self) -> None:
        self.news, self.asked = "Nine trains a day", 0

    def page(self) -> str:
        self.asked += 1
        return (
            "<html><head><title>Trains</title><link rel=alternate type='application/rss+xml' href='/feed'></head>"
            f"<body><p id='clock'>seen {self.asked} times</p><p>{self.news}</p></body></html>"
        )

    def feed(self) -> str:
        return "<rss><channel><title>F</title><item><guid>1</guid><title>Delays</title></item></channel></rss>"


@contextmanager
def serving(site: Site) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"/trains": (site.page, "text/html"), "/feed": (site.feed, "application/rss+xml")}
            make, kind = known.get(self.path, (None, ""))
            body = b"" if make is None else make().encode()
            self.send_response(404 if make is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def until(truth: Any, seconds: float = 15.0 * BUSY) -> None:
    end = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_from_an_empty_store_to_quiet(tmp_path: Path) -> None:
    site, log = Site(), tmp_path / "told.jsonl"
    settings = replace(
        Settings(),
        store=str(tmp_path / "s.db"),
        budget=2.0,
        # Polled once by itself, and then when somebody asks for it.
        defaults=replace(Defaults(), min_interval=86400.0),
        http=replace(Http(), allow_networks=("127.0.0.0/8",), robots=False),
        on_change=(replace(OnChange(), log=str(log)),),
        server=replace(Server(), address="http://dashboard.example"),
    )
    SqliteStore(settings.store).close()
    with serving(site) as origin, running(settings), shown(settings) as address, chromium() as browser:
        tab = Tab(browser, address)
        page = tab.go("")
        page.set_default_timeout(30_000 * BUSY)

        # Nothing is there yet: what to do is said.
        page.get_by_text("There are no sources yet.").wait_for()
        assert tab.barriers() == []
        page.get_by_role("link", name="Add sources").click()
        page.get_by_label("Addresses, one a line").fill(f"{origin}/trains")
        page.get_by_text("1 source: 1 new.").wait_for()
        page.get_by_role("button", name="See what a poll brings").click()
        page.get_by_role("heading", name="Trains", level=2).wait_for()
        page.get_by_text("Nine trains a day").wait_for()
        page.get_by_role("button", name=f"Take {origin}/feed instead").wait_for()
        assert tab.barriers() == []
        page.get_by_label("Tags").fill("travel, Bern")
        page.get_by_role("button", name="Add", exact=True).click()

        # The first copy comes by itself, and is no change.
        page.get_by_role("heading", name="Source 1", level=1).wait_for()
        page.get_by_role("heading", name="Trains", level=2).wait_for()
        page.get_by_role("link", name="file 1").wait_for()

        # It changes: who is told hears what.
        site.news = "Eight trains a day"
        page.get_by_role("button", name="Poll now").click()
        page.get_by_text("is what the source has now").first.wait_for()
        until(lambda: any("Eight" in str(one) for one in told(log)))
        events = told(log)
        assert all(not one["first"] and one["version"] > 1 for one in events), "a first copy is no change"
        event = next(one for one in events if "Eight" in str(one))
        assert (event["title"], event["tags"]) == ("Trains", ["travel", "Bern"])
        assert {"sign": "+", "line": "Eight trains a day"} in event["changes"]
        assert event["link"] == f"http://dashboard.example/#/sources/1?new={event['version']}"

        # The link leads to the difference, by words.
        page.goto(address + event["link"].removeprefix("http://dashboard.example"))
        page.locator("ins", has_text="Eight").wait_for()
        page.locator("del", has_text="Nine").wait_for()
        page.get_by_role("button", name="side by side").click()
        page.locator(".sides ins", has_text="Eight").wait_for()
        assert tab.barriers() == []
        page.get_by_role("button", name="inline").click()

        # It changes at every poll: the page says so, and what to leave out.
        for _ in range(6):
            asked = site.asked
            sent = "import('/dashboard/api.js').then((api) => api.send('POST', '/api/v1/sources/1/poll?wait=30s'))"
            assert page.evaluate(sent)["polled"]
            assert site.asked > asked
        tab.go("sources/1")
        page.get_by_role("button", name="Leave out p#clock").click()
        page.get_by_text("this would have been no change").wait_for()
        assert tab.barriers() == []
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved").wait_for()

        # And it is quiet: polls find nothing new, and nobody is told.
        assert page.evaluate(sent)["polled"]
        version = page.evaluate(sent)["version"]
        before = len(told(log))
        for _ in range(2):
            assert page.evaluate(sent)["version"] == version
        site.news = "Seven trains a day"
        page.evaluate(sent)
        until(lambda: any("Seven" in str(one) for one in told(log)))
        assert len(told(log)) == before + 1, "what was left out was not told"
        assert told(log)[-1]["changes"][:1] == [{"sign": "-", "line": told(log)[-1]["changes"][0]["line"]}]
        tab.fine()
        tab.close()
