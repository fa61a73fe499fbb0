"""A real soak: the engine against a site of Poisson sources that knows the truth, for an hour or as long as is said.

The freshness that the site measured is compared with what the plan for the true rates promises, with what the engine
itself believed, and with the same budget spent evenly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import unstale
from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application
from unstale.cli.settings import Http, Settings
from unstale.core.checks import Floats
from unstale.engine.summary import summary
from unstale.origin.changes import spread_rates
from unstale.origin.log import RequestLog
from unstale.origin.measure import measured_freshness
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

SOURCES, MEAN, SPREAD, BUDGET, SEED = 400, 1 / 60.0, 1.0, 8.0, 5
#: the part of the time in which the engine learns and is not judged
LEARNING = 0.4


async def keep(origin: Origin, weight: Floats, folder: Path, seconds: float) -> tuple[Application, float, list[int]]:
    """Run the engine; what it believed on average once it had learned, and its memory from time to time."""
    settings = replace(
        Settings(), store=str(folder / "soak.db"), budget=BUDGET, http=replace(Http(), allow_networks=("127.0.0.0/8",))
    )
    store = SqliteStore(settings.store)
    paths = zip(origin.site.paths, weight.tolist(), strict=True)
    store.add([Listing(origin.address + path, weight=w) for path, w in paths], time.time())
    store.close()
    application, stop = Application(settings), asyncio.Event()
    running = asyncio.create_task(application.run(stop))
    begun, believed, memory = time.monotonic(), [], []
    while (gone := time.monotonic() - begun) < seconds and not running.done():
        await asyncio.sleep(min(1.0, seconds / 60))
        if gone > LEARNING * seconds:
            believed.append(summary(application.engine.scheduler, application.clock.now(), BUDGET).fresh)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    stop.set()
    await running
    return application, float(np.mean(believed)), memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--no-write", action="store_true", help="only print")
    options = parser.parse_args()
    rate = spread_rates(SOURCES, MEAN, SPREAD, SEED)
    weight = spread_rates(SOURCES, 1.0, SPREAD, SEED + 1)
    table = Table("soak", f"{options.minutes:g} minutes, {SOURCES} Poisson sources, {BUDGET:g} polls a second")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        site = Site.of(SOURCES, MEAN, spread=SPREAD, seed=SEED)
        origin = Origin(site, log=RequestLog(keep=10_000_000))
        with origin.in_thread():
            application, believed, memory = asyncio.run(keep(origin, weight, folder, 60.0 * options.minutes))
            begin, end = site.changing.start, origin.now()
            since = begin + LEARNING * (end - begin)
            kept = measured_freshness(origin.truth(), origin.polls(), since, end, weight)
    plan = unstale.plan(rates=site.changing.rate * 86400.0, weights=weight, budget=BUDGET * 86400.0)
    assert np.allclose(site.changing.rate, rate)
    changes = rate * SOURCES / BUDGET
    even = float(np.average(-np.expm1(-changes) / changes, weights=weight))
    truth, tally = kept.fleet_freshness, application.engine.counters
    # Sources are independent: the error of the weighted mean from the spread of what each had over its time.
    noise = _error(kept.freshness, plan.freshness, weight)
    table.fact("true freshness, as the site measured it", f"{truth:.4f} ± {noise:.4f}", "-")
    table.fact("promised by the plan for the true rates", f"{plan.fleet_freshness:.4f}", "-")
    table.fact("truth / promise", f"{truth / plan.fleet_freshness:.4f}", "0.98 to 1.02")
    table.fact("believed by the engine", f"{believed:.4f}", "-")
    table.fact("the same budget spent evenly", f"{even:.4f}", "less than the truth")
    table.fact("polls", f"{tally.polls:,}", "-")
    table.fact("spent / budget", f"{application.engine.bucket.spent / (BUDGET * (end - begin)):.4f}", "0.98 to 1")
    table.fact("failures", f"{tally.failed}", "0")
    table.fact("memory, first and last minute", f"{memory[len(memory) // 60] // 1024} and {memory[-1] // 1024} MB", "-")
    if not options.no_write:
        table.write()
    good = abs(truth / plan.fleet_freshness - 1.0) < 0.02 + 3.0 * noise and truth > even and tally.failed == 0
    spent = application.engine.bucket.spent / (BUDGET * (end - begin) + application.engine.bucket.burst)
    facts = {
        "truth": truth,
        "promise": plan.fleet_freshness,
        "even": even,
        "believed": believed,
        "noise": noise,
        "failures": tally.failed,
        "spent": spent,
        "good": good,
    }
    print(json.dumps(facts))
    sys.exit(0 if good else 1)


def _error(kept: Floats, planned: Floats, weight: Floats) -> float:
    share = weight / weight.sum()
    return float(np.sqrt(np.sum((share * (kept - planned)) ** 2)))


if __name__ == "__main__":
    main()
