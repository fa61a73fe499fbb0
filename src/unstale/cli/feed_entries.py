"""`unstale entries`: what a feed has told of since it is polled."""

from __future__ import annotations

import json

import click

from unstale.cli.choose import find_source
from unstale.cli.differing import harmless
from unstale.cli.reading import ago, firm
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console, grid
from unstale.errors import InputError, sentence
from unstale.service import history_documents


@click.command()
@click.argument("source")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Show so many entries.")
@click.option("--before", type=click.IntRange(min=1), metavar="N", help="Only entries with lower numbers than this.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC.")
@settings_options
def entries(source: str, limit: int, before: int | None, as_json: bool, config: str | None, store: str | None) -> None:
    """The entries of a feed, newest first: also those that the feed itself has dropped since.

    Each is told once, with when it was first and last seen there. SOURCE is an address, a part of one that no other
    source has, or an id.

    \b
      unstale entries example.org/feed
      unstale entries example.org/feed --limit 20 --json
    """
    with serving(load(config, store=store)) as service:
        now = service.clock()
        number = find_source(service.store, source)
        (listing,) = service.store.listings([number])
        if listing.kind != "feed":
            raise InputError(
                sentence("source", listing.address, f"is of kind {listing.kind}, not a feed", "add it with --kind feed")
            )
        found = service.entries(number, limit, before)
    if as_json:
        click.echo(json.dumps({"id": number, "address": listing.address} | history_documents.entries(found)))
        return
    out = console()
    out.print(listing.address, style="bold", highlight=False, markup=False, soft_wrap=True)
    if not found.entries:
        out.print("no entry is known yet" if before is None else "none before that", highlight=False)
        return
    table = grid("number", "first seen", "", "entry")
    table.columns[1].justify = table.columns[3].justify = "left"
    table.columns[3].no_wrap = False
    for one in found.entries:
        edited = f"edited {ago(one.edited_at, now)}" if one.edited_at is not None else ""
        dropped = "" if found.there(one) else f"gone since {ago(one.last_at, now)}"
        said = "\n".join(filter(None, (harmless(one.title), harmless(one.link))))
        table.add_row(str(one.number), ago(one.first_at, now), ", ".join(filter(None, (edited, dropped))), said)
    out.print(firm(table), highlight=False, markup=False)
    if found.more:
        out.print(f"{found.total:,} in all; older ones: --before {found.more}", highlight=False)
