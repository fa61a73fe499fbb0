"""`unstale budget`: what all polls together may cost, said and asked while an engine runs, or while none does."""

from __future__ import annotations

import json

import click

from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.errors import require
from unstale.service.budget import sentence
from unstale.units import DAY, parse_rate


@click.command()
@click.argument("rate", required=False, metavar="[RATE]")
@click.option("--from-settings", is_flag=True, help="Go by the settings again, whatever was said since.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
def budget(rate: str | None, from_settings: bool, as_json: bool, config: str | None, store: str | None) -> None:
    """Say what all polls together may cost, or ask which budget is in force and why.

    The last word counts, whichever way it was said: with this command, over the API, on the dashboard, with
    `unstale run --budget` or in unstale.toml. A running engine takes it up with its next plan, within seconds to
    minutes; what is new in unstale.toml it takes up when it is started again.

    \b
      unstale budget 2000/day
      unstale budget
      unstale budget --from-settings
    """
    given = None if rate is None else parse_rate(rate, "budget") / DAY
    require(given is None or given > 0.0, "budget", rate, "must be above 0", "`unstale pause --all` stops polls")
    require(not (from_settings and rate), "budget", rate, "is not that of the settings", "say one of the two")
    with serving(load(config, store=store)) as service:
        said = given is not None or from_settings
        found = service.set_budget(given, "command") if said else service.budget()
        running = service.running()
    if as_json:
        from unstale.service import documents

        click.echo(json.dumps(documents.budget(found)))
        return
    click.echo(f"budget {sentence(found)}")
    if said and running:
        click.echo("the engine takes it up with its next plan")
