"""`unstale origin`: a web site of changing sources on this machine, which knows how fresh its copies could be."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.live import Live

from unstale.cli.show import console
from unstale.errors import InputError, require, sentence
from unstale.units import DAY, format_duration, format_rate, many, parse_duration, parse_rate

if TYPE_CHECKING:
    from unstale.origin.log import RequestLog
    from unstale.origin.server import Origin

#: seconds between two looks at the count, on a terminal and elsewhere
LIVE, CALM = 1.0, 10.0


@click.command()
@click.option("--sources", default=100, show_default=True, help="How many there are.")
@click.option("--changes", default="1/min", show_default=True, help="How often a source changes, on average.")
@click.option(
    "--process",
    multiple=True,
    default=["poisson"],
    show_default="poisson",
    help="How evenly: poisson, pareto:3, weibull:0.7, constant, …; give several for a mix.",
)
@click.option(
    "--spread", default=1.0, show_default=True, help="How much rates differ: 0 not, 1 most within a factor 7."
)
@click.option("--seed", default=1, show_default=True, help="The same seed, the same gaps between changes.")
@click.option("--size", default=2000, show_default=True, help="Bytes of a source.")
@click.option("--last-modified", is_flag=True, help="Tell when sources last changed, beside their ETag.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; others can reach 0.0.0.0.")
@click.option("--port", default=8000, show_default=True, help="0 takes any free one.")
@click.option("--log", metavar="FILE", help="Write every request here, as JSON lines.")
@click.option("--truth", metavar="FILE", help="Write every change here at the end: .csv, .parquet or .jsonl.")
@click.option("--for", "lasting", metavar="TIME", help="End after 10m or 1h; Ctrl-C ends it at any time.")
@click.option("--json", "as_json", is_flag=True, help="Print the address, and at the end the summary, as JSON.")
def origin(
    sources: int,
    changes: str,
    process: tuple[str, ...],
    spread: float,
    seed: int,
    size: int,
    last_modified: bool,
    host: str,
    port: int,
    log: str | None,
    truth: str | None,
    lasting: str | None,
    as_json: bool,
) -> None:
    """Serve a web site of sources that change, to try things on.

    The sources are at /s/0, /s/1, …, as feeds at /feed/0, …; lists of them at /list.csv, /list.txt. Collections that
    tell of their changes are /sitemap.xml, /recent.atom (the last 20) and /s/ (a folder); /lying-sitemap.xml tells of
    changes that never were. Sources have ETags, answer 304, and change by the laws you choose. The origin knows every
    change (/truth.csv, --truth), so it can tell how fresh copies truly were. Sources that misbehave are at
    /hostile/hang, drip, bomb, noise, …

    \b
      unstale origin
      unstale origin --sources 1000 --changes 6/h --process pareto:2.5 --for 10m --truth truth.csv
    """
    from unstale.origin.log import RequestLog
    from unstale.origin.server import Origin
    from unstale.origin.site import Site

    rate = parse_rate(changes, "changes") / DAY
    seconds = None if lasting is None else DAY * parse_duration(lasting, "for")
    if truth is not None:
        _check_output(truth)
    site = Site.of(sources, rate, process, spread=spread, seed=seed, size=size)
    serving = Origin(site, host=host, port=port, log=RequestLog(path=log), last_modified=last_modified)
    asyncio.run(_serve(serving, seconds, as_json))
    end = serving.now()
    history = site.truth(end, serving.address)
    if truth is not None:
        from unstale.traces.write import write

        write(history, truth)
    noted, lasted = serving.log, end - site.changing.start
    summary = {
        "seconds": lasted,
        "changes": len(history.times),
        "requests": noted.total,
        "unchanged": noted.unchanged,
        "found": noted.found,
        "log": log,
        "truth": truth,
    }
    if as_json:
        click.echo(json.dumps(summary))
        return
    say = console()
    say.print(f"[bold]{_counted(noted)}[/bold]", highlight=False)
    say.print(
        f"{many(len(history.times), 'change')} of {_sources(sources)} in {format_duration(lasted / DAY)}.",
        highlight=False,
    )
    for words, file in (("The requests are in", log), ("The changes are in", truth)):
        if file is not None:
            say.print(f"{words} {file}.", highlight=False, markup=False, soft_wrap=True)


async def _serve(serving: Origin, seconds: float | None, as_json: bool) -> None:
    """Serve until the time is over or somebody ends it, with a word now and then."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # where signals cannot be handled so, Ctrl-C is an exception as ever
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, ended.set)
    async with serving:
        _begin(serving, as_json)
        if seconds is not None:
            loop.call_later(seconds, ended.set)
        say = console()
        live = Live("", console=say, auto_refresh=False, transient=True) if say.is_terminal and not as_json else None
        with live or nullcontext():
            while not ended.is_set():
                if live:
                    live.update(_counted(serving.log), refresh=True)
                with suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), LIVE if live else CALM)
                if not live and not as_json and not ended.is_set():
                    say.print(_counted(serving.log), highlight=False)


def _begin(serving: Origin, as_json: bool) -> None:
    changing = serving.site.changing
    if as_json:
        click.echo(json.dumps({"address": serving.address, "sources": len(changing), "start": changing.start}))
        return
    rate = format_rate(float(changing.rate.sum()) * DAY)
    say = console()
    say.print(
        f"[bold]{_sources(len(changing))} at {serving.address}[/bold], {rate} changes in all; Ctrl-C ends it.",
        highlight=False,
        soft_wrap=True,
    )
    tries = {
        f"curl {serving.address}/s/0": "look at a source",
        f"unstale add --from {serving.address}/list.csv": "keep copies of all of them",
        f"unstale add --collection {serving.address}/sitemap.xml": "the same, by what its sitemap tells",
        f"curl {serving.address}/truth.csv": "every change so far",
    }
    width = max(map(len, tries))
    for command, words in tries.items():
        say.print(f"  {command:<{width}}  {words}", highlight=False, markup=False, soft_wrap=True)
    network = "::1/128" if "[" in serving.address else "127.0.0.0/8"
    say.print(
        f'To poll this machine, write allow_networks = ["{network}"] under [http] in unstale.toml.',
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _counted(log: RequestLog) -> str:
    share = log.found / log.total if log.total else 0.0
    return f"{many(log.total, 'request')}, {log.unchanged:,} answered not modified, {100 * share:.1f} % found a change"


def _sources(count: int) -> str:
    return many(count, "source")


def _check_output(path: str) -> None:
    """What would only be noticed at the end, at the beginning."""
    file = Path(path)
    if file.suffix.lower() not in (".csv", ".parquet", ".pq", ".jsonl", ".ndjson"):
        raise InputError(sentence("truth", repr(path), "has an unknown ending", "use .csv, .parquet or .jsonl"))
    require(file.absolute().parent.is_dir(), "truth", repr(path), "is in no folder that exists", "choose another file")
