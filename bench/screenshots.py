"""Pictures of the dashboard for the README and the documentation: python bench/screenshots.py [FOLDER]."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import sync_playwright  # noqa: E402

from support.shown import lived, shown  # type: ignore[import-not-found]  # noqa: E402
from unstale.cli.compose import alone  # noqa: E402
from unstale.cli.settings import Settings  # noqa: E402
from unstale.ports import Listing  # noqa: E402

#: views by the name of their picture
VIEWS = {"overview": "#/", "source": "#/sources/7"}
BUDGET = 90 * 24 / 86400.0


def main() -> None:
    """Make a day of history, show it, take pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/images"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        settings = replace(Settings(), store=str(Path(place) / "s.db"), budget=BUDGET)
        listings = [
            Listing(f"https://transit.example/lines/{i}", host="transit.example", weight=(1.0, 2.0, 5.0, 20.0)[i % 4])
            for i in range(80)
        ]
        lived(Path(settings.store), listings, budget=BUDGET)
        # Holding the lock is what a running engine is known by.
        with alone(settings), shown(settings) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for name, view in VIEWS.items():
                tab = browser.new_page(viewport={"width": 1200, "height": 900}, device_scale_factor=1.5)
                tab.goto(f"{address}/{view}")
                tab.get_by_text("running", exact=True).wait_for()
                tab.locator(".chart canvas").nth(1).wait_for()
                tab.wait_for_timeout(1500)
                tab.screenshot(path=folder / f"{name}.png")
                print(folder / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
