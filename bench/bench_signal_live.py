"""The engine against an origin with collections, in real time: as fresh as the simulator says, within the budget.

    python bench/bench_signal_live.py [--seconds 240]

An origin changes by known laws and logs every request; `unstale run`'s engine polls it with a sitemap, a feed of the
last changes, a folder, a sitemap that lies, and nothing of the kind, at the same time, each with a store and an origin
of its own. Beside each the same engine is run in virtual time on the very same changes. The first 40 % is for learning.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from harness import TABLES, machine
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application
from unstale.cli.settings import Http, Settings
from unstale.cli.virtual_engine import run_virtually
from unstale.keeper.outcomes import Answer
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import VirtualWorld

SOURCES, RATE, SPREAD, LEARNING = 100, 1 / 25, 0.7, 0.4
BUDGET = SOURCES * RATE
COLLECTIONS = {
    "none": None,
    "sitemap": ("/sitemap.xml", "sitemap"),
    "feed": ("/recent.atom", "feed"),
    "folder": ("/s/", "index"),
    "liar": ("/lying-sitemap.xml", "sitemap"),
}


def listings(base: str, kind: str) -> list[Listing]:
    """The sources, and their collection."""
    found = [Listing(f"{base}/s/{i}", host="127.0.0.1") for i in range(SOURCES)]
    if (told := COLLECTIONS[kind]) is not None:
        found.append(Listing(base + told[0], host="127.0.0.1", options={"collection": told[1]}))
    return found


async def live(kind: str, seconds: float, folder: Path) -> tuple[Site, str, float, float, float]:
    """The site and its address, when counting began, freshness, and what was spent of the budget."""
    site = Site.of(SOURCES, RATE, spread=SPREAD, seed=7, size=200)
    async with Origin(site) as origin:
        path = folder / f"{kind}.db"
        store = SqliteStore(path)
        store.add(listings(origin.address, kind), time.time())
        store.close()
        near = replace(Http(), allow_networks=("127.0.0.0/8",), robots=False)
        application = Application(replace(Settings(), store=str(path), budget=BUDGET, http=near))
        stop, begun = asyncio.Event(), origin.now()
        running = asyncio.create_task(application.run(stop))
        await asyncio.sleep(seconds)
        end = origin.now()
        stop.set()
        await running
        counted = begun + LEARNING * (end - begun)
        fresh = float(np.mean(origin.measured(counted, end).freshness))
        asked = sum(counted <= one.t < end for one in origin.log.asked)
        return site, origin.address, begun, fresh, asked / (BUDGET * (end - counted))


def virtual(kind: str, site: Site, base: str, begun: float, seconds: float) -> tuple[float, float]:
    """The same in virtual time, on the same changes."""
    end = begun + seconds
    world = VirtualWorld(
        site.changing.rate, end, changes=[site.changing.times(i, end) for i in range(SOURCES)], start=begun
    )
    store, asked, told = MemoryStore(), list[float](), COLLECTIONS[kind]
    store.add(listings(base, kind), begun)

    def answer(claim: Claim, now: float) -> Fetched | None:
        asked.append(now)
        if told is None or claim.address != base + told[0]:
            return None
        page = site.find(told[0].encode(), now, base)
        assert page is not None
        return Fetched(Answer.CHANGED, now, page.body(), page.media_type.decode(), address=claim.address)

    run_virtually(world, BUDGET, seconds, answer=answer, store=store, start=begun)
    counted = begun + LEARNING * seconds
    return world.freshness(counted, end), sum(counted <= at < end for at in asked) / (BUDGET * (end - counted))


async def measure(seconds: float, kinds: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        done = await asyncio.gather(*(live(kind, seconds, Path(folder)) for kind in kinds))
    rows = []
    for kind, (site, base, begun, fresh, spent) in zip(kinds, done, strict=True):
        simulated, cost = await asyncio.to_thread(virtual, kind, site, base, begun, seconds)
        ratio = fresh / simulated
        rows.append(f"| {kind} | {fresh:.4f} | {simulated:.4f} | {ratio:.3f} | {spent:.3f} | {cost:.3f} |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--kinds", default=",".join(COLLECTIONS))
    options = parser.parse_args()
    if not options.seconds:
        print("nothing is measured: say for how long with --seconds 240")
        return
    rows = asyncio.run(measure(options.seconds, options.kinds.split(",")))
    facts = {"measured": datetime.now(UTC).date().isoformat(), **machine()}
    head = "| collection | freshness live | in virtual time | ratio | spent of the budget live | in virtual time |"
    lines = ["# Collections in real time", "", ", ".join(f"{k} {v}" for k, v in facts.items()), ""]
    lines += [f"{SOURCES} sources that change every {1 / RATE:g} s on average, a poll per change,"]
    lines += [f"{options.seconds:g} s, the first {LEARNING:.0%} not counted.", "", head, "|---" * 6 + "|", *rows]
    (TABLES / "signal_live.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
