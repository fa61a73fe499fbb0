"""A rehearsal: the engine in virtual time on a few sources, so that all that it decides by is compiled and kept.

In a process of its own it holds nobody up, and what it has compiled is there for whoever comes after it. What is
compiled goes by the shapes of what it is given: so the engine itself gives it.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import numpy as np

from unstale.adapters.memory_store import MemoryStore
from unstale.cli.virtual_engine import run_virtually
from unstale.core.learning.compiled import load
from unstale.engine.loop import Engine
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CHANNELS
from unstale.ports import Claim, Fetched, Listing
from unstale.sim.virtual import START, VirtualWorld

DAY, PAGES, DAYS = 86_400.0, 12, 6.0
SITE, SITEMAP = "https://site.example/", "https://site.example/sitemap.xml"


def rehearse(objective: str = "freshness") -> Engine:
    """An engine that has polled a site with a sitemap, of which pushes told besides, until it decided by all of it."""
    rates, end, store = np.full(PAGES, 2.0 / DAY), START + DAYS * DAY, MemoryStore()
    world = VirtualWorld(rates, end, seed=5)
    store.add([Listing(f"{SITE}{i}", host="site.example") for i in range(PAGES)], START)
    store.add([Listing(SITEMAP, host="site.example", options={"collection": "sitemap"})], START)

    def answer(claim: Claim, now: float) -> Fetched | None:
        if claim.address != SITEMAP:
            return Fetched(Answer.FAILED, now, reason="it is only a rehearsal") if claim.source == 1 else None
        lines = []
        for i, times in enumerate(world.changes):
            count = int(np.searchsorted(times, now, side="right"))
            last = datetime.fromtimestamp(float(times[count - 1]) if count else START, UTC)
            lines.append(f"<url><loc>{SITE}{i}</loc><lastmod>{last.isoformat()}</lastmod></url>")
        told = f"<urlset>{''.join(lines)}</urlset>".encode()
        return Fetched(Answer.CHANGED, now, told, "application/xml", address=SITEMAP)

    engine, _ = run_virtually(
        world,
        float(rates.sum()),
        DAYS * DAY,
        answer=answer,
        store=store,
        config={"objective": objective},
    )
    # Nobody else writes to this store, so nobody pushes: the scheduler is told itself.
    engine.scheduler.push(CHANNELS["hint"], np.array([1, 2], dtype=np.int64), end)
    return engine


if __name__ == "__main__":
    load()
    rehearse(*sys.argv[1:])
