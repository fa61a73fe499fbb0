"""`unstale poll`: look at sources now, through the engine if one runs, by ourselves if none does."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

import click

from unstale.cli.service import serving
from unstale.cli.settings import is_shared, load, settings_options
from unstale.errors import StoreError
from unstale.units import DAY, format_duration, parse_duration

if TYPE_CHECKING:
    from unstale.service import FleetService

#: seconds between two looks at whether the engine has polled
LOOK = 0.05


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--wait", default="1min", show_default=True, metavar="TIME", help="How long to wait for the engine.")
@settings_options
def poll(sources: tuple[str, ...], wait: str, config: str | None, store: str | None) -> None:
    """Poll sources now.

    A running engine does it as soon as its budget and the host's manners allow; without one it is done here, and
    recorded like any other poll. Exit code 1 if one failed.
    """
    from unstale.cli.choose import find_source
    from unstale.cli.compose import alone, poll_once

    settings, patience = load(config, store=store), DAY * parse_duration(wait, "wait")
    with serving(settings) as service:
        ids = [find_source(service.store, text) for text in sources]
        before = {source: _newest(service, source) for source in ids}
        if is_shared(settings.store):
            _by_the_engine(service, before, patience)
        else:
            try:
                with alone(settings):
                    service.poll(ids, lambda claims: asyncio.run(poll_once(settings, claims)))
            except StoreError as error:
                if "another process" not in str(error):
                    raise
                _by_the_engine(service, before, patience)
        failed = [not _say(service, source, before[source]) for source in ids]
    if any(failed):
        raise SystemExit(1)


def _by_the_engine(service: FleetService, before: dict[int, int], patience: float) -> None:
    service.hasten(list(before))
    end = time.monotonic() + patience
    while time.monotonic() < end and any(_newest(service, source) == token for source, token in before.items()):
        if service.running() is False:
            break
        time.sleep(LOOK)


def _newest(service: FleetService, source: int) -> int:
    seen = service.observations(source, 1)
    return seen[0].token if seen else 0


def _say(service: FleetService, source: int, before: int) -> bool:
    """One line about what came of it; whether the source has answered."""
    from unstale.keeper.outcomes import Answer

    found = service.history(source, 1)
    address, newest = found.listing.address, found.polls[0] if found.polls else None
    if newest is None or newest.token == before:
        why = "the engine has no budget for it or its host wants to be left alone"
        if service.running() is False:
            why = "nothing polls from this store: start `unstale run`, or `unstale worker` for PostgreSQL"
        click.echo(f"{address}: not polled yet, {why}")
        return False
    if newest.answer is Answer.FAILED:
        click.echo(f"{address}: failed, {newest.reason}")
        return False
    since = "" if math.isnan(newest.elapsed) else f", last looked at {format_duration(newest.elapsed / DAY)} before"
    held = "" if not found.versions else f", version {found.versions[0].version}, {found.versions[0].size:,} bytes"
    click.echo(f"{address}: {newest.answer.value}{since}{held}")
    return True
