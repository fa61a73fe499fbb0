"""`unstale signals`: the collections of a fleet, a line each: whom they tell of, and how true that has been."""

from __future__ import annotations

import json
import math

import click

from unstale.cli.service import serving
from unstale.cli.settings import load, poller, settings_options
from unstale.engine.listed import COLLECTION
from unstale.secrecy import shown_address
from unstale.service.collections import CollectionView

#: columns that no table needs
WIDEST = 10_000
_NONE = "no collection has been heard yet: add one with `unstale add --collection ADDRESS`, then `{}`"
_UNHEARD = "none of the collections has been heard yet: `{}` lists them, and goes by them after its first minute or two"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a list of collections.")
@settings_options
def signals(as_json: bool, config: str | None, store: str | None) -> None:
    """Show what tells of many sources, and how far its word goes.

    A collection is new until polls of its members have shown what its signals are worth; then it is used, trusted
    (but at today's price a listing poll does not pay), unproven (nothing has shown yet what its word is worth) or not
    believed. Where workers share a store, and its members are at other hosts than itself, only these come and go by it.
    What is pushed (hints, WebSub, webhooks) is told the same way, a line for each channel. "True" is the share of its
    signals after which a poll found a change, "signalled" the share of changes that it told of, "late" how long after
    a change it may tell.

    \b
      unstale signals
      unstale signals --json
    """
    settings = load(config, store=store)
    with serving(settings) as service:
        found, now = service.collections(), service.clock()
        unheard = not found and service.store.search(options=(COLLECTION,), limit=1)
    if as_json:
        from unstale.service import documents

        click.echo(json.dumps([documents.collection(one, now) for one in found]))
        return
    if not found:
        click.echo((_UNHEARD if unheard else _NONE).format(poller(settings.store)))
        return
    from unstale.cli.show import console, grid_of

    names = ("state", "members", "listed every", "true", "signalled", "late", "heard", "")
    rows, out = [_cells(one, now) for one in found], console()
    table = grid_of(names, rows, -1)
    if out.measure(table, options=out.options.update(width=WIDEST)).maximum <= out.width:
        out.print(table)
        return
    # Addresses that do not fit beside the numbers stand below them: whole, for people copy them.
    with out.capture() as capture:
        out.print(grid_of(names[:-1], [row[:-1] for row in rows], 0), width=WIDEST, crop=False)
    head, *lines = capture.get().splitlines()
    click.echo(head)
    for line, row in zip(lines, rows, strict=True):
        click.echo(f"{line}\n   {row[-1]}")


def _cells(one: CollectionView, now: float) -> tuple[str, ...]:
    from unstale.service.words import ago, span

    def share(value: float) -> str:
        return f"{value:.0%}" if math.isfinite(value) else ""

    return (
        one.state,
        f"{one.members:,}",
        span(one.interval) if math.isfinite(one.interval) else "",
        share(one.precision),
        share(1.0 - one.silence),
        span(one.late) if one.late > 0.0 else "",
        ago(one.heard_at, now) if math.isfinite(one.heard_at) else "",
        f"{one.form} {shown_address(one.listing.address)}",
    )
