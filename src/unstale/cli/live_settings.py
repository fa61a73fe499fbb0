"""`unstale settings`: what the fleet goes by, and what of it can be changed while it runs."""

from __future__ import annotations

import json

import click

from unstale.cli.reading import firm
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console, grid
from unstale.errors import require


@click.command()
@click.argument("name", required=False)
@click.argument("value", required=False)
@click.option("--from-settings", is_flag=True, help="Go by the settings file again, whatever was said since.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC.")
@settings_options
def settings(
    name: str | None, value: str | None, from_settings: bool, as_json: bool, config: str | None, store: str | None
) -> None:
    """See what the fleet goes by, or change one of the settings that can be changed while it runs.

    The last word counts, whichever way it was said: with this command, over the API, on the dashboard or in
    unstale.toml. A running engine takes it up within seconds; what is new in unstale.toml it takes up when it is
    started again.

    \b
      unstale settings
      unstale settings windows "22:00-06:00 Europe/Berlin"
      unstale settings windows --from-settings
    """
    from unstale.service.live_settings import document

    said = value is not None or from_settings
    require(not (value is not None and from_settings), "value", value, "is not that of the settings", "say one of both")
    require(
        name is not None or not from_settings, "setting", "to take back", "is missing", "name one of `unstale settings`"
    )
    with serving(load(config, store=store)) as service:
        found = service.say(name, value, "command") if name is not None and said else service.settings()
    shown = [one for one in found if name in (None, one.name)]
    require(
        shown, "setting", repr(name), "is not one of the fleet's", f"there are {', '.join(one.name for one in found)}"
    )
    if as_json:
        click.echo(json.dumps(document(shown)))
        return
    table = grid("setting", "value", "said", "changes", "meaning")
    for column in table.columns:
        column.justify, column.no_wrap = "left", False
    for one in shown:
        by = {"settings": "in the file", "default": "by nobody", "command": "by command"}.get(
            one.by, "in the browser or API"
        )
        table.add_row(one.name, one.value or "(empty)", by, "while it runs" if one.live else "at a start", one.meaning)
    console().print(firm(table), highlight=False, markup=False)
