"""`unstale poll`: look at sources now, through the engine if one runs, by ourselves if none does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import numpy as np

from unstale.cli.settings import Settings, is_shared, load, settings_options
from unstale.errors import StoreError
from unstale.service.hints import hasten
from unstale.units import DAY, format_duration, parse_duration

if TYPE_CHECKING:
    from unstale.ports import Observation, Store

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
    from unstale.cli.choose import find_source, opened
    from unstale.cli.compose import alone

    settings, patience = load(config, store=store), DAY * parse_duration(wait, "wait")
    with opened(settings) as held:
        ids = [find_source(held, text) for text in sources]
        before = {source: _newest(held, source) for source in ids}
        if is_shared(settings.store):
            _by_the_engine(held, ids, before, patience)
        else:
            try:
                with alone(settings):
                    _by_ourselves(settings, held, ids)
            except StoreError as error:
                if "another process" not in str(error):
                    raise
                _by_the_engine(held, ids, before, patience)
        failed = [not _say(held, source, before[source]) for source in ids]
    if any(failed):
        raise SystemExit(1)


def _by_the_engine(store: Store, ids: Sequence[int], before: dict[int, int], patience: float) -> None:
    hasten(store, ids, time.time())
    end = time.monotonic() + patience
    while time.monotonic() < end and any(_newest(store, source) == before[source] for source in ids):
        time.sleep(LOOK)


def _by_ourselves(settings: Settings, store: Store, ids: Sequence[int]) -> None:
    from unstale.cli.compose import config_of, poll_once, rules_of
    from unstale.core.learning.state import WIDTH
    from unstale.engine.config import scheduler_of
    from unstale.engine.host_limits import HostLimits
    from unstale.engine.outcomes import entries_of

    config, now = config_of(settings), time.time()
    # The longest overdue are claimed first: nobody is overdue longer than this.
    store.set_due(ids, [0.0] * len(ids))
    claims = [c for c in store.claim(now, len(ids), lease=config.lease, owner="poll") if c.source in set(ids)]
    outcomes = asyncio.run(poll_once(settings, claims))
    scheduler, _ = scheduler_of(store.columns_of(ids, WIDTH), config, now, HostLimits(rules_of(settings)))
    scheduler.price = max(scheduler.price, 1e-300)
    store.record(entries_of(scheduler, outcomes)[0])


def _newest(store: Store, source: int) -> int:
    seen: list[Observation] = store.observations(source, 1)
    return seen[0].token if seen else 0


def _say(store: Store, source: int, before: int) -> bool:
    """One line about what came of it; whether the source has answered."""
    from unstale.keeper.outcomes import Answer

    address = store.listings([source])[0].address
    seen = store.observations(source, 1)
    if not seen or seen[0].token == before:
        click.echo(f"{address}: not polled yet, the engine has no budget for it or its host wants to be left alone")
        return False
    newest, copy = seen[0], store.copy(source)
    if newest.answer is Answer.FAILED:
        click.echo(f"{address}: failed, {newest.reason}")
        return False
    since = "" if np.isnan(newest.elapsed) else f", last looked at {format_duration(newest.elapsed / DAY)} before"
    held = "" if copy is None else f", version {copy.version}, {len(copy.body.data):,} bytes"
    click.echo(f"{address}: {newest.answer.value}{since}{held}")
    return True
