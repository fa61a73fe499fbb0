"""The whole loop, durable: claim, poll, record; against a bare libcurl loop that records nothing, and Scrapy."""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench_fetch import ETAG, FLIGHTS, POLLS, bare, serving
from harness import Table, peak_memory
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.ports import Claim, Fetched, Listing, Request

#: more than any machine can spend: every source is due again at once
BOUNDLESS = 1e7
#: rounds over all sources in one run, so that starting does not count for much
TURNS = 4
SPIDER = """
import json, sys, time
import scrapy
from scrapy.crawler import CrawlerProcess

origin, count, etag, flights = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])

class Spider(scrapy.Spider):
    name = "bench"
    handle_httpstatus_list = [304]
    seen = 0
    custom_settings = {"CONCURRENT_REQUESTS": flights, "CONCURRENT_REQUESTS_PER_DOMAIN": flights, "LOG_ENABLED": False,
                       "ROBOTSTXT_OBEY": False, "TELNETCONSOLE_ENABLED": False, "COOKIES_ENABLED": False,
                       "RETRY_ENABLED": False, "DOWNLOAD_DELAY": 0}
    async def start(self):
        Spider.begun = time.perf_counter()
        for number in range(count):
            yield scrapy.Request(f"{origin}{number}", headers={"If-None-Match": etag}, dont_filter=True)
    def parse(self, response):
        assert response.status == 304
        Spider.seen += 1

process = CrawlerProcess()
process.crawl(Spider)
process.start()
print(json.dumps({"seconds": time.perf_counter() - Spider.begun, "seen": Spider.seen}))
"""


def kept(folder: Path, origin: str) -> Path:
    """A store whose sources all have a copy that the server calls unchanged."""
    path = folder / "bench.db"
    store = SqliteStore(path)
    store.add([Listing(f"{origin}{number}") for number in range(POLLS)], time.time() - 1.0)
    store.close()
    asyncio.run(polled(path, POLLS))
    return path


async def polled(path: Path, polls: int) -> None:
    """So many polls, with everything that belongs to them."""
    fetcher = HttpFetcher(Gate(["127.0.0.0/8"]), connections=FLIGHTS)
    stop = asyncio.Event()

    async def look(claim: Claim) -> Fetched:
        return await fetcher.fetch(Request(claim.address, claim.etag, claim.last_modified))

    executor = StoreExecutor(lambda: SqliteStore(path), quick=True)
    engine = Engine(executor, EngineConfig(BOUNDLESS, polls=FLIGHTS), SystemClock(), look)

    async def watch() -> None:
        while engine.counters.polls < polls:
            await asyncio.sleep(0.002)
        stop.set()

    await asyncio.gather(engine.run(stop), watch())
    await fetcher.close()
    executor.close()
    assert engine.counters.failed == 0


def scrapy(origin: str) -> float | None:
    """Seconds that Scrapy takes for the same polls, without its start; None if it is not installed."""
    done = subprocess.run(
        [sys.executable, "-c", SPIDER, origin, str(POLLS), ETAG, str(FLIGHTS)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        print("Scrapy does not run here:", done.stderr.strip().splitlines()[-1:])
        return None
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["seen"] == POLLS
    return float(told["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    table = Table("engine", f"{TURNS * POLLS:,} polls over loopback, {FLIGHTS} at a time, outcomes durable")
    with serving() as origin, tempfile.TemporaryDirectory() as folder:
        path, polls = kept(Path(folder), origin), TURNS * POLLS

        def loop() -> None:
            for _ in range(TURNS):
                asyncio.run(bare(origin, ETAG))

        runs = {"bare libcurl loop": loop, "engine": lambda: asyncio.run(polled(path, polls))}
        seconds = table.measure("not modified", runs, reference="bare libcurl loop", rounds=options.rounds)
        cpu = next(row["cpu_seconds"] for row in table.rows if row["candidate"] == "engine")
        table.fact("polls per second", f"{polls / seconds['engine']:,.0f}", "-")
        table.fact("CPU per poll", f"{cpu / polls * 1e6:.0f} µs", "-")
        share = seconds["bare libcurl loop"] / seconds["engine"]
        table.fact("rate against the bare loop", f"{share:.2f}", "0.5 or more")
        crawled = [spent for _ in range(max(options.rounds // 2, 1)) if (spent := scrapy(origin)) is not None]
        if crawled:
            table.fact("times Scrapy", f"{TURNS * median(crawled) / seconds['engine']:.1f}", "5 or more")
            table.fact("Scrapy, polls per second", f"{POLLS / median(crawled):,.0f}", "-")
    table.fact("peak memory", f"{peak_memory() / 2**20:.0f} MB", "-")
    table.write()


if __name__ == "__main__":
    main()
