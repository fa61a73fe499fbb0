"""`unstale audit`: who changed what."""

from __future__ import annotations

import json

import click

from unstale.cli.differing import harmless
from unstale.cli.reading import ago, firm
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console, grid


@click.command()
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Show so many edits.")
@click.option("--before", type=click.IntRange(min=1), metavar="N", help="Only edits with lower numbers than this.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a line; times in UTC.")
@settings_options
def audit(limit: int, before: int | None, as_json: bool, config: str | None, store: str | None) -> None:
    """Who changed what, newest first: by command, in the browser or over the API. 10,000 edits are kept.

    \b
      unstale audit
      unstale audit --limit 1000 --json
    """
    with serving(load(config, store=store)) as service:
        now = service.clock()
        found = service.edits(limit, before)
    if as_json:
        from unstale.service.documents import iso

        for one in found:
            click.echo(json.dumps({"number": one.number, "at": iso(one.at), "who": one.who, "what": one.what}))
        return
    if not found:
        click.echo("nothing was changed" if before is None else "nothing before that")
        return
    table = grid("number", "when", "who", "what")
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "left", False
    for one in found:
        table.add_row(str(one.number), ago(one.at, now), harmless(one.who), harmless(one.what))
    console().print(firm(table), highlight=False, markup=False)
