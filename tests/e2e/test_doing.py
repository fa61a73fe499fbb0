"""What can be done in a browser beyond looking: many at once, back again, kept views, lists; nothing hostile runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.browsing import CHROMIUM, Tab, chromium
from support.patience import BUSY
from support.shown import shown
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.settings import OnChange, Settings
from unstale.keeper.outcomes import Answer
from unstale.pictured import MEDIA_TYPE, with_picture
from unstale.ports import Body, Entry, Listing
from unstale.service.receivers import RECEIVERS, NewsReceiver, kept_receivers

if not Path(CHROMIUM).exists():
    pytest.skip(f"there is no {CHROMIUM}: install Debian's chromium", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="install playwright")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="install axe-playwright-python")

#: what a hostile source would like to have run, called, or drawn across the page
EVIL = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "javascript:window.pwned=1//",
    "\u202e\u2066<b onmouseover=window.pwned=1>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "<svg/onload=window.pwned=1>" + "x" * 8000,
)

#: pages and feeds in turn, then JSON and a table with all of it, and pages with pictures
KINDS = ("http", "feed") * 3 + ("http", "http") + ("browser",) * 3
JSON, CSV = 7, 8
#: pictures that are pages, too
POLYGLOTS = (
    b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=1'><script>window.pwned=1</script></svg>",
    b"\x89PNG\r\n\x1a\n<html><script>window.pwned=1</script>",
    b"GIF89a/*<script>window.pwned=1</script>*/=1;",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(
        Settings(), store=str(tmp_path / "s.db"), on_change=(replace(OnChange(), log=str(tmp_path / "told.jsonl")),)
    )


def opened(browser: Any, address: str, view: str) -> Tab:
    tab = Tab(browser, address)
    tab.page.set_default_timeout(30_000 * BUSY)
    tab.go(view)
    return tab


def test_many_are_changed_together_removed_and_had_back(browser: Any, settings: Settings) -> None:
    store = SqliteStore(settings.store)
    store.add([Listing(f"https://a.example/{i}", options={"title": f"Page {i}"}) for i in range(60)], time.time())
    with shown(settings) as address:
        tab = opened(browser, address, "sources")
        page = tab.page
        page.get_by_text("1–50 of 60").wait_for()
        page.get_by_role("checkbox", name="Choose every row").check()
        page.get_by_text("50 chosen").wait_for()
        page.get_by_role("button", name="choose all 60").click()
        page.get_by_role("button", name="Tag", exact=True).click()
        page.get_by_label("Tags to add").fill("news, all")
        page.get_by_role("button", name="Apply").click()
        page.get_by_text("60 sources tagged.").wait_for()
        assert all(one.options["tags"] == ["news", "all"] for one in store.listings(range(1, 61)))
        assert tab.barriers() == []

        # By a search, kept as a view.
        page.get_by_label("Search").fill("tag:news id<=3")
        page.get_by_text("1–3 of 3").wait_for()
        page.get_by_role("checkbox", name="Choose every row").check()
        page.get_by_role("button", name="Pause", exact=True).click()
        page.get_by_text("sources paused.").wait_for()
        page.get_by_role("button", name="Save this view").click()
        page.get_by_label("Name", exact=True).fill("The first")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_label("Search").fill("paused")
        page.get_by_text("1–3 of 3").wait_for()
        page.get_by_label("Search").fill("")
        page.get_by_text("1–50 of 60").wait_for()
        page.get_by_label("Show", exact=True).select_option(label="The first")
        page.get_by_text("1–3 of 3").wait_for()
        assert page.get_by_label("Search").input_value() == "tag:news id<=3"

        # Gone, back, and gone for good.
        page.get_by_role("checkbox", name="Choose Page 0").check()
        page.get_by_role("button", name="Remove", exact=True).click()
        page.get_by_text("Removed, with its copies.").wait_for()
        tab.until("document.querySelectorAll('tbody .pick').length === 2")
        page.get_by_role("button", name="Undo").click()
        tab.until("document.querySelectorAll('tbody .pick').length === 3")
        assert len(store.listings([1])) == 1
        page.get_by_role("checkbox", name="Choose Page 0").check()
        page.get_by_role("button", name="Remove", exact=True).click()
        page.get_by_text("1–2 of 2").wait_for()
        assert store.listings([1]) == []

        # What cannot be searched is said, and keys lead everywhere.
        page.get_by_label("Search").fill("frsh<0.5")
        page.get_by_text("did you mean 'fresh'").wait_for()
        page.get_by_label("Search").blur()
        page.keyboard.press("?")
        page.get_by_role("heading", name="Keys").wait_for()
        assert tab.barriers() == []
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        page.get_by_role("heading", name="Add sources", level=1).wait_for()
        tab.fine()
        tab.close()
    store.close()


def test_a_file_is_looked_through_and_added(browser: Any, settings: Settings, tmp_path: Path) -> None:
    SqliteStore(settings.store).close()
    opml = tmp_path / "feeds.opml"
    opml.write_text(
        '<opml><body><outline text="News"><outline type="rss" text="A &lt;b&gt;" xmlUrl="https://a.example/feed"/>'
        '<outline type="rss" text="B" xmlUrl="https://b.example/feed"/></outline></body></opml>'
    )
    with shown(settings) as address:
        tab = opened(browser, address, "add")
        page = tab.page
        page.get_by_label("Addresses, one a line").fill("b.example\nnot an address")
        page.get_by_text("1 source: 1 new, and 1 bad line.").wait_for()
        assert page.get_by_role("button", name="Add", exact=True).is_disabled()
        page.get_by_label("Addresses, one a line").fill("c.example weight=3")
        page.get_by_text("1 source: 1 new.").wait_for()
        page.get_by_label("Title").fill("Said elsewhere")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_text("1–1 of 1").wait_for()
        tab.go("add")
        page.get_by_label("Or a file").set_input_files(opml)
        page.get_by_text("2 sources: 2 new.").wait_for()
        page.get_by_role("button", name="Add 2").click()
        page.get_by_text("1–3 of 3").wait_for()
        assert page.get_by_role("cell", name="3", exact=True).count() == 1, "what a line says besides is kept"
        page.get_by_role("link", name="A <b>").wait_for()
        page.get_by_role("link", name="News", exact=True).nth(1).wait_for()
        tab.fine()
        tab.close()


def test_nothing_hostile_runs_in_what_is_new(browser: Any, settings: Settings) -> None:
    store, now = SqliteStore(settings.store), time.time()
    listings = [
        Listing(
            f"https://a.example/{i}", kind, options={"title": EVIL[i % len(EVIL)], "tags": [EVIL[i % len(EVIL)], "x"]}
        )
        for i, kind in enumerate(KINDS)
    ]
    store.add(listings, now)
    for version in (1, 2):
        claims = store.claim(now + version, 100, lease=60.0, owner="t")
        entries = [Entry(one, Answer.CHANGED, now, now + version, body=_body(one.source, version)) for one in claims]
        store.record(entries)
    said = [
        NewsReceiver(evil[:80].strip("\u202e"), "notify", "$NOBODY", (evil,), (), False, evil, evil, (evil,))
        for evil in EVIL
        if evil[:80].strip("\u202e").isprintable()
    ]
    store.record([], settings={RECEIVERS: kept_receivers(said)})
    store.close()
    with shown(settings) as address:
        tab = opened(browser, address, "news")
        page = tab.page
        page.get_by_text("window.pwned").first.wait_for()
        for button in page.get_by_role("button", name="Edit").all():
            button.click()
            page.get_by_label("Sources").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Send a test").first.click()
        page.get_by_text("It was taken.").wait_for()
        tab.go("sources")
        page.get_by_text("window.pwned").first.wait_for()
        for i, kind in enumerate(KINDS):
            tab.go(f"sources/{i + 1}")
            page.get_by_role("button", name="what changed since 1").click()
            page.locator(".difference").first.wait_for()
            for form in page.get_by_role("group", name="Compared by").get_by_role("button").all():
                form.click()
                page.locator(".difference, .muted").first.wait_for()
            page.get_by_role("button", name="side by side").click()
            page.locator(".sides").wait_for()
            page.get_by_role("button", name="inline").click()
            if kind == "browser":
                # A picture that is a page, too, is none; whoever opens its address gets no page either.
                page.get_by_role("button", name="as drawn").first.click()
                page.locator("img.picture").first.wait_for(state="attached")
                told = page.evaluate(
                    f"fetch('/dashboard/sources/{i + 1}/picture?version=2').then(async (one) => "
                    "[one.status, one.headers.get('content-type')])"
                )
                assert told[0] == 404 or told[1] == "image/png", told
            if kind == "feed":
                page.get_by_role("region", name="Entries").wait_for()
                links = page.get_by_role("region", name="Entries").locator("a")
                assert all(one.get_attribute("href").startswith("https://") for one in links.all())
            page.get_by_text("What counts as a change").click()
            page.get_by_label("Leave out (CSS)").fill(EVIL[i % len(EVIL)][:80])
            page.wait_for_timeout(300)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            tab.fine()
        tab.go("add")
        page.get_by_label("Addresses, one a line").fill("\n".join(f"https://n.example/{one}" for one in EVIL))
        page.get_by_text("sources").first.wait_for()
        tab.fine()
        tab.close()


def _body(source: int, version: int) -> Body:
    kind, evil = KINDS[source - 1], EVIL[(source - 1) % len(EVIL)]
    if kind == "browser":
        markup = f"<title>{version}</title><p>{evil}{version}</p>".encode()
        return Body(with_picture(markup, POLYGLOTS[source % len(POLYGLOTS)]), MEDIA_TYPE)
    if source == JSON:
        rows = [{"id": one, one: version, "more": {one: [one, version]}} for one in EVIL]
        return Body(json.dumps({"items": rows, "all": [one * version for one in EVIL]}).encode(), "application/json")
    if source == CSV:
        names = ['"' + one.replace('"', '""') + '"' for one in (*EVIL, "=cmd|'/C calc'!A0")]
        return Body("".join(f"{one},{version}\n" for one in ("name", *names)).encode(), "text/csv")
    if source % 2:
        return Body(f"<title>{evil}</title><p>{evil}</p><p class='{evil[:5]}'>{version}</p>".encode(), "text/html")
    item = evil.replace("&", "&amp;").replace("<", "&lt;")
    link = f"<item><guid>{version}</guid><title>{item}</title><link>{item}</link></item>"
    fine = f"<item><guid>f{version}</guid><title>fine</title><link>https://a.example/x</link></item>"
    return Body(f"<rss><channel>{link}{fine}</channel></rss>".encode(), "application/rss+xml")
