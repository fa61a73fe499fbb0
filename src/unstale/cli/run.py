"""`unstale run`: keep the copies of a list fresh, for as long as it is let."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.listening import address
from unstale.cli.logging_option import log_as, log_option
from unstale.cli.proxy import origins
from unstale.cli.service import serving
from unstale.cli.settings import Settings, load, near, settings_options
from unstale.cli.show import console
from unstale.cli.stopping import Stopping
from unstale.frozen import dataclass
from unstale.units import DAY, format_rate, many, parse_duration, parse_rate

if TYPE_CHECKING:
    from unstale.cli.compose import Application
    from unstale.cli.panel import More
    from unstale.service import FleetService

#: seconds between two looks on a terminal, and two lines elsewhere; the share of the time that looking may take
LIVE, CALM, SHARE = 0.5, 60.0, 0.1
#: objects made before the youngest are looked through for garbage; and how many such looks before the older are
GARBAGE = (20_000, 20, 20)
#: cost per second from which machine code for learning is worth its memory in smaller fleets too
BUSY = 50.0


@click.command()
@click.option("--budget", metavar="RATE", help="What all polls together may cost, like 1000/day; as in the settings.")
@click.option("--for", "lasting", metavar="TIME", help="End after 10m or 8h; Ctrl-C ends it at any time.")
@click.option("--events", is_flag=True, help="Print what happens, a JSON object a line, instead of the panel.")
@log_option
@click.option("--listen", metavar="HOST:PORT", help="Serve the copies here; as in the settings, or 127.0.0.1:8600.")
@click.option("--no-serve", is_flag=True, help="Do not serve the copies.")
@click.option(
    "--proxy",
    "proxied",
    multiple=True,
    metavar="[HOST=]ORIGIN",
    help="Be a cache in front of this origin too: what is asked for joins the fleet.",
)
@click.option(
    "--proxy-listen", default="127.0.0.1:8601", show_default=True, metavar="HOST:PORT", help="Where the cache listens."
)
@click.option(
    "--upstream", metavar="ADDRESS", help="Keep copies of another replica's copies too, like http://other:8600."
)
@click.option("--select", default="*", show_default=True, metavar="PATTERN", help="Which of its sources, by address.")
@settings_options
def run(
    budget: str | None,
    lasting: str | None,
    events: bool,
    log_json: bool,
    listen: str | None,
    no_serve: bool,
    proxied: tuple[str, ...],
    proxy_listen: str,
    upstream: str | None,
    select: str,
    config: str | None,
    store: str | None,
) -> None:
    """Poll what is worth it, keep what came back, until Ctrl-C.

    Everything is in one process and one file. It can be ended at any moment, also by force: nothing that was recorded
    is lost, and it goes on where it was. Other commands can be used while it runs: add, pause, hint, status, get.
    Copies are served as `unstale serve` does, in a process beside it.

    \b
      unstale add --from feeds.opml && unstale run --budget 500/day
      unstale run --proxy https://example.org --proxy-listen 127.0.0.1:8080
    """
    log_as(log_json)
    settings = load(config, store=store)
    option = None if budget is None else parse_rate(budget, "budget") / DAY
    if upstream is not None:
        settings = replace(settings, replicas=replace(settings.replicas, upstream=upstream, select=select))
    seconds = None if lasting is None else DAY * parse_duration(lasting, "for")
    serving = None if no_serve else listen or settings.server.listen
    if serving is not None:
        address(serving)
    address(proxy_listen)
    origins(proxied)
    beside = Beside(serving, proxied, proxy_listen)
    keep_fresh(settings, seconds, option=option, events=events, beside=beside)


@dataclass(frozen=True, slots=True)
class Beside:
    """What runs beside an engine: where copies are served, None for nowhere; the origins of a proxy, and its place."""

    listen: str | None = None
    proxied: Sequence[str] = ()
    proxy_listen: str = ""

    async def run(self, application: Application, stop: asyncio.Event, say: Callable[[str], None]) -> None:
        """Serve until `stop` is set."""
        tasks = []
        if self.listen is not None and find_spec("granian") and find_spec("starlette"):
            from unstale.cli.serve import beside

            tasks.append(beside(application.settings, self.listen, stop, say))
        if self.proxied:
            from unstale.cli.proxy import within

            tasks.append(within(application, self.proxied, self.proxy_listen, stop, say))
        await asyncio.gather(*tasks)


def keep_fresh(
    settings: Settings,
    seconds: float | None = None,
    *,
    option: float | None = None,
    events: bool = False,
    title: str = "",
    more: More = tuple,
    beside: Beside | None = None,
) -> Application:
    """Run an engine until its time is over or somebody ends it.

    `option` is a budget that was said with the command: the last word. `more` gives lines that the panel shows besides.
    """
    from unstale.adapters.spare_memory import give_back_compiler, keep_none_spare
    from unstale.cli.compose import Application, alone
    from unstale.cli.service import settled
    from unstale.core.learning.compiled import BUSY_MANY, MANY, load_beside, load_for_many, tell_of_code
    from unstale.service.budget import sentence

    tell = _print_event if events else _quiet if console().is_terminal else _plain
    with alone(settings):
        budget = settled(settings, option)
        if budget.set_here and not events:
            _say(f"budget {sentence(budget)}; `unstale budget --from-settings` goes back to the settings")
        # Machine code for learning takes a hundred megabytes. With few sources it saves little however fast they are
        # polled: batches are then large, and NumPy does those nearly as well.
        load_for_many(BUSY_MANY if budget.rate >= BUSY else MANY)
        keep_none_spare()
        tell_of_code(give_back_compiler)
        application = Application(settings, tell, budget=budget.rate)
        load_beside(application.compiling.ready)
        heard: list[Stopping] = []
        try:
            asyncio.run(_run(application, seconds, events, title, more, beside or Beside(), heard.append))
        finally:
            load_beside(None)
            tell_of_code(None)
            for stopping in heard:
                stopping.over()
    return application


async def _run(
    application: Application,
    seconds: float | None,
    events: bool,
    title: str,
    more: More,
    beside: Beside,
    ending: Callable[[Stopping], None],
) -> None:
    # What was imported stays: looking through it for garbage again and again would take a tenth of every poll.
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    stop = asyncio.Event()
    stopping = Stopping(stop, application.engine.config.grace)
    application.recorded = stopping.saved
    ending(stopping)
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, stopping.now)

    def say(text: str) -> None:
        if events:
            _print_event("serving", {"text": text})
        elif console().is_terminal:
            console().print(text, highlight=False, markup=False)
        else:
            _say(text)

    watcher = asyncio.create_task(_watch(application, stop, events, title, more))
    serving = asyncio.create_task(beside.run(application, stop, say))
    try:
        await application.run(stop)
    finally:
        stopping.now()
        await asyncio.gather(watcher, serving)
    tally = application.engine.counters
    if not events:
        done = f"{many(tally.polls, 'poll')}, {many(tally.changed, 'change')}, {many(tally.failed, 'failure')}"
        console().print(f"Stopped after {done}; everything is recorded.", highlight=False)


async def _watch(application: Application, stop: asyncio.Event, events: bool, title: str, more: More) -> None:
    """Show how it goes, as the service tells it: a live panel on a terminal, a line now and then elsewhere."""
    if events:
        return
    with serving(application.settings) as service:
        if console().is_terminal:
            title = title or f"unstale keeps {near(application.settings.store)} fresh"
            await _live(service, stop, f"{title}; Ctrl-C ends it", more)
        else:
            await _lines(service, stop)


async def _live(service: FleetService, stop: asyncio.Event, title: str, more: More) -> None:
    from rich.live import Live

    from unstale.cli.panel import AROUND, Panel

    say, panel = console(), Panel(service, title, more)
    with Live("", console=say, auto_refresh=False) as live:
        before = 0.0
        while not stop.is_set():
            begun = time.monotonic()
            live.update(await asyncio.to_thread(panel.draw, say.width, say.height - AROUND), refresh=True)
            took = time.monotonic() - begun
            # The first look loads what it needs, and says nothing about the others.
            await _pause(stop, max(LIVE, min(took, before) / SHARE))
            before = took


async def _lines(service: FleetService, stop: asyncio.Event) -> None:
    from unstale.cli.panel import line

    await _pause(stop, CALM)
    while not stop.is_set():
        status = await asyncio.to_thread(service.status, limit=0)
        if status.counts.polled:
            _say(line(status))
        await _pause(stop, CALM)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """So long, or until `stop` is set."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def _quiet(name: str, facts: Mapping[str, Any]) -> None:
    """On a terminal the panel tells."""


#: what is counted of entries that are taken all the same
_TAKEN = ("twice", "no time", "in the future")


def _plain(name: str, facts: Mapping[str, Any]) -> None:
    words = {
        "started": "polling, budget {budget}",
        "loaded": "{listed}",
        "store_failed": "{reason}",
        "fault": "source {source}: {error}",
        "poll_failed": "{address}: {reason}",
        "members": "{address}: {told}",
        "departures": "{address}: {told}",
    }
    if name in words:
        shown = dict(facts)
        if name == "members":
            if not facts["added"]:
                return
            left = ", ".join(f"{count:,} {why}" for why, count in facts["why"].items() if why not in _TAKEN)
            shown["told"] = many(facts["added"], "new source") + (f"; left out: {left}" if left else "")
        elif name == "departures":
            did = {did: facts[did] for did in ("paused", "resumed", "removed") if facts[did]}
            shown["told"] = ", ".join(f"{many(count, 'member')} {one}" for one, count in did.items())
        if "budget" in shown:
            shown["budget"] = format_rate(DAY * shown["budget"])
        if "sources" in shown:
            shown["listed"] = many(shown["sources"], "source")
        _say(words[name].format(**shown))


def _say(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}")


def _print_event(name: str, facts: Mapping[str, Any]) -> None:
    click.echo(json.dumps({"at": round(time.time(), 3), "event": name, **facts}))
