"""A browser that notices everything that should not have happened, and an engine that runs beside it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.patience import BUSY
from unstale.cli.compose import Application, alone
from unstale.cli.settings import Settings

CHROMIUM = "/usr/bin/chromium"
_HEADINGS = {"": "Overview", "add": "Add sources"}


class Tab:
    """One window of the browser, and everything in it that should not have happened."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => { (window.broken ??= []).push(e.violatedDirective); })"
        )
        self.page, self.address = self.context.new_page(), address
        self.troubles: list[str] = []
        self.page.on("dialog", lambda dialog: (self.troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error {error}"))
        self.page.on("console", lambda said: self._said(said))
        self.page.on("request", lambda asked: self._asked(asked.url))

    def _said(self, said: Any) -> None:
        # A refusal that a test asks for is told by the browser too.
        if said.type == "error" and "status of 4" not in said.text:
            self.troubles.append(f"console {said.text}")

    def _asked(self, place: str) -> None:
        if not place.startswith(self.address):
            self.troubles.append(f"asked {place}")

    def go(self, view: str) -> Any:
        self.page.goto(f"{self.address}/#/{view}")
        name = _HEADINGS.get(view) or (f"Source {view[8:]}" if "/" in view else view.capitalize())
        self.page.get_by_role("heading", name=name, level=1, exact=True).wait_for()
        self.page.get_by_text("Reading the store…").wait_for(state="detached")
        return self.page

    def barriers(self) -> list[tuple[str, str]]:
        """What keeps people out who cannot see, or use a keyboard alone, as axe finds it."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]

    def until(self, truth: str, seconds: float = 15.0 * BUSY) -> None:
        """Wait for something to be true in the page; Playwright's own way would need eval, which the policy forbids."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(truth):
            assert time.monotonic() < end, truth
            time.sleep(0.02)

    def fine(self) -> None:
        """Nothing happened that should not have."""
        assert self.troubles == []
        assert self.page.evaluate("[window.pwned ?? null, window.broken ?? []]") == [None, []]

    def close(self) -> None:
        self.context.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def running(settings: Settings) -> Iterator[None]:
    """An engine that keeps the store of the settings."""
    stop: list[Any] = []

    async def run() -> None:
        end, loop = asyncio.Event(), asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(end.set))
        await Application(settings).run(end)

    with alone(settings):
        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        yield
        stop[0]()
        thread.join(20)
