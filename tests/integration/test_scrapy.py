"""Real Scrapy polls a site that knows every request and every change; the store knows the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.state import WIDTH
from unstale.keeper.outcomes import Answer
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

SPIDER = """
import scrapy
from unstale.contrib.scrapy import KeptFresh

class News(KeptFresh, scrapy.Spider):
    name = "news"
    custom_settings = {"TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "INFO", **CUSTOM}

    PARSE
"""
SYNC = "def parse(self, response): yield {'text': response.css('title::text').get(), 'at': response.url}"
ASYNC = "async def parse(self, response): return [{'text': response.css('title::text').get(), 'at': response.url}]"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    monkeypatch.chdir(tmp_path)
    Path("unstale.toml").write_text('budget = "20/s"\n')
    with Origin(Site.of(8, 0.3, seed=3)).in_thread() as origin:
        yield origin


def begin(custom: dict[str, object], parse: str = SYNC) -> subprocess.Popen[str]:
    Path("spider.py").write_text(SPIDER.replace("CUSTOM", repr(custom)).replace("PARSE", parse))
    words = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-o", "items.jsonl"]
    return subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def items() -> list[dict[str, str]]:
    return [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("parse", [SYNC, ASYNC], ids=["sync", "async"])
def test_what_is_due_is_polled_and_what_came_of_it_is_recorded(site: Origin, parse: str) -> None:
    store = SqliteStore("unstale.db")
    noise = f"{site.address}/hostile/noise"
    listed = [*(f"{site.address}/s/{i}" for i in range(8)), f"{site.address}/nothing", noise]
    ids = dict(zip(listed, store.add([Listing(address) for address in listed], time.time()), strict=True))
    _, said = begin({"CLOSESPIDER_TIMEOUT": 8}, parse).communicate(timeout=60)
    assert "ERROR" not in said, said

    counters = store.counters()
    asked = [one for one in site.log.asked if one.path.startswith(b"/s/")]
    seen = {address: store.observations(source) for address, source in ids.items()}
    # Every request that the site has answered is an observation, and nothing else is one.
    assert sum(len(seen[address]) for address in listed[:8]) == len(asked) > 12
    assert counters["claimed"] == counters["recorded"] + counters.get("given_back", 0)
    unchanged = sum(one.answer is Answer.UNCHANGED for address in listed[:8] for one in seen[address])
    assert unchanged == site.log.unchanged > 0, "validators were sent, and 304 understood"
    # The budget: 20 per second for eight seconds, and a burst of a second's worth.
    assert counters["recorded"] <= 20 * 8 + 20
    assert {one.reason for one in seen[f"{site.address}/nothing"]} == {"127.0.0.1: it answered 404 Not Found"}
    # `parse` got what changed, the first copies included, and nothing twice.
    assert len(items()) == counters["changed"]
    told = [one for one in items() if "/s/" in one["at"]]
    assert len({(one["at"], one["text"]) for one in told}) == len(told)
    newest = {one["at"]: one["text"] for one in told}
    for address in listed[:8]:
        copy = store.copy(ids[address])
        assert copy is not None
        assert f"<title>{newest[address]}</title>".encode() in copy.body.data
    assert store.fleet(WIDTH).beliefs[:8].any(axis=1).all(), "the learner has learned"
    store.close()


def test_ctrl_c_leaves_nothing_claimed(site: Origin) -> None:
    store = SqliteStore("unstale.db")
    store.add([Listing(f"{site.address}/s/{i}") for i in range(8)], time.time())
    store.add([Listing(f"{site.address}/hostile/hang")], time.time())
    spider = begin({"DOWNLOAD_DELAY": 0.5, "RANDOMIZE_DOWNLOAD_DELAY": False, "DOWNLOAD_TIMEOUT": 5})
    end = time.monotonic() + 30
    while store.counters().get("recorded", 0) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    spider.send_signal(signal.SIGINT)
    _, said = spider.communicate(timeout=60)
    assert "ERROR" not in said, said
    counters = store.counters()
    assert 3 <= counters["recorded"] < counters["claimed"], "some were waiting for Scrapy's delay"
    assert counters["claimed"] == counters["recorded"] + counters["given_back"]
    # What was not polled is still due; it did not fail.
    assert counters.get("failed", 0) <= 1
    store.close()


@pytest.mark.parametrize("missing", [True, False], ids=["no store", "another engine"])
def test_what_is_wrong_is_one_sentence(site: Origin, missing: bool) -> None:
    from unstale.cli.compose import alone
    from unstale.cli.settings import load

    if missing:
        _, said = begin({}).communicate(timeout=60)
        assert "does not exist: add sources with `unstale add`" in said
    else:
        SqliteStore("unstale.db").close()
        with alone(load()):
            _, said = begin({}).communicate(timeout=60)
        assert "is kept fresh by another process already" in said
    assert "Traceback" not in said
    assert "unstale_failed" in said
