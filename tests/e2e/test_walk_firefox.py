"""The walk of somebody who follows a page, in Firefox: from an empty store to a change that is told, and to quiet."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browsing import running
from support.firefox import FIREFOX, firefox
from support.shown import shown
from support.walk import Site, serving, told, until, walked
from unstale.adapters.sqlite_store import SqliteStore

if not Path(FIREFOX).exists():
    pytest.skip(f"there is no {FIREFOX}: install Debian's firefox-esr", allow_module_level=True)
pytest.importorskip("aiohttp", reason="install aiohttp")

POLL = "import('/dashboard/api.js').then((api) => api.send('POST', '/api/v1/sources/1/poll?wait=30s'))"


def test_from_an_empty_store_to_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALK_KEY", "0123456789abcdef" * 2)
    site, (settings, log) = Site(), walked(tmp_path)
    SqliteStore(settings.store).close()
    with serving(site) as origin, running(settings), shown(settings) as address, firefox() as window:
        window.go(address)
        window.sees("There are no sources yet.")
        window.click("Add sources")
        window.type("Addresses, one a line", f"{origin}/trains")
        window.sees("1 source: 1 new.")
        window.click("See what a poll brings")
        window.sees("Nine trains a day")
        window.type("Tags", "travel")
        window.click("Add", "button")

        # The first copy comes by itself, and is no change; then it changes, and who is told hears what.
        window.until("[...document.querySelectorAll('a')].some((one) => one.textContent === 'file 1')")
        site.news = "Eight trains a day"
        window.click("Poll now")
        until(lambda: any("Eight" in str(one) for one in told(log)))
        event = next(one for one in told(log) if "Eight" in str(one))
        assert (event["title"], event["tags"], event["first"]) == ("Trains", ["travel"], False)

        # The link leads to the difference, by words.
        window.go(address + event["link"].removeprefix("http://dashboard.example"))
        window.until("[...document.querySelectorAll('ins')].some((one) => one.textContent.includes('Eight'))")
        window.until("[...document.querySelectorAll('del')].some((one) => one.textContent.includes('Nine'))")
        window.click("side by side")
        window.until("Boolean(document.querySelector('.sides ins'))")

        # It changes at every poll: what to leave out is offered, tried, and saved; and it is quiet.
        for _ in range(6):
            assert window.run(POLL)["polled"]
        window.run("void location.reload()")
        window.click("Leave out p#clock")
        window.sees("this would have been no change")
        window.click("Save")
        window.sees("Saved; the engine takes it up")
        assert window.run(POLL)["polled"]
        version, before = window.run(POLL)["version"], len(told(log))
        assert window.run(POLL)["version"] == version
        assert len(told(log)) == before
        elsewhere = f"performance.getEntriesByType('resource').filter((one) => !one.name.startsWith('{address}'))"
        assert window.run(f"{elsewhere}.map((one) => one.name)") == []
        assert window.broken() == []
