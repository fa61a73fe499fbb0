"""`unstale demo`: the main job, for a newcomer: sources that change, an engine that keeps up, the truth beside it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from unstale import plan
from unstale.cli.show import console
from unstale.errors import require
from unstale.units import DAY, format_duration, format_rate, many, parse_duration, parse_rate

if TYPE_CHECKING:
    from unstale.cli.compose import Application
    from unstale.core.checks import Floats
    from unstale.origin.server import Origin

#: the share of the time that is left out of what is measured, while first copies are made; seconds that are recent
WARM_UP, RECENTLY = 0.25, 10.0
#: stretches of time that are measured one by one, to know the error
BATCHES = 6
#: how much sources differ in how often they change, and in how much they are read: most within a factor of 20
SPREAD = 1.5


@click.command()
@click.option("--sources", default=60, show_default=True, help="How many there are.")
@click.option("--changes", default="18/min", show_default=True, help="How often one changes, on average.")
@click.option("--budget", default="4/s", show_default=True, help="What all polls together may cost.")
@click.option("--for", "lasting", default="1min", show_default=True, metavar="TIME", help="Ctrl-C ends it before.")
@click.option("--seed", default=1, show_default=True, help="The same seed, the same sources.")
def demo(sources: int, changes: str, budget: str, lasting: str, seed: int) -> None:
    """Watch Unstale keep copies of a web site that changes, on this machine.

    A site of sources that change at random, some a hundred times as often as others, is served on this machine. Some
    are read more than others: that is their weight. An engine that knows nothing else of them polls within the
    budget, learns who changes how often, and keeps the copies as fresh as it can. The site knows the truth, which is
    shown beside what the engine believes.
    """
    if "numba" not in sys.modules:
        # A minute is too short to compile what sixty sources do not need.
        os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
    from unstale.origin.server import Origin
    from unstale.origin.site import Site

    require(sources >= 1, "sources", sources, "must be 1 or more", "there is nothing to poll otherwise")
    rate, spend = parse_rate(changes, "changes") / DAY, parse_rate(budget, "budget") / DAY
    seconds = DAY * parse_duration(lasting, "for")
    origin = Origin(Site.of(sources, rate, spread=SPREAD, seed=seed))
    with tempfile.TemporaryDirectory(prefix="unstale-") as folder, origin.in_thread():
        application = _keep(origin, Path(folder), spend, seconds)
        _tell(origin, application)


def _keep(origin: Origin, folder: Path, budget: float, seconds: float) -> Application:
    from unstale.adapters.sqlite_store import SqliteStore
    from unstale.cli.run import keep_fresh
    from unstale.cli.settings import Http, Settings
    from unstale.ports import Listing

    settings = replace(
        Settings(), store=str(folder / "demo.db"), budget=budget, http=replace(Http(), allow_networks=("127.0.0.0/8",))
    )
    store = SqliteStore(settings.store)
    weights = _weights(origin).tolist()
    paths = zip(origin.site.paths, weights, strict=True)
    store.add([Listing(origin.address + path, weight=weight) for path, weight in paths], time.time())
    store.close()
    mean = format_duration(1.0 / float(np.mean(origin.site.changing.rate)) / DAY)
    which = many(len(origin.site), "source that changes", "sources that change")
    title = f"{which} every {mean} on average, {format_rate(DAY * budget)} to poll them"
    say = console()
    if not say.is_terminal:
        say.print(title, highlight=False)
    return keep_fresh(settings, seconds, title=title, more=lambda: [_true_now(origin)])


def _true_now(origin: Origin) -> tuple[str, str, str]:
    """What the site knows: how fresh the copies were in the last seconds."""
    now = origin.now()
    since = max(origin.site.changing.start, now - RECENTLY)
    return "", f"{100 * _measured(origin, since, now):.1f} %", "in truth, over the last 10 s"


def _weights(origin: Origin) -> Floats:
    """How much each source is read: as different as how often they change, and not for the same sources."""
    from unstale.origin.changes import spread_rates

    return spread_rates(len(origin.site), 1.0, SPREAD, origin.site.changing.seed + 1)


def _measured(origin: Origin, since: float, until: float) -> float:
    from unstale.origin.measure import measured_freshness

    return measured_freshness(origin.truth(), origin.polls(), since, until, _weights(origin)).fleet_freshness


def _tell(origin: Origin, application: Application) -> None:
    """What it came to after a warm-up, and what even polls and the best would have: the same changes, the same time."""
    from unstale.origin.measure import steady_freshness

    begin, end = origin.site.changing.start, origin.now()
    edges = np.linspace(begin + WARM_UP * (end - begin), end, BATCHES + 1)
    changes, weight = origin.truth(), _weights(origin)
    rate, budget = origin.site.changing.rate, application.settings.budget
    with np.errstate(divide="ignore"):
        known = DAY / plan(rates=rate * DAY, weights=weight, budget=budget * DAY).sync_rate
    spans = list(pairwise(edges.tolist()))

    def steady(interval: Floats) -> list[float]:
        return [float(np.average(steady_freshness(changes, interval, *span), weights=weight)) for span in spans]

    ours = _shown([_measured(origin, *span) for span in spans])
    even, best = _shown(steady(np.full(len(rate), len(rate) / budget))), _shown(steady(known))
    say, counted = console(), origin.log
    say.print(
        f"\nAfter the first {100 * WARM_UP:.0f} % of the time, the copies were fresh [bold]{ours}[/] of it.\n"
        f"Polled equally often, for the same budget, they would have been {even};\n"
        f"{best} is the best for somebody who knew how often each source changes.\n"
        f"{counted.found:,} of {many(counted.total, 'poll')} found something new.\n\n"
        "Your own list: unstale add --from FILE, then unstale run --budget 1000/day",
        highlight=False,
    )


def _shown(batches: list[float]) -> str:
    """A mean with its standard error, by batches of time.

    >>> _shown([0.5, 0.6, 0.7])
    '60.0 ± 5.8 %'
    """
    error = float(np.std(batches, ddof=1)) / len(batches) ** 0.5
    return f"{100 * float(np.mean(batches)):.1f} ± {100 * error:.1f} %"
