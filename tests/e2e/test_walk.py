"""The walk of somebody who follows a page: add, first copy, change, told, difference, noise left out, quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browsing import CHROMIUM, Tab, chromium, running
from support.patience import BUSY
from support.shown import shown
from support.walk import Site, serving, told, until, walked
from unstale.adapters.sqlite_store import SqliteStore

if not Path(CHROMIUM).exists():
    pytest.skip(f"there is no {CHROMIUM}: install Debian's chromium", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="install playwright")
pytest.importorskip("axe_playwright_python.sync_playwright", reason="install axe-playwright-python")


def test_from_an_empty_store_to_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise", reason="install apprise")
    monkeypatch.setenv("WALK_KEY", "0123456789abcdef" * 2)
    site, (settings, log) = Site(), walked(tmp_path)
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

        # A chat is to be told too: set up and tried here, in words of one's own, its address never shown again.
        tab.go("news")
        page.get_by_role("button", name="Tell somebody").click()
        page.get_by_label("Name").fill("chat")
        page.get_by_label("Address").fill(origin.replace("http://", "json://") + "/my-secret")
        page.get_by_label("Title", exact=True).fill("{{ title|upper }}: {{ count }}")
        assert tab.barriers() == []
        page.get_by_role("button", name="Save").click()
        page.get_by_text("message · address sealed · of everything").wait_for()
        page.get_by_role("button", name="Send a test").last.click()
        page.get_by_text("It was taken.").wait_for()
        assert site.messages[0]["title"] == "A TEST OF UNSTALE: 1"
        assert "my-secret" not in page.content()
        # And somebody who is told of this source alone, set up from its page.
        tab.go("sources/1")
        page.get_by_role("link", name="Tell somebody of its changes").click()
        page.get_by_label("Name").fill("one")
        page.get_by_label("Address").fill(origin.replace("http://", "json://"))
        assert page.get_by_label("Sources").input_value() == f"{origin}/trains"
        page.get_by_role("button", name="Save").click()
        page.get_by_text(f"message · address sealed · of {origin}/trains").wait_for()
        tab.go("sources/1")
        # The icon of its site was asked for by the server; nothing behind it runs.
        tab.until("document.querySelector('.address img.icon')?.naturalWidth === 1")
        sent = "fetch('/dashboard/sources/1/icon').then((one) => one.headers.get('content-type'))"
        assert page.evaluate(sent) == "image/gif"

        # It changes: who is told hears what, from the moment in which it was saved.
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

        until(lambda: sum("Eight" in one["message"] for one in site.messages) == 2)
        assert "TRAINS: 1" in [one["title"] for one in site.messages]

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
        page.get_by_text("Saved; the engine takes it up").wait_for()

        # And it is quiet: polls find nothing new, and nobody is told, from the first one on.
        before, version = len(told(log)), int(event["version"]) + 6
        for _ in range(2):
            assert page.evaluate(sent)["version"] == version
        site.news = "Seven trains a day"
        page.evaluate(sent)
        until(lambda: any("Seven" in str(one) for one in told(log)))
        assert len(told(log)) == before + 1, "what was left out was not told"
        assert told(log)[-1]["changes"][:1] == [{"sign": "-", "line": told(log)[-1]["changes"][0]["line"]}]
        tab.fine()
        tab.close()
