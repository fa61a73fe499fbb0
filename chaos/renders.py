"""Scripts in everything that strangers can write, shown on the pages of the dashboard in a real browser: none runs.

A round is one hostile text that stands in a page: what counts is the page as the browser has it.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.browsing import Tab, chromium
from support.shown import shown
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.settings import Settings
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing, Price

#: what has to be closed before, and what would run then: 200 texts
CLOSING = ("", '">', "'>", "</title>", "</textarea>", "</script>", "-->", "]]>", "\u202e", "\\u003c")
RUNNING = (
    "<script>window.pwned=1;alert(1)</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<iframe src=javascript:parent.pwned=1>",
    "<a href=javascript:window.pwned=1 autofocus onfocus=window.pwned=1>x</a>",
    "<details open ontoggle=window.pwned=1>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=window.pwned=1>",
    "<style>@import '//evil.example/pwned';</style>",
    "<link rel=stylesheet href=//evil.example/pwned.css>",
    "<base href=//evil.example/pwned/>",
    "<meta http-equiv=refresh content='0;url=//evil.example/pwned'>",
    "<form action=//evil.example/pwned><input autofocus onfocus=window.pwned=1></form>",
    "<object data=data:text/html,<script>parent.pwned=1</script>>",
    "<video><source onerror=window.pwned=1></video>",
    "javascript:window.pwned=1//",
    "data:text/html,<script>window.pwned=1</script>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}`-window.pwned=1-`",
    "<template shadowrootmode=open><script>window.pwned=1</script></template>",
)
TEXTS = tuple(before + text for text, before in itertools.product(RUNNING, CLOSING))
#: sources of one store, two for each text
AT_ONCE = 20


def renders(first: int, count: int, folder: Path) -> Counter[str]:
    """At least so many hostile texts in pages, those of one store after the other's."""
    found: Counter[str] = Counter({"scripts that ran": 0, "pages": 0})
    with chromium() as browser:
        stores = itertools.count(first // 1_000)
        while found["rounds"] < count:
            begin = next(stores) * AT_ONCE
            texts = [TEXTS[n % len(TEXTS)] for n in range(begin, begin + AT_ONCE)]
            with tempfile.TemporaryDirectory(dir=folder) as place:
                settings = replace(Settings(), store=str(Path(place) / "s.db"))
                sources = _filled(settings.store, texts)
                with shown(settings, replicas={"name": texts[0], "upstream": texts[1]}) as address:
                    found.update(_looked_at(browser, address, sources))
    return found


def _filled(path: str, texts: list[str]) -> list[int]:
    """A store with these texts wherever a stranger's words are kept."""
    store, now = SqliteStore(path), time.time()
    whole = [(f"https://a.example/{n}?{text}", text) for n, text in enumerate(texts)]
    whole += [(f"{text} {n}", text) for n, text in enumerate(texts)]
    ids = store.add(
        [Listing(name, "memory", host=text, options={"title": text, "tags": [text]}) for name, text in whole], now
    )
    evil = dict(zip(ids, (text for _, text in whole), strict=True))
    for version, answer in enumerate((Answer.CHANGED, Answer.CHANGED, Answer.FAILED)):
        claims = store.claim(now + version, len(ids), lease=60.0, owner="t")
        store.record(
            [_entry(claim, answer, now + version, evil[claim.source]) for claim in claims],
            price=Price(now + version, 1.0, 1.0, 0.5, 0.4),
        )
    store.close()
    return ids


def _entry(claim: Any, answer: Answer, at: float, text: str) -> Entry:
    if answer is Answer.FAILED:
        return Entry(claim, answer, at, at, reason=text)
    data = f"<title>{text}</title>\n{text}\n{at}".encode()
    return Entry(claim, answer, at, at, body=Body(data, "text/html", etag=text, address=text, via=f'"{text}"'))


def _looked_at(browser: Any, address: str, sources: list[int]) -> Counter[str]:
    """Every page that shows them."""
    found: Counter[str] = Counter()
    tab = Tab(browser, address)
    for view in ("", "sources", "hosts", "replication", "events", *(f"sources/{source}" for source in sources)):
        page = tab.go(view)
        if view.startswith("sources/"):
            page.get_by_role("button", name="what changed since").first.click()
            page.locator(".difference").wait_for()
        found["rounds"] += page.evaluate("(document.documentElement.outerHTML.match(/pwned/g) || []).length")
        found["pages"] += 1
        ran = page.evaluate("Number('pwned' in window) + (window.broken ?? []).length")
        found["scripts that ran"] += int(ran) + len(tab.troubles)
        for trouble in tab.troubles:
            found[f"crash: {trouble[:200]}"] += 1
        tab.troubles.clear()
    tab.close()
    return found
